import { roughBodyTokens } from '../metering/rough-tokens.ts'
import { usedTokens } from '../providers/live-events.ts'
import type { TurnCall } from './turn-call.ts'

/** What other models read that work for a Live session: no message of it shows that before they have done so. */
export class DelegatedContext {
  /** The most that one of them had read and written when it was done. */
  #tokens: number | null = null
  /** What was written since, by the client or in what was said. */
  #bytes = 0

  came(bytes: number): void {
    this.#bytes += bytes
  }

  ended(event: Buffer): void {
    const tokens = usedTokens(event)
    if (tokens === null) return
    this.#tokens = Math.max(tokens, this.#tokens ?? 0)
    this.#bytes = 0
  }

  /** One that is cut has read what the one before it had, and what came since; for the first nothing tells less than its window. */
  boundCut(turn: TurnCall): void {
    if (this.#tokens === null) return
    const tokens = this.#tokens + roughBodyTokens(this.#bytes)
    const { plan } = turn.call
    const { bill } = plan
    const tokensHeld = (modelServed: string | null) => {
      const held = bill.tokensHeld(modelServed)
      return { ...held, input: Math.min(tokens, held.input ?? tokens) }
    }
    turn.call = { ...turn.call, plan: { ...plan, bill: { ...bill, tokensHeld } } }
  }
}
