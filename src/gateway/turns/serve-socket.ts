import type { Target } from '../../http/judge-head.ts'
import { valuesOf } from '../../http/raw-headers.ts'
import type { CallEnd } from '../../http/upstream-call.ts'
import { type Refusal, redactRefusal, refuse } from '../../kernel/errors.ts'
import type { Surface } from '../../kernel/surface.ts'
import type { Endpoint } from '../../providers/endpoint.ts'
import { findEndpoint } from '../../providers/find-endpoint.ts'
import { protocolsForClient } from '../../providers/socket-credential.ts'
import { shapeError, statusOf } from '../../providers/surfaces.ts'
import { readExtensions } from '../../sockets/message-reader.ts'
import { withoutOurs } from '../answer.ts'
import type { AdmittedCall, PlannedCall } from '../call.ts'
import { deny } from '../ended-call.ts'
import type { Gateway } from '../gateway.ts'
import { explainThrown } from '../refusals.ts'
import type { Foreseen } from './advance-hold.ts'
import { RealtimeTurns } from './realtime-turns.ts'
import { ResponseLanes } from './response-lanes.ts'
import { LiveClock, TranslationClock } from './session-clocks.ts'
import type { RefusedTurn, SocketMeter } from './socket-meter.ts'
import { SocketSession } from './socket-session.ts'
import { TimedTurns } from './timed-turns.ts'

export type Switched = CallEnd & { readonly kind: 'switched' }

type MakeMeter = (handshake: PlannedCall, gateway: Gateway) => SocketMeter

/** The meter of each kind of socket that is served. */
const METERS: ReadonlyMap<string, MakeMeter> = new Map<string, MakeMeter>([
  ['/v1/responses', (handshake, gateway) => new ResponseLanes(handshake, gateway)],
  ['/v1/realtime', realtimeMeter],
  ['/v1/realtime/translations', translationMeter],
  ['/v1/live/sessions', (handshake, gateway) => liveMeter(handshake, gateway, true)],
  ['/v1/live/sessions/{session_id}/attach', (handshake, gateway) => liveMeter(handshake, gateway, false)],
  ['/v1/live/sessions/{session_id}/fork', (handshake, gateway) => liveMeter(handshake, gateway, false)],
])

/** The endpoint of a handshake, which is a free call. Null where there is none. */
export function findHandshake(surface: Surface, { path, query }: Target): Endpoint | null {
  const endpoint = findEndpoint(surface, 'WS', path)
  if (endpoint === null || !METERS.has(endpoint.template)) return null
  const named = endpoint.model === 'query' && new URLSearchParams(query).has('model')
  return { ...endpoint, billing: 'free', model: named ? 'query' : 'none' }
}

/** The meter of the socket that a handshake opens. */
export function meterOf(handshake: PlannedCall, gateway: Gateway): SocketMeter | null {
  return METERS.get(handshake.endpoint?.template ?? '')?.(handshake, gateway) ?? null
}

/** A session only transcribes where `intent=transcription` is all that its query says. */
function realtimeMeter(handshake: PlannedCall, gateway: Gateway): SocketMeter {
  const query = new URLSearchParams(handshake.target.query)
  const onlyTranscribes = query.size === 1 && query.get('intent') === 'transcription'
  return new RealtimeTurns(handshake, gateway, modelNamed(query), onlyTranscribes)
}

/** The model in the query, if nothing else there chooses the session: of two values or spellings upstream may take the other one. */
function modelNamed(query: URLSearchParams): string | null {
  const selectors = [...query.keys()].filter((name) => /model|call_?id|intent/i.test(name))
  return selectors.length === 1 ? query.get('model') : null
}

function translationMeter(handshake: PlannedCall, gateway: Gateway): SocketMeter {
  const model = modelNamed(new URLSearchParams(handshake.target.query))
  const foreseen: Foreseen = { kind: 'translation', model, outputTokensMax: null }
  return new TimedTurns(handshake, gateway, foreseen, new TranslationClock())
}

/** `modelComesLater`: the session is new, and names its model when it starts. */
function liveMeter(handshake: PlannedCall, gateway: Gateway, modelComesLater: boolean): SocketMeter {
  const attachedTo = /^\/v1\/live\/sessions\/([^/]+)\/attach$/.exec(handshake.target.path)?.[1] ?? null
  const foreseen: Foreseen = { kind: 'live', model: null, outputTokensMax: null, modelComesLater }
  return new TimedTurns(handshake, gateway, foreseen, new LiveClock(gateway.sockets.live, attachedTo))
}

/** From upstream's 101 to the end of both connections. Resolves when every turn is settled. */
export async function serveSocket(
  handshake: AdmittedCall,
  { head, connection: upstream }: Switched,
  meter: SocketMeter,
  gateway: Gateway,
): Promise<void> {
  const { exchange, surface, share } = handshake
  const { names, requestId, res } = exchange
  const agreed = valuesOf(head.headers, 'sec-websocket-extensions')
  const extensions = readExtensions(agreed.length === 0 ? null : agreed.join(', '))
  if (extensions === 'unknown') {
    upstream.destroy()
    const message = 'Upstream agreed on a WebSocket extension that this gateway cannot read.'
    return deny(exchange, surface, refuse('upstream_invalid_response', message))
  }
  // All header lines of upstream, also those of the connection: they are what a 101 is about.
  const client = res.switchProtocols(head.reason, [
    ...withoutOurs(protocolsForClient(head.headers, exchange.headers), names.prefix),
    names.requestId,
    requestId,
  ])
  if (client === null) {
    upstream.destroy()
    return
  }
  const { memory, decoding } = gateway.reading
  const session = new SocketSession({
    client,
    upstream,
    extensions,
    meter,
    decode: (work) => decoding.take(share, exchange, work),
    takeMemory: (bytes) => memory.tryTake(bytes, share.name),
    giveMemoryBack: (bytes) => memory.giveBack(bytes, share.name),
    failed: (error) => explainThrown(error, requestId, gateway.log),
    errorEvent: (refusal, about) => errorEvent(handshake, refusal, about),
  })
  gateway.sockets.add(session, handshake.admission)
  session.start()
  await session.ended
}

/** A refusal in the shape of upstream's error events. */
function errorEvent(
  { exchange, surface, endpoint }: AdmittedCall,
  refusal: Refusal,
  about: RefusedTurn,
): string {
  const clean = redactRefusal(refusal, exchange.names.redact)
  const { error } = JSON.parse(shapeError(surface, clean, about.requestId).body.toString()) as {
    error: object
  }
  return JSON.stringify({
    type: 'error',
    status: statusOf(surface, refusal.code),
    ...(about.eventId === undefined ? { error } : aboutEvent(error, about, endpoint)),
    request_id: about.requestId,
    ...(about.streamId === null ? {} : { stream_id: about.streamId }),
  })
}

/** On sessions every event has an id, and an error names the id of the client's event that it is about. */
function aboutEvent(error: object, { requestId, eventId = null }: RefusedTurn, endpoint: Endpoint | null) {
  if (endpoint?.template.startsWith('/v1/live/') !== true)
    return { event_id: requestId, error: { ...error, event_id: eventId } }
  const client = eventId === null ? {} : { client_event_id: eventId }
  return { event_id: requestId, ...client, error: { ...error, ...client } }
}
