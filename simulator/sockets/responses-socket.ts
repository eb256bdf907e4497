import { failureOf } from '../answer-request.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { Call } from '../call.ts'
import { chatErrorJson } from '../chat/chat-wire.ts'
import type { JsonObject } from '../json.ts'
import { socketTurnsMax, storedObjectsMax } from '../limits.ts'
import { asRefusal, Refusal } from '../refusal.ts'
import { storeResponse } from '../responses/create-response.ts'
import { planResponse, readResponseRequest } from '../responses/plan-response.ts'
import { type ResponsePlan, type StoredResponse, writeResponse } from '../responses/response-plan.ts'
import type { ClientEvent, EventSocket } from './event-socket.ts'

/** WS /v1/responses. Responses with the same `stream_id`, or without any, are written one after the other. */
export function serveResponses(socket: EventSocket): void {
  const lanes = new Map<string, Promise<void>>()
  const unstored = new BoundedMap<StoredResponse>(storedObjectsMax)
  let waiting = 0

  const answer = async ({ json, position }: ClientEvent): Promise<void> => {
    const { type: _, stream_id: lane, generate, ...body } = json
    try {
      const call = callOf(socket, { ...body, stream: true }, position, unstored)
      if (call.behaviours.status !== undefined) throw failureOf('chat', call.behaviours.status)
      const request = readResponseRequest(call)
      if (request.isBackground) {
        throw new Refusal(400, "'background' is not supported over WebSocket.", { param: 'background' })
      }
      const planned = planResponse(call, request)
      // A warm-up reads and writes nothing.
      const plan: ResponsePlan = generate === false ? { ...planned, items: [], ending: 'completed' } : planned
      storeResponse(call, request, plan)
      await socket.writeTurn({
        events: writeResponse(plan),
        behaviours: call.behaviours,
        pace: request.model.pace,
        interrupt: socket.signal,
        errorEvent: { type: 'error', error: chatErrorJson(failureOf('chat', 500)) },
        stamp: (event) => inLane(event, lane),
      })
    } catch (error) {
      await socket.send(errorEvent(asRefusal(error), lane))
    }
  }

  const take = (event: ClientEvent): void => {
    if (event.type !== 'response.create') {
      throw new Refusal(400, `Invalid value: '${event.type}'. The simulator takes 'response.create'.`)
    }
    if (waiting >= socketTurnsMax) throw new Refusal(429, 'Too many responses are waiting on this socket.')
    waiting += 1
    const lane = JSON.stringify(event.json['stream_id'] ?? null)
    const done = (lanes.get(lane) ?? Promise.resolve()).then(async () => {
      if (!socket.signal.aborted) await answer(event)
      waiting -= 1
      if (lanes.get(lane) === done) lanes.delete(lane)
    })
    lanes.set(lane, done)
  }
  socket.listen(take, (refusal, json) => {
    void socket.send(errorEvent(refusal, json['stream_id']))
  })
}

/** The call that the same request over HTTP would have been. */
function callOf(
  socket: EventSocket,
  json: JsonObject,
  position: number,
  unstored: BoundedMap<StoredResponse>,
): Call {
  const { memory, clock } = socket.handshake.simulation
  return {
    query: new URLSearchParams(),
    headers: {},
    body: Buffer.from(JSON.stringify(json)),
    param: '',
    behaviours: socket.behavioursOf(json['metadata']),
    identity: socket.identityOf(position, json),
    requestId: '',
    memory: { ...memory, unstored },
    clock,
  }
}

function errorEvent(refusal: Refusal, lane: unknown): JsonObject {
  return inLane({ type: 'error', status: refusal.status, error: chatErrorJson(refusal) }, lane)
}

function inLane(event: JsonObject, lane: unknown): JsonObject {
  return typeof lane === 'string' ? { ...event, stream_id: lane } : event
}
