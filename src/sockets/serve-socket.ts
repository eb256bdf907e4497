import { ReservedBytes } from '../calls/key-shares.ts'
import { hasHeader } from '../http/raw-headers.ts'
import type { Target } from '../http/validate-head.ts'
import type { AdmittedCall, Handshake } from '../http-calls/call.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import { withoutOwnHeaders } from '../http-calls/permitted-changes.ts'
import { explainThrown, sendRefusal } from '../http-calls/refusals.ts'
import type { Switched } from '../http-calls/sent-call.ts'
import { type Refusal, redactRefusal, refuse } from '../kernel/errors.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import { protocolsForClient } from '../providers/credentials.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import { modelInQuery } from '../providers/named-models.ts'
import { shapeError, statusOf } from '../providers/surfaces.ts'
import { ClientGate } from './client-gate.ts'
import { NO_LANE } from './lanes.ts'
import { RealtimeProtocol } from './realtime-protocol.ts'
import { ResponsesProtocol } from './responses-protocol.ts'
import type { RefusedTurn } from './socket-protocol.ts'
import { SocketSession } from './socket-session.ts'
import { SocketTurns } from './socket-turns.ts'
import { StandingHold } from './standing-hold.ts'
import { TurnAdmission } from './turn-admission.ts'

/** The endpoint of a handshake: free, or one unmetered call. Null if the path has no sockets. */
export function findHandshake(surface: Surface, { path, query }: Target): Endpoint | null {
  const endpoint = findEndpoint(surface, 'WS', path)
  if (endpoint === null) return null
  if (endpoint.socket === 'responses') return { ...endpoint, billing: 'free', model: 'none' }
  const isMetered = endpoint.socket === 'realtime' && modelInQuery(query) !== null
  return isMetered
    ? { ...endpoint, billing: 'free', model: 'query' }
    : { ...endpoint, billing: 'unmeterable', model: 'none' }
}

export function turnsOf(handshake: Handshake, gateway: Gateway): SocketTurns {
  const { requestId: socketId, endpoint, target, share } = handshake
  const admission = new TurnAdmission(handshake, gateway)
  const model = endpoint?.socket === 'realtime' ? modelInQuery(target.query) : null
  if (model === null) {
    const protocol = new ResponsesProtocol(handshake, gateway)
    return new SocketTurns({ gateway, socketId, protocol, admission, standingHold: null })
  }
  const protocol = new RealtimeProtocol(gateway, model, share.pace)
  const standingHold = new StandingHold(admission, protocol)
  return new SocketTurns({ gateway, socketId, protocol, admission, standingHold })
}

/** Serves a socket from upstream's 101 until all turns are settled. `turns`: null on an unmetered socket. */
export async function serveSocket(
  handshake: AdmittedCall,
  { head, connection: upstream }: Switched,
  turns: SocketTurns | null,
  gateway: Gateway,
): Promise<void> {
  const { exchange, surface, share } = handshake
  const { names, requestId, res } = exchange
  if (hasHeader(head.headers, 'sec-websocket-extensions')) {
    upstream.destroy()
    const message =
      'Upstream chose a WebSocket extension that the gateway did not offer. Report this to the operator of the gateway.'
    return sendRefusal(exchange, surface, refuse('upstream_invalid_response', message))
  }
  // Pass all of upstream's headers, hop-by-hop ones included: a 101 consists of them.
  const client = res.switchProtocols(head.reason, [
    ...withoutOwnHeaders(protocolsForClient(head.headers, exchange.headers), names.prefix),
    names.requestId,
    requestId,
  ])
  if (client === null) {
    upstream.destroy()
    return
  }
  const session = new SocketSession({
    client,
    upstream,
    metered: turns && { turns, gate: new ClientGate(turns) },
    clock: gateway.clock,
    memory: new ReservedBytes(gateway.reading.memory, share.name),
    failed: (error) => explainThrown(error, requestId, gateway.log),
    errorEvent: (refusal, about) => errorEvent(handshake, refusal, about),
  })
  gateway.sockets.add(session, handshake.hold.terms)
  session.start()
  await session.ended
}

/** In the shape of upstream's error events. Realtime events have ids: the error names the client's. */
function errorEvent(
  { exchange, surface, endpoint }: AdmittedCall,
  refusal: Refusal,
  { requestId, lane, tag }: RefusedTurn,
): string {
  const clean = redactRefusal(refusal, exchange.names.redact)
  const { error } = JSON.parse(shapeError(surface, clean, requestId).body.toString()) as { error: object }
  const isRealtime = endpoint?.socket === 'realtime'
  return JSON.stringify({
    type: 'error',
    status: statusOf(surface, refusal.code),
    ...(isRealtime ? { event_id: requestId, error: { ...error, event_id: tag } } : { error }),
    request_id: requestId,
    ...(lane === NO_LANE ? {} : { stream_id: lane }),
  })
}
