import { BoundedMap } from '../bounded-map.ts'
import type { Identity } from '../identity.ts'
import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import type { ResponsePlan } from '../responses/response-plan.ts'
import type { ClientEvent, EventSocket } from './event-socket.ts'
import type { TurnOutcome } from './write-turn.ts'

interface Steer {
  readonly id: string
  readonly input: readonly unknown[]
  readonly given: unknown
}

export interface ActiveResponse {
  readonly id: string
  /** Whether the response is to stop now. */
  readonly isStopped: boolean
  readonly interrupt: AbortSignal
  /** Gives an event its place in the sequence of the response, and its lane. */
  readonly stamp: (event: JsonObject) => JsonObject
}

const steersMax = 16
/** How many ended responses a socket remembers, to tell an ended response from an unknown one. */
const rememberedMax = 256

/** Input for a response that is being written: the response stops there, and a successor takes the input up. */
export class SteerQueue {
  readonly #socket: EventSocket
  readonly #active = new Map<string, Steered>()
  readonly #ended = new BoundedMap<true>(rememberedMax)
  /** Accepted input that waits for the results of tools, by the response that called them. */
  readonly #pending = new BoundedMap<readonly unknown[]>(rememberedMax)

  constructor(socket: EventSocket) {
    this.#socket = socket
  }

  begin(plan: ResponsePlan, streamId: string | undefined, identity: Identity): ActiveResponse {
    const active = new Steered(plan, streamId, identity)
    this.#active.set(plan.id, active)
    return active
  }

  /** response.steer */
  take({ json }: ClientEvent): void {
    const target = asText(json['previous_response_id'])
    const active = this.#active.get(target)
    const input = readInput(json)
    if (active === undefined || input === undefined || active.steers.length >= steersMax) {
      const [code, message] = this.#objection(target, active, input)
      this.#fail(code, message, { input: json['input'], previous_response_id: target }, active)
      return
    }
    const id = `steer_${active.identity.hex(48)}`
    active.add({ id, input, given: json['input'] })
    const steer = { id, previous_response_id: target }
    void this.#socket.send(active.stamp({ type: 'response.steer.accepted', steer }))
  }

  /** Ends a response; the input that was steered into it becomes its successor's input, or waits, or is given back. */
  async end(response: ActiveResponse, outcome: TurnOutcome): Promise<readonly unknown[] | undefined> {
    const active = this.#active.get(response.id)
    this.#active.delete(response.id)
    this.#ended.set(response.id, true)
    if (active === undefined || active.steers.length === 0 || outcome === 'gone') return undefined
    if (outcome === 'failed') {
      for (const { id, given } of active.steers) {
        const message = 'The response has failed.'
        const steer = { id, input: given, previous_response_id: response.id }
        this.#fail('successor_creation_failed', message, steer, active)
      }
      return undefined
    }
    const input = active.steers.flatMap((steer) => steer.input)
    if (active.requiredInput.length === 0) return input
    this.#pending.set(response.id, input)
    for (const { id } of active.steers) {
      await this.#socket.send(
        active.stamp({
          type: 'response.steer.pending',
          reason: 'waiting_for_required_input',
          required_input: active.requiredInput,
          steer: { id, previous_response_id: response.id },
        }),
      )
    }
    return undefined
  }

  /** Input that has waited for the create which continues this response. */
  takePending(id: string): readonly unknown[] {
    const input = this.#pending.get(id) ?? []
    this.#pending.delete(id)
    return input
  }

  #objection(target: string, active: Steered | undefined, input: unknown): [code: string, message: string] {
    if (active === undefined) {
      return this.#ended.get(target) === true
        ? ['response_already_completed', `Response '${target}' has ended.`]
        : ['response_not_found', `Response '${target}' is not on this connection.`]
    }
    return input === undefined
      ? ['invalid_input', 'Steering takes messages of the user.']
      : ['too_many_pending_steers', 'Too much steering input is pending.']
  }

  #fail(code: string, message: string, steer: JsonObject, active: Steered | undefined): void {
    const error = { code, message, type: 'invalid_request_error' }
    const event = { type: 'response.steer.failed', error, steer }
    void this.#socket.send(active === undefined ? { ...event, sequence_number: 0 } : active.stamp(event))
  }
}

class Steered implements ActiveResponse {
  readonly id: string
  readonly identity: Identity
  readonly requiredInput: readonly JsonObject[]
  readonly steers: Steer[] = []
  readonly #streamId: string | undefined
  readonly #stop = new AbortController()
  #sequence = 0

  constructor(plan: ResponsePlan, streamId: string | undefined, identity: Identity) {
    this.id = plan.id
    this.identity = identity
    this.#streamId = streamId
    this.requiredInput = requiredInputOf(plan)
  }

  get interrupt(): AbortSignal {
    return this.#stop.signal
  }

  get isStopped(): boolean {
    return this.#stop.signal.aborted && this.requiredInput.length === 0
  }

  add(steer: Steer): void {
    this.steers.push(steer)
    this.#stop.abort()
  }

  readonly stamp = (event: JsonObject): JsonObject => {
    const lane = this.#streamId === undefined ? {} : { stream_id: this.#streamId }
    const stamped = { ...event, sequence_number: this.#sequence, ...lane }
    this.#sequence += 1
    return stamped
  }
}

function readInput(json: JsonObject): readonly unknown[] | undefined {
  const { input } = json
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  const items = asArray(input)
  const isAllowed = items.every((item) => isObject(item) && item['role'] === 'user')
  return items.length > 0 && isAllowed ? items : undefined
}

/** The input that the client has to bring before the response can go on: results of the client's own tools. */
function requiredInputOf(plan: ResponsePlan): readonly JsonObject[] {
  const items = plan.items.map((item) => item.json('completed'))
  const answered = new Set(
    items.filter((item) => String(item['type']).endsWith('_output')).map((item) => item['call_id']),
  )
  return items
    .filter((item) => item['call_id'] !== undefined && !answered.has(item['call_id']))
    .map((item) => ({
      type: item['type'] === 'function_call' ? 'function_call_output' : `${item['type']}_output`,
      call_id: item['call_id'],
      ...(item['type'] === 'function_call' ? { name: item['name'] } : {}),
    }))
}
