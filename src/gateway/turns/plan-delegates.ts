import { SOCKET_NAMES } from '../../metering/request-facts.ts'
import { readAtOnce } from '../../metering/request-reader.ts'
import { roughBodyTokens } from '../../metering/rough-tokens.ts'
import { findEndpoint } from '../../providers/find-endpoint.ts'
import { usedTokens } from '../../providers/live-events.ts'
import type { Delegate } from '../../providers/realtime-events.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import { planCall } from '../plan.ts'
import { type Foreseen, holdsMore } from './advance-hold.ts'
import type { PlannedTurn, TurnCall } from './turn-call.ts'

/**
 * The plan of work that any of these delegates may do, at any tier that one of its kind was set to. The hold is for the dearest,
 * and the key must be allowed to use them all.
 */
export function planDelegates(
  delegates: readonly Delegate[],
  handshake: PlannedCall,
  gateway: Gateway,
): PlannedTurn {
  const all = delegates.flatMap((each) => {
    const alike = delegates.filter(({ kind }) => kind === each.kind)
    const tiers = new Set([null, ...alike.map(({ serviceTier }) => serviceTier)])
    const imageModels = [...new Set(alike.flatMap((other) => other.imageModels))]
    return [...tiers].map((serviceTier) => {
      const planned = planDelegate({ ...each, serviceTier, imageModels }, handshake, gateway)
      if (imageModels.length === 0) return planned
      // Image tools are not held for: nothing limits what they draw, and the hold would be all that is left under the cap.
      const { hold } = planDelegate({ ...each, serviceTier, imageModels: [] }, handshake, gateway).plan.bill
      return { ...planned, plan: { ...planned.plan, bill: { ...planned.plan.bill, hold } } }
    })
  })
  const dearest = all.reduce((a, b) => (holdsMore(b.plan.bill, a.plan.bill) ? b : a))
  const names = all.flatMap(({ plan }) => plan.models.names)
  const unknown = all.find(({ plan }) => plan.models.unknown !== null)?.plan.models.unknown ?? null
  return { ...dearest, plan: { ...dearest.plan, models: { ...dearest.plan.models, names, unknown } } }
}

/** Planned as a request by HTTP that goes on from a stored response: the delegate reads what upstream keeps. */
function planDelegate(delegate: Delegate, handshake: PlannedCall, gateway: Gateway): PlannedTurn {
  const { kind, model, serviceTier, imageModels } = delegate
  const path = `/v1/${kind}`
  const endpoint = findEndpoint('chat', 'POST', path)
  const tier = serviceTier === null ? {} : { service_tier: serviceTier }
  const tools = imageModels.map((name) => ({
    type: 'image_generation',
    ...(name === null ? {} : { model: name }),
  }))
  const drawing = tools.length === 0 ? {} : { tools }
  const body = Buffer.from(JSON.stringify({ model, ...tier, ...drawing, previous_response_id: 'live' }))
  const facts = readAtOnce(body, SOCKET_NAMES)
  const read = { kind: 'read', body: { kind: 'none' }, facts, audio: null } as const
  const request = { pieces: null, lengthBytes: 0, isForm: false, audioMs: null, speech: null }
  const exchange = { ...handshake.exchange, method: 'POST' }
  const call = { ...handshake, read, request, endpoint, exchange, target: { path, query: '' } }
  return { read, request, endpoint, plan: planCall(call, null, gateway) }
}

/** Work of delegates, as what a hold in advance is for. */
export function foreseenWork(plan: () => PlannedTurn): Foreseen {
  return { kind: 'live', model: null, outputTokensMax: null, plan }
}

/** How much the delegates of a Live session read. Upstream tells it only when one of them has ended. */
export class DelegatedContext {
  /** The most tokens that one delegate had read and written at its end. */
  #tokens: number | null = null
  /** All text of the session, and how much of it that delegate may have read. */
  #bytes = 0
  #readBytes = 0

  add(bytes: number): void {
    this.#bytes += bytes
  }

  /** All text of the session until now. */
  get bytes(): number {
    return this.#bytes
  }

  /** A delegate has ended, which began when the session had so much text. */
  ended(event: Buffer, contextBytes: number): void {
    const tokens = usedTokens(event)
    if (tokens === null) return
    this.#tokens = Math.max(tokens, this.#tokens ?? 0)
    this.#readBytes = Math.max(this.#readBytes, contextBytes)
  }

  /** A delegate that is cut has read what the one before it had, and the text since. The first one is bounded by its window only. */
  boundCut(turn: TurnCall): void {
    if (this.#tokens === null) return
    const tokens = this.#tokens + roughBodyTokens(this.#bytes - this.#readBytes)
    const { plan } = turn.call
    const { bill } = plan
    const tokensHeld = (modelServed: string | null) => {
      const held = bill.tokensHeld(modelServed)
      return { ...held, input: Math.min(tokens, held.input ?? tokens) }
    }
    turn.call = { ...turn.call, plan: { ...plan, bill: { ...bill, tokensHeld } } }
  }
}
