import { readJson } from '../metering/meter.ts'
import type { ReadingPace } from '../metering/reading-pace.ts'
import { givenTwice } from './ambiguity.ts'
import { RESPONSE_EVENT } from './chat/responses.ts'
import type { Endpoint } from './endpoint.ts'
import { PLAIN_JSON, RequestReader } from './read-request.ts'
import { asName, asObject } from './reading.ts'
import { isGiven, NOT_READ, type RequestFacts } from './request-facts.ts'

export type ClientMessage =
  | { readonly kind: 'create'; readonly lane: string }
  /** More input for a running response, for which upstream begins a successor. */
  | { readonly kind: 'steer'; readonly responseId: string | null }
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'invalid'; readonly detail: string; readonly param: string }
  | { readonly kind: 'other' }

const NO_LANE = ''
const LANE_CHARS_MAX = 256

export function readClientMessage(facts: RequestFacts): ClientMessage {
  if (facts.kind !== 'json') return { kind: 'unreadable' }
  const { type, stream_id: lane, previous_response_id: id } = facts.body
  if (typeof type !== 'string' || facts.ambiguity?.detail === givenTwice('type').detail)
    return { kind: 'invalid', detail: 'A message must have exactly one string "type".', param: 'type' }
  const isSteer = type === 'response.steer'
  if (!isSteer && type !== 'response.create') return { kind: 'other' }
  const name = typeof lane === 'string' ? lane : NO_LANE
  if (isGiven(lane) && (name === '' || name.length > LANE_CHARS_MAX)) {
    const detail = `"stream_id" must be a string of 1 to ${LANE_CHARS_MAX} characters.`
    return { kind: 'invalid', detail, param: 'stream_id' }
  }
  if (!isSteer) return { kind: 'create', lane: name }
  return { kind: 'steer', responseId: typeof id === 'string' ? id : null }
}

/** A steer may add any input to a response stored upstream. The request's models were checked when it began. */
export function withSteer(request: RequestFacts, steer: RequestFacts): RequestFacts {
  if (request.kind !== 'json' || steer.kind !== 'json') return request
  const { previous_response_id } = steer.body
  const { bringsTools, compacts } = request.items
  return {
    ...request,
    body: { ...request.body, previous_response_id },
    marks: request.marks | steer.marks,
    items: {
      ...steer.items,
      bringsTools: bringsTools || steer.items.bringsTools,
      compacts: compacts || steer.items.compacts,
    },
  }
}

export async function readTurnRequest(
  payload: Buffer,
  endpoint: Endpoint | null,
  pace: ReadingPace,
): Promise<RequestFacts> {
  if (endpoint === null) return NOT_READ
  const reader = new RequestReader(endpoint, PLAIN_JSON, undefined, pace)
  await pace.readInPieces(payload, (piece) => reader.write(piece))
  return await reader.end()
}

type EventKind = 'began' | 'part' | 'ended' | 'failed' | 'steer_failed'

const KINDS: ReadonlyMap<string, EventKind> = new Map([
  ['response.created', 'began'],
  ['response.queued', 'began'],
  ['response.in_progress', 'began'],
  ['response.completed', 'ended'],
  ['response.incomplete', 'ended'],
  ['response.failed', 'ended'],
  ['response.cancelled', 'ended'],
  ['response.done', 'ended'],
  ['error', 'failed'],
  ['response.steer.failed', 'steer_failed'],
  // The input waits for the next request.
  ['response.steer.pending', 'steer_failed'],
])

/** The parts of an upstream event that decide which turn it belongs to. */
export function responseEvent(text: Buffer) {
  const document = readJson(RESPONSE_EVENT, text)
  if (document === null) return null
  const event = asObject(document.value)
  const { status } = event
  const response = asObject(event['response'])
  return {
    kind: KINDS.get(asName(event['type']) ?? '') ?? 'part',
    lane: asName(event['stream_id']) ?? NO_LANE,
    responseId: asName(response['id']),
    usage: response['usage'] ?? null,
    status: typeof status === 'number' && status >= 400 && status <= 599 ? status : 400,
    document,
  }
}
