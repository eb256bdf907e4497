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
 * A piece of work that any of these may do, at any tier that one of its kind was set to: what it may cost is what the dearest of
 * them may, and the key must have them all.
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
      // What nothing limits is not held for: it would be all that is left, for as long as the session lasts.
      const { hold } = planDelegate({ ...each, serviceTier, imageModels: [] }, handshake, gateway).plan.bill
      return { ...planned, plan: { ...planned.plan, bill: { ...planned.plan.bill, hold } } }
    })
  })
  const dearest = all.reduce((a, b) => (holdsMore(b.plan.bill, a.plan.bill) ? b : a))
  const names = all.flatMap(({ plan }) => plan.models.names)
  const unknown = all.find(({ plan }) => plan.models.unknown !== null)?.plan.models.unknown ?? null
  return { ...dearest, plan: { ...dearest.plan, models: { ...dearest.plan.models, names, unknown } } }
}

/** As if it had been asked for by HTTP: it reads what upstream keeps. */
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

/** What a hold in advance is for, where it is for such work. */
export function foreseenAs(plan: () => PlannedTurn): Foreseen {
  return { kind: 'live', model: null, outputTokensMax: null, plan }
}

/** What other models read that work for a Live session: no message of it shows that before they have done so. */
export class DelegatedContext {
  /** The most that one of them had read and written when it was done. */
  #tokens: number | null = null
  /** What was ever written, by the client or in what was said, and how much of it that one had read. */
  #cameBytes = 0
  #readBytes = 0

  came(bytes: number): void {
    this.#cameBytes += bytes
  }

  /** How much there is for one that begins now. */
  began(): number {
    return this.#cameBytes
  }

  /** One that began with so many bytes. */
  ended(event: Buffer, beganBytes: number): void {
    const tokens = usedTokens(event)
    if (tokens === null) return
    this.#tokens = Math.max(tokens, this.#tokens ?? 0)
    this.#readBytes = Math.max(this.#readBytes, beganBytes)
  }

  /** One that is cut has read what the one before it had, and what came since; for the first nothing tells less than its window. */
  boundCut(turn: TurnCall): void {
    if (this.#tokens === null) return
    const tokens = this.#tokens + roughBodyTokens(this.#cameBytes - this.#readBytes)
    const { plan } = turn.call
    const { bill } = plan
    const tokensHeld = (modelServed: string | null) => {
      const held = bill.tokensHeld(modelServed)
      return { ...held, input: Math.min(tokens, held.input ?? tokens) }
    }
    turn.call = { ...turn.call, plan: { ...plan, bill: { ...bill, tokensHeld } } }
  }
}
