import type { Work } from '../calls/ask.ts'
import { planRequest } from '../calls/call-plan.ts'
import { type CountableInput, NOTHING_COUNTABLE } from '../calls/estimates.ts'
import type { Handshake } from '../http-calls/call.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { RecentEntries } from '../kernel/recent-entries.ts'
import { ambiguityAtEndpoint, unreadableFacts } from '../providers/ambiguity.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import { NOT_READ, type RequestFacts } from '../providers/request-facts.ts'
import {
  type ClientMessage,
  readClientMessage,
  readTurnRequest,
  responseEvent,
  withSteer,
} from '../providers/response-events.ts'
import { NO_LANE, type OpenTurn, OTHER_EVENT, type ServerEvent, STEER } from './lanes.ts'
import type { ClientIntent, RefusedIntent, SocketProtocol } from './socket-protocol.ts'
import type { TurnCall } from './turn-call.ts'

/** Requests up to this size are kept during their turn to estimate tokens; larger ones by their length. */
const TURN_KEPT_BYTES_MAX = 64 * 1024

const TARGET = { path: '/v1/responses', query: '' }
const ENDPOINT = findEndpoint('chat', 'POST', TARGET.path)

const STEERABLE_MIN = 16

const NOT_JSON = unreadableFacts('not_json')

/** The messages of a socket of `/v1/responses`: each request is a turn, in the lane that its `stream_id` names. */
export class ResponsesProtocol implements SocketProtocol {
  readonly reader = 'responses'
  readonly #handshake: Handshake
  readonly #gateway: Gateway
  /** The most recent turns, by response id. */
  readonly #begun = new RecentEntries<OpenTurn<TurnCall>>(STEERABLE_MIN)
  #last: OpenTurn<TurnCall> | null = null
  #unread: Work | null = null

  constructor(handshake: Handshake, gateway: Gateway) {
    this.#handshake = handshake
    this.#gateway = gateway
  }

  async readClient(payload: Buffer): Promise<ClientIntent> {
    const facts = await readTurnRequest(payload, ENDPOINT, this.#handshake.share.pace)
    const message = readClientMessage(facts)
    if (message.kind === 'other') return { kind: 'pass', check: null }
    if (message.kind === 'unreadable') return this.refused(facts.ambiguity?.detail ?? '')
    if (message.kind === 'invalid') return this.refused(message.detail, { param: message.param })
    const steered = message.kind === 'steer' ? (this.#begun.get(message.responseId ?? '') ?? null) : null
    const planned = steered === null ? this.#plan(facts, payload) : this.#planSteer(steered, facts, payload)
    const lane = message.kind === 'create' ? message.lane : (steered?.lane ?? NO_LANE)
    const tag = message.kind === 'steer' ? STEER : null
    const refusal = refuseMessage(message, facts, planned)
    if (refusal !== null) return { kind: 'refused', refusal, lane, tag, planned }
    return { kind: 'begins', lane, tag, planned, check: null }
  }

  refused(detail: string, more?: { readonly param: string }): RefusedIntent {
    this.#unread ??= this.#plan(NOT_JSON, Buffer.alloc(0))
    const refusal = refuse('bad_request', detail, more)
    return { kind: 'refused', refusal, lane: NO_LANE, tag: null, planned: this.#unread }
  }

  readServer(payload: Buffer): ServerEvent {
    const event = responseEvent(payload)
    if (event === null) return OTHER_EVENT
    const { kind } = event
    return {
      kind: kind === 'steer_failed' ? 'failed' : kind,
      lane: event.lane,
      responseId: event.responseId,
      tag: kind === 'steer_failed' ? STEER : null,
      status: event.status,
      usage: event.usage,
      stopReason: null,
      itemId: null,
      document: event.document,
    }
  }

  planUnrequested(): Work {
    return this.#last?.turn.ask ?? this.#plan(NOT_READ, Buffer.alloc(0))
  }

  began(open: OpenTurn<TurnCall>): void {
    if (open.responseId !== null) this.#last = this.#begun.set(open.responseId, open)
  }

  usageOf(): null {
    return null
  }

  transcriptionOf(): null {
    return null
  }

  #plan(facts: RequestFacts, payload: Buffer): Work {
    const lengthBytes = payload.length
    const pieces = lengthBytes <= TURN_KEPT_BYTES_MAX ? [payload] : []
    const bytes = { ...NOTHING_COUNTABLE, pieces, lengthBytes, facts }
    return this.#withProfile(bytes, ambiguityAtEndpoint(ENDPOINT, facts)?.detail ?? null)
  }

  /** The successor's prompt is everything that the current response has read and written, plus the steer. */
  #planSteer({ turn }: OpenTurn<TurnCall>, facts: RequestFacts, payload: Buffer): Work {
    const { bytes } = turn.ask
    const lengthBytes = bytes.lengthBytes + turn.bytesOut + payload.length
    return this.#withProfile(
      { ...bytes, pieces: [], lengthBytes, facts: withSteer(bytes.facts, facts) },
      null,
    )
  }

  #withProfile(bytes: CountableInput, ambiguity: string | null): Work {
    const { surface } = this.#handshake
    const { facts, lengthBytes: bodyBytes } = bytes
    const { prices, clock } = this.#gateway
    const request = { surface, method: 'POST', ...TARGET, endpoint: ENDPOINT, facts, bodyBytes }
    const profile = planRequest({ ...request, atMs: clock.nowMs() }, prices)
    return { endpoint: ENDPOINT, profile, bytes, ambiguity }
  }
}

function refuseMessage({ kind }: ClientMessage, facts: RequestFacts, { profile }: Work): Refusal | null {
  const ambiguity = ambiguityAtEndpoint(ENDPOINT, facts)
  // Upstream may read an ambiguous steer as a new request.
  if (ambiguity !== null && (ambiguity.refuse === 'always' || kind === 'steer'))
    return refuse('bad_request', ambiguity.detail)
  if (profile.deferredKind === null) return null
  const message = '"background" is not supported over a WebSocket. Send the request to POST /v1/responses.'
  return refuse('bad_request', message, { param: 'background' })
}
