import { failureOf } from '../answer-request.ts'
import type { Behaviours } from '../behaviours.ts'
import type { Call } from '../call.ts'
import { chatErrorJson } from '../chat/chat-error.ts'
import { asArray, asText, type JsonObject } from '../json.ts'
import { bodyBytesInFlightMax, socketTurnsMax } from '../limits.ts'
import { asRefusal, Refusal } from '../refusal.ts'
import { keepResponse, whenLeft } from '../responses/create-response.ts'
import { planResponse } from '../responses/plan-response.ts'
import type { ResponsePlan } from '../responses/response-plan.ts'
import { ResponseStore, type StoredResponse } from '../responses/response-store.ts'
import { writeResponse } from '../responses/stream-response.ts'
import { validateResponse } from '../responses/validate-response.ts'
import { type ClientEvent, type EventSocket, unknownType } from './event-socket.ts'
import { SteerQueue } from './steer-queue.ts'
import { writeTurn } from './write-turn.ts'

/** A response that a client asked for, or that follows from steering another one. */
interface Create {
  readonly body: JsonObject
  readonly streamId: string | undefined
  readonly generates: boolean
  readonly position: number
  /** Whether this response follows from steering another one. */
  readonly isSuccessor: boolean
}

/** WS /v1/responses: lanes of responses. Responses of one `stream_id`, or without any, are written one after the other. */
export function serveResponses(socket: EventSocket): void {
  const lanes = new Map<string, Promise<void>>()
  const steers = new SteerQueue(socket)
  const responses = new SocketResponses(socket.handshake.simulation.memory.responses)
  let waiting = 0

  const enqueue = (create: Create, bytes: number): void => {
    const { bodyBudget } = socket.handshake.simulation
    const isFull = waiting >= socketTurnsMax || bodyBudget.bytes + bytes > bodyBytesInFlightMax
    if (isFull) throw new Refusal(429, 'Too many responses are waiting on this socket.')
    waiting += 1
    bodyBudget.bytes += bytes
    const lane = create.streamId === undefined ? 'none' : `id ${create.streamId}`
    const done = (lanes.get(lane) ?? Promise.resolve()).then(async () => {
      let next: Create | undefined = create
      while (next !== undefined && !socket.signal.aborted) next = await answer(next)
      waiting -= 1
      bodyBudget.bytes -= bytes
      if (lanes.get(lane) === done) lanes.delete(lane)
    })
    lanes.set(lane, done)
  }

  /** Writes a response, and returns the successor that follows from steering it. */
  const answer = async (create: Create): Promise<Create | undefined> => {
    const { streamId } = create
    try {
      const call = callOf(socket, create.body, create.position, responses)
      if (call.behaviours.status !== undefined) throw failureOf('chat', call.behaviours.status)
      const request = validateResponse(call)
      const planned = planResponse(call, request)
      const plan: ResponsePlan = create.generates ? planned : { ...planned, items: [], ending: 'completed' }
      const stored = keepResponse(call, request, plan, { kind: 'stream' })
      if (!request.isStored) responses.addUnstored(stored)
      const active = steers.begin(plan, streamId, call.identity)
      const outcome = await writeTurn(socket, {
        events: writeResponse(plan, {
          obfuscates: request.obfuscates,
          isSteered: () => active.isStopped,
          onEnd: whenLeft(stored),
        }),
        behaviours: create.isSuccessor ? withoutStall(call.behaviours) : call.behaviours,
        pace: request.model.pace,
        interrupt: active.interrupt,
        errorEvent: { type: 'error', error: chatErrorJson(failureOf('chat', 500)) },
        stamp: active.stamp,
      })
      const input = await steers.end(active, outcome)
      if (input === undefined) return undefined
      const body = { ...create.body, previous_response_id: plan.id, input }
      return { ...create, body, generates: true, isSuccessor: true }
    } catch (error) {
      await socket.send(errorEvent(asRefusal(error), streamId))
      return undefined
    }
  }

  const take = (event: ClientEvent): void => {
    const { type } = event
    if (type === 'response.create') enqueue(readCreate(event, steers), event.bytes.length)
    else if (type === 'response.steer') steers.take(event)
    else throw unknownType(type, ['response.create', 'response.steer'])
  }
  socket.listen(take, (refusal, json) => {
    void socket.send(errorEvent(refusal, readStreamId(json)))
  })
}

function readCreate({ json, position }: ClientEvent, steers: SteerQueue): Create {
  const { type: _, stream_id: given, generate, ...body } = json
  if (given !== undefined && typeof given !== 'string') {
    throw new Refusal(400, "Invalid type for 'stream_id': expected a string.", { param: 'stream_id' })
  }
  if (body['background'] === true) {
    throw new Refusal(400, "'background' is not supported over WebSocket.", { param: 'background' })
  }
  const queued = steers.takePending(asText(body['previous_response_id']))
  const input = queued.length === 0 ? body['input'] : [...queued, ...asItems(body['input'])]
  return {
    body: { ...body, input, stream: true },
    streamId: given,
    generates: generate !== false,
    isSuccessor: false,
    position,
  }
}

/** A client that steers a stalled response wants it to go on: the successor does not stall. */
function withoutStall({ stall: _, ...behaviours }: Behaviours): Behaviours {
  return behaviours
}

function asItems(input: unknown): readonly unknown[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : asArray(input)
}

/** A request for a response as it would have come over HTTP. */
export function callOf(
  socket: EventSocket,
  json: JsonObject,
  position: number,
  responses: ResponseStore,
): Call {
  const { simulation } = socket.handshake
  const body = Buffer.from(JSON.stringify(json))
  return {
    method: 'POST',
    path: '/v1/responses',
    query: new URLSearchParams(),
    headers: {},
    contentType: 'application/json',
    body,
    params: [],
    behaviours: socket.behavioursOf(json['metadata']),
    identity: socket.identityOf(position, body),
    memory: { ...simulation.memory, responses },
    clock: simulation.clock,
  }
}

function errorEvent(refusal: Refusal, streamId: string | undefined): JsonObject {
  const event = { type: 'error', status: refusal.status, error: chatErrorJson(refusal) }
  return streamId === undefined ? event : { ...event, stream_id: streamId }
}

function readStreamId(json: JsonObject): string | undefined {
  return typeof json['stream_id'] === 'string' ? json['stream_id'] : undefined
}

/** The responses that a later turn of the socket may continue: all stored ones, and the socket's own that are not stored. */
class SocketResponses extends ResponseStore {
  readonly #stored: ResponseStore

  constructor(stored: ResponseStore) {
    super()
    this.#stored = stored
  }

  override add(response: StoredResponse): void {
    this.#stored.add(response)
  }

  addUnstored(response: StoredResponse): void {
    super.add(response)
  }

  override find(id: string): StoredResponse | undefined {
    return super.find(id) ?? this.#stored.find(id)
  }
}
