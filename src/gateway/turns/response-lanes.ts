import type { CallEnd } from '../../http/upstream-call.ts'
import { refuse } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import type { RequestFacts } from '../../metering/request-facts.ts'
import { ambiguityFor } from '../../providers/ambiguity.ts'
import { findEndpoint } from '../../providers/find-endpoint.ts'
import {
  isPart,
  NO_LANE,
  type ResponseEvent,
  readRequest,
  responseAsked,
  responseEvent,
  withSteer,
} from '../../providers/response-events.ts'
import type { Message } from '../../sockets/message-reader.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import { readOnMs } from '../leave.ts'
import { planCall } from '../plan.ts'
import { refuseTooManyTurns } from '../refusals.ts'
import { ResponseLane, type Sent } from './response-lane.ts'
import { RecentIds } from './seen-ids.ts'
import type { MeteredSocket, SocketMeter, Verdict } from './socket-meter.ts'
import { admitBegunTurn, admitTurn, type PlannedTurn, refuseTurn, TurnSettlements } from './turn-call.ts'

const TARGET = { path: '/v1/responses', query: '' }
const ENDPOINT = findEndpoint('chat', 'POST', TARGET.path)

interface Rejected {
  readonly sent: Sent
  readonly status: number
}

/** A response that upstream began though no turn was waiting for one. Its events are kept until it is admitted. */
interface Unsolicited {
  readonly lane: string
  readonly responseId: string | null
  readonly events: Buffer[]
  bytes: number
}

/** The status of a turn that upstream has never begun, where it says none. */
const UNANSWERED = 400

/** The turns of a socket of `/v1/responses`. */
export class ResponseLanes implements SocketMeter {
  readonly upstreamStartsTurns = false
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #lanes = new Map<string, ResponseLane>()
  /**
   * Turns that errors seem to have ended before they began, as long as others are open. If more responses begin than turns are
   * left, an error was about something else, and one of these turns is revived.
   */
  readonly #rejected: Rejected[] = []
  readonly #settlements: TurnSettlements
  /** Errors that have answered a waiting message, in a lane that they did not name. */
  #errors = 0
  /** Turns that seem to have ended without a last event. */
  readonly #failing = new Map<Sent, NodeJS.Timeout>()
  readonly #endedIds = new RecentIds(limits.endedIdsMax)
  #unsolicited: Unsolicited[] = []
  #socket: MeteredSocket | null = null
  #running = 0
  #isOver = false

  constructor(handshake: PlannedCall, gateway: Gateway) {
    this.#handshake = handshake
    this.#gateway = gateway
    const { requestId } = handshake.exchange
    this.#settlements = new TurnSettlements(requestId, gateway, () => this.#socket?.turnEnded())
  }

  get running(): number {
    return this.#running
  }

  start(socket: MeteredSocket): void {
    this.#socket = socket
  }

  judge(message: Message): Promise<Verdict> {
    return this.#judge(message)
  }

  async #judge(message: Message): Promise<Verdict> {
    const payload = message.kind === 'message' ? message.payload : Buffer.alloc(0)
    const facts = message.kind === 'message' ? await readRequest(payload, ENDPOINT) : unreadable(message.why)
    const asked = responseAsked(facts)
    const target = asked.kind === 'steer' ? this.#findLast(asked.responseId) : null
    const lane = asked.kind === 'create' ? asked.lane : (target?.lane ?? NO_LANE)
    const isSteer = asked.kind === 'steer'
    const planned =
      target === null ? this.#plan(facts, payload, lane) : this.#planSteer(target, facts, payload)
    const refusal = this.#refuse(asked.kind === 'odd' ? asked.detail : null, planned)
    const admitted =
      refusal === null
        ? await admitTurn(this.#handshake, planned, this.#gateway)
        : refuseTurn(this.#handshake, planned, refusal, this.#gateway)
    if (admitted.kind === 'client_left') return { kind: 'dropped' }
    if (admitted.kind === 'refused') {
      const about = { requestId: admitted.requestId, streamId: lane === NO_LANE ? null : lane }
      return { kind: 'refused', refusal: admitted.refusal, about }
    }
    const { turn } = admitted
    return {
      kind: 'pass',
      sent: () => {
        turn.sent(payload, 'responses')
        this.#laneOf(lane).waiting.push({ turn, planned, lane, isSteer })
        this.#running += 1
      },
      unsent: () => this.#settlements.add(turn.release()),
    }
  }

  observe(payload: Buffer): void {
    if (this.#isOver) return
    const only = this.#onlyRunning()
    if (only !== null && isPart(payload)) {
      only.turn.observe(payload)
      return
    }
    const event = responseEvent(payload)
    if (event !== null) this.#follow(event, payload)
  }

  paused(isPaused: boolean): void {
    for (const { running } of this.#lanes.values()) for (const { turn } of running) turn.paused(isPaused)
  }

  readOnMs(): number {
    let longestMs = 0
    for (const { waiting, running } of this.#lanes.values()) {
      for (const { turn } of [...waiting, ...running]) {
        longestMs = Math.max(longestMs, readOnMs(turn, turn.call.plan.bill, this.#gateway.onLeave))
      }
    }
    return longestMs
  }

  async end(abandoned: boolean): Promise<void> {
    this.#isOver = true
    const error = new Error('upstream closed the socket')
    const cut: CallEnd = abandoned ? { kind: 'abandoned', sent: true } : { kind: 'cut', error }
    const neverBegun: CallEnd = abandoned ? cut : { kind: 'failed', error, sent: true, whole: true }
    for (const { waiting, running, next } of this.#lanes.values()) {
      // In a lane upstream begins one response after the other.
      for (const { turn } of running) this.#settlements.add(turn.end(cut))
      for (const sent of waiting)
        this.#settlements.add(sent === next ? sent.turn.end(neverBegun) : sent.turn.reject(UNANSWERED))
    }
    for (const { sent, status } of this.#rejected.splice(0)) this.#settlements.add(sent.turn.reject(status))
    this.#lanes.clear()
    await this.#settlements.done()
  }

  #refuse(oddity: string | null, { plan }: PlannedTurn) {
    if (oddity !== null) return refuse('bad_request', oddity, { param: 'stream_id' })
    if (plan.bill.makes !== null) {
      return refuse(
        'bad_request',
        '"background" is not served over a WebSocket. Send it to POST /v1/responses.',
        {
          param: 'background',
        },
      )
    }
    return this.#running >= limits.turnsPerSocketMax ? refuseTooManyTurns() : null
  }

  #plan(facts: RequestFacts, payload: Buffer, lane: string): PlannedTurn {
    const lengthBytes = payload.length + (this.#lanes.get(lane)?.keptBytes ?? 0)
    const pieces = payload.length <= limits.turnKeptBytesMax ? payload : null
    const request = { pieces, lengthBytes, isForm: false, audioMs: null, speech: null }
    const read = { kind: 'read', body: { kind: 'none' }, facts, audio: null } as const
    return this.#planned({ read, request, endpoint: ENDPOINT })
  }

  /**
   * A steer makes upstream begin a successor of a response, which reads what that has read and written, and the steer. All else
   * is as it was requested for the response.
   */
  #planSteer({ planned, turn }: Sent, facts: RequestFacts, payload: Buffer): PlannedTurn {
    const lengthBytes = planned.request.lengthBytes + turn.bytesOut + payload.length
    const steer = this.#planned({
      ...planned,
      request: { ...planned.request, pieces: null, lengthBytes },
      read: { ...planned.read, facts: withSteer(planned.read.facts, facts) },
    })
    // Upstream may take an ambiguous steer for a request of its own.
    const ambiguity = ambiguityFor(ENDPOINT, facts)
    return { ...steer, plan: { ...steer.plan, ambiguity: ambiguity && { ...ambiguity, refuse: 'always' } } }
  }

  #planned(turn: Omit<PlannedTurn, 'plan'>): PlannedTurn {
    const exchange = { ...this.#handshake.exchange, method: 'POST' }
    const call = { ...this.#handshake, ...turn, exchange, target: TARGET }
    return { ...turn, plan: planCall(call, null, this.#gateway) }
  }

  #laneOf(name: string): ResponseLane {
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      lane = new ResponseLane()
      this.#lanes.set(name, lane)
      if (this.#lanes.size > limits.turnsPerSocketMax) this.#forgetAnother(name)
    }
    return lane
  }

  /** An idle lane is kept only for a steer of its last response. */
  #forgetAnother(than: string | null): void {
    for (const [name, { isEmpty, keptBytes }] of this.#lanes) {
      if (!isEmpty || keptBytes > 0 || name === than) continue
      this.#lanes.delete(name)
      return
    }
  }

  #findLast(responseId: string | null): Sent | null {
    for (const { last } of this.#lanes.values()) {
      if (last !== null && last.turn.responseId === responseId) return last
    }
    return null
  }

  /** The lane in which a response runs, also where an event of it names no lane. */
  #laneWith(responseId: string | null): ResponseLane | null {
    if (responseId === null) return null
    for (const lane of this.#lanes.values()) if (lane.find(responseId) !== undefined) return lane
    return null
  }

  /** The turn that an event belongs to, where only one runs. */
  #onlyRunning(): Sent | null {
    if (this.#unsolicited.length > 0 || this.#failing.size > 0) return null
    let only: Sent | null = null
    for (const { running } of this.#lanes.values()) {
      if (running.length === 0) continue
      if (only !== null || running.length > 1) return null
      only = running[0] ?? null
    }
    return only
  }

  #follow(event: ResponseEvent, payload: Buffer): void {
    const lane = this.#laneWith(event.responseId) ?? this.#laneOf(event.lane)
    switch (event.kind) {
      case 'began':
        this.#began(lane, event, payload)
        return
      case 'ended': {
        const sent = lane.find(event.responseId)
        if (sent !== undefined) this.#end(lane, sent, payload)
        else if (this.#began(lane, event, payload)) this.#follow(event, payload)
        return
      }
      case 'failed':
        this.#failed(lane, event, payload)
        return
      case 'steer_accepted':
        lane.steerAccepted()
        return
      case 'steer_failed':
      case 'steer_pending': {
        const steer = lane.steerFailed()
        if (steer === null) return
        if (event.kind === 'steer_pending') lane.keptBytes = steer.planned.request.lengthBytes
        this.#reject([steer], UNANSWERED)
        return
      }
      case 'other': {
        const sent = lane.running.at(-1)
        if (sent !== undefined) this.#clearFailing(sent)
        sent?.turn.observe(payload)
        this.#keepUnsolicited(event.lane, payload)
      }
    }
  }

  /** Whether a turn was found for the response. */
  #began(lane: ResponseLane, event: ResponseEvent, payload: Buffer): boolean {
    const known = lane.find(event.responseId)
    if (known !== undefined) {
      known.turn.observe(payload)
      return true
    }
    // A response that is settled is not billed again, nor taken for that of a request that waits.
    if (event.responseId !== null && this.#endedIds.has(event.responseId)) return false
    if (this.#keepUnsolicited(event.lane, payload, event.responseId)) return false
    const before = lane.running.at(-1)
    const sent = lane.begin(event.responseId, this.#errors > 0) ?? this.#revive(lane, event)
    if (sent === null) {
      this.#admitUnsolicited(lane, event, payload)
      return false
    }
    // In a lane one response runs at a time.
    if (before !== undefined) this.#endIfSilent(lane, before)
    if (event.kind === 'began') sent.turn.observe(payload)
    this.#reject([...lane.rejected(), ...this.#allRejected()], UNANSWERED)
    return true
  }

  #end(lane: ResponseLane, sent: Sent, payload: Buffer): void {
    lane.end(sent)
    this.#running -= 1
    this.#clearFailing(sent)
    sent.turn.observe(payload)
    this.#settle(sent)
    this.#forgetRejected()
    if (this.#lanes.size > limits.idleLanesMax) this.#forgetAnother(null)
  }

  /** An error answers a waiting message, where there is one; else it may have ended the turn that runs. */
  #failed(lane: ResponseLane, event: ResponseEvent, payload: Buffer): void {
    const running = lane.running.at(-1)
    if (event.lane !== NO_LANE && lane.waiting.length > 0) this.#reject(lane.fail(), event.status)
    else if (this.#waiting > 0) {
      this.#errors += 1
      this.#reject(this.#allRejected(), event.status)
    } else if (running !== undefined) {
      running.turn.observe(payload)
      this.#endIfSilent(lane, running)
    }
  }

  get #waiting(): number {
    let waiting = 0
    for (const lane of this.#lanes.values()) waiting += lane.waiting.length
    return waiting
  }

  /** Where there were as many errors as turns wait, all of these are over. */
  #allRejected(): readonly Sent[] {
    if (this.#errors === 0 || this.#errors < this.#waiting) return []
    this.#errors = 0
    return [...this.#lanes.values()].flatMap((lane) => lane.clear())
  }

  #endIfSilent(lane: ResponseLane, sent: Sent): void {
    this.#clearFailing(sent)
    const timer = setTimeout(() => {
      this.#failing.delete(sent)
      if (this.#isOver) return
      lane.end(sent)
      this.#running -= 1
      this.#settle(sent)
    }, limits.silentTurnMs)
    this.#failing.set(sent, timer.unref())
  }

  #settle({ turn }: Sent): void {
    if (turn.responseId !== null) this.#endedIds.add(turn.responseId)
    this.#settlements.add(turn.end())
  }

  /** An event of the turn came, so that its silence does not end it. */
  #clearFailing(sent: Sent): void {
    clearTimeout(this.#failing.get(sent))
    this.#failing.delete(sent)
  }

  #reject(turns: readonly Sent[], status: number): void {
    for (const sent of turns) {
      this.#running -= 1
      this.#rejected.push({ sent, status })
    }
    this.#forgetRejected()
    if (turns.length > 0) this.#socket?.turnEnded()
  }

  /** Rejected turns are kept only while a response could begin that they would be needed for. */
  #forgetRejected(): void {
    const keptMax = this.#running === 0 ? 0 : limits.rejectedTurnsMax
    while (this.#rejected.length > keptMax) {
      const rejected = this.#rejected.shift()
      if (rejected !== undefined) this.#settlements.add(rejected.sent.turn.reject(rejected.status))
    }
  }

  #revive(lane: ResponseLane, { lane: name, responseId }: ResponseEvent): Sent | null {
    const rejected = this.#rejected.find(({ sent }) => sent.lane === name) ?? this.#rejected[0]
    if (rejected === undefined) return null
    this.#rejected.splice(this.#rejected.indexOf(rejected), 1)
    this.#running += 1
    lane.run(rejected.sent, responseId)
    return rejected.sent
  }

  /**
   * Upstream has begun a response that no turn was admitted for. On these sockets it never does so by itself, so it has read a
   * message otherwise than the gateway. The response is billed like the last one of its lane, past any limit, and the socket
   * closes.
   */
  #admitUnsolicited(lane: ResponseLane, { lane: name, responseId }: ResponseEvent, payload: Buffer): void {
    const before = lane.last ?? [...this.#lanes.values()].findLast(({ last }) => last !== null)?.last ?? null
    const unsolicited: Unsolicited = { lane: name, responseId, events: [payload], bytes: payload.length }
    this.#unsolicited.push(unsolicited)
    const planned = before?.planned ?? this.#plan(unreadable('not_json'), Buffer.alloc(0), name)
    const adopted = admitBegunTurn(this.#handshake, planned, this.#gateway).then(async (turn) => {
      this.#unsolicited = this.#unsolicited.filter((each) => each !== unsolicited)
      if (turn === null) return
      turn.sent(Buffer.alloc(0), 'responses')
      if (this.#isOver) {
        turn.responseId = responseId
        for (const event of unsolicited.events) turn.observe(event)
        await turn.end({ kind: 'abandoned', sent: true })
        return
      }
      this.#running += 1
      this.#laneOf(name).run({ turn, planned, lane: name, isSteer: false }, responseId)
      for (const event of unsolicited.events) this.observe(event)
    })
    this.#settlements.add(
      adopted.finally(() => this.#socket?.close(1008, 'Upstream began a response that was not asked for.')),
    )
  }

  /** Whether the event belongs to an unsolicited response that is being admitted. */
  #keepUnsolicited(lane: string, payload: Buffer, responseId: string | null = null): boolean {
    const unsolicited = this.#unsolicited.find(
      (each) => each.lane === lane && (responseId === null || responseId === each.responseId),
    )
    if (unsolicited === undefined) return false
    unsolicited.events.push(payload)
    unsolicited.bytes += payload.length
    if (unsolicited.bytes > limits.unsolicitedBytesMax)
      this.#socket?.close(1013, 'The gateway cannot keep up.')
    return true
  }
}

function unreadable(reason: string): RequestFacts {
  return { kind: 'unreadable', reason }
}
