import { type AdmitResult, admit, admitBegun, checkCall, upstreamOfAdmission } from '../calls/admit.ts'
import {
  type Bill,
  billCall,
  billUsage,
  billWithoutCost,
  isPlausible,
  NOTHING_BILLED,
  storedResponseId,
} from '../calls/bill.ts'
import { Silence } from '../calls/estimates.ts'
import type { CallPlan } from '../calls/pricer.ts'
import type { CallEnd } from '../http/upstream-call.ts'
import type { AdmittedCall, PlannedCall, ReadCall } from '../http-calls/call.ts'
import type { AbandonedReply } from '../http-calls/forward.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import { explainThrown, recordRefusal, refuseTooManyCalls } from '../http-calls/refusals.ts'
import type { ReplyHead } from '../http-calls/reply.ts'
import { OpenCall } from '../http-calls/sent-call.ts'
import type { Denial, Refusal } from '../kernel/errors.ts'
import type { Usage } from '../kernel/usage.ts'
import { NO_MODELS } from '../kernel/vocabulary.ts'
import { dayOf } from '../ledger/calendar.ts'
import { HOLD_METHOD } from '../ledger/call.ts'
import type { ReplyDocument } from '../metering/json-shape.ts'
import { type EventMeter, NOTHING_SHOWN, type Shown, SilentMeter } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createEventMeter } from '../providers/surfaces.ts'

export interface PlannedTurn extends Pick<ReadCall, 'read' | 'request' | 'endpoint'> {
  readonly plan: CallPlan
}

export type UnadmittedTurn =
  | ({ readonly kind: 'refused'; readonly requestId: string } & Denial)
  | { readonly kind: 'client_left' }

export type AdmittedTurn = { readonly kind: 'admitted'; readonly turn: TurnCall } | UnadmittedTurn

/** Admits the turns of a socket as separate calls, each with an id, a hold and a record. */
export class TurnAdmission {
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway

  constructor(handshake: PlannedCall, gateway: Gateway) {
    this.#handshake = handshake
    this.#gateway = gateway
  }

  /** `HOLD_METHOD`: takes a hold for a turn that has not begun, which the request log does not show. */
  async admit(planned: PlannedTurn, method = 'WS'): Promise<AdmittedTurn> {
    const { keyShares } = this.#gateway
    const share = keyShares.enter(this.#handshake.digest)
    if (share === null) return this.refuse(planned, refuseTooManyCalls(keyShares.callsMax), method)
    const call = { ...this.#callOf(planned, method), share }
    const admission = await admit(call, this.#gateway).catch((error: unknown) => this.#explain(error, call))
    if (admission.kind === 'admitted') {
      this.#gateway.reached('admitted')
      return { kind: 'admitted', turn: this.#turnOf(call, admission) }
    }
    keyShares.leave(share)
    return admission.kind === 'refused' ? this.#refuseCall(call, admission) : admission
  }

  /** Admits a turn that upstream has begun. It costs money, so no limit refuses it. Null: it cannot be billed. */
  async admitBegun(planned: PlannedTurn): Promise<TurnCall | null> {
    const { keyShares, log } = this.#gateway
    const plan: CallPlan = { ...planned.plan, hold: { kind: 'none' }, unratable: null, models: NO_MODELS }
    const share = keyShares.enterUnlimited(this.#handshake.digest)
    const read = { ...planned.read, unreadable: null }
    const call = { ...this.#callOf({ ...planned, plan, read }), share }
    const begun = await admitBegun(call, this.#gateway).catch((error: unknown) => this.#explain(error, call))
    if (begun.kind === 'admitted') return this.#turnOf(call, begun)
    keyShares.leave(share)
    const about = { request: call.exchange.requestId, socket: call.socketId }
    log.error(about, 'upstream began a turn without a request, and it cannot be billed')
    return null
  }

  /** The call goes to the upstream of its account, like an HTTP request. */
  #turnOf(call: Omit<AdmittedCall, 'admission'>, admission: AdmittedCall['admission']): TurnCall {
    const upstream = upstreamOfAdmission(call, admission, this.#gateway)
    return new TurnCall({ ...call, admission, ...upstream }, this.#gateway)
  }

  /** Checks a turn that takes over a hold, or the models of a message, as admission would. Records nothing. */
  check(planned: PlannedTurn, method = 'WS'): Promise<AdmitResult> {
    const call = this.#callOf(planned, method)
    return checkCall(call, this.#gateway).catch((error: unknown) => this.#explain(error, call))
  }

  /** A socket stays open while the database is unavailable. */
  #explain(error: unknown, { exchange }: PlannedCall) {
    return refused(explainThrown(error, exchange.requestId, this.#gateway.log))
  }

  refuse(planned: PlannedTurn, refusal: Refusal, method = 'WS') {
    return this.#refuseCall(this.#callOf(planned, method), refused(refusal))
  }

  #refuseCall(call: PlannedCall, denial: Denial) {
    const { requestId, method } = call.exchange
    if (method !== HOLD_METHOD) recordRefusal(call, denial.refusal, this.#gateway, call.plan.modelAsked)
    return { ...denial, kind: 'refused', requestId } as const
  }

  #callOf(turn: PlannedTurn, method = 'WS'): PlannedCall {
    const { exchange } = this.#handshake
    const requestId = this.#gateway.nextRequestId()
    const startedMs = this.#gateway.clock.monotonicMs()
    return {
      ...this.#handshake,
      ...turn,
      socketId: exchange.requestId,
      exchange: { ...exchange, requestId, method, startedMs },
    }
  }
}

function refused(refusal: Refusal) {
  return { kind: 'refused', refusal, balanceNanos: null } as const
}

const OK_HEAD: ReplyHead = { status: 200, reason: 'OK', headers: ['content-type', 'text/event-stream'] }
const [DATA, EVENT_END] = [Buffer.from('data: '), Buffer.from('\n\n')]
const COMPLETE: CallEnd = { kind: 'complete', trailers: [] }

/** An admitted turn. It has a hold, which `end`, `endWith`, `reject` or `release` closes, once. */
export class TurnCall extends OpenCall implements AbandonedReply {
  readonly isError = false
  readonly #admittedMs: number
  /** Reads the usage in the events; null if it is stated otherwise. */
  #meter: EventMeter | null = null
  readonly #silence = new Silence()
  #hasResponse = false
  bytesOut = 0
  #ended: Promise<void> | null = null

  constructor(call: AdmittedCall, gateway: Gateway) {
    super(call, gateway)
    this.#admittedMs = gateway.clock.nowMs()
  }

  get isNearlyDone(): boolean {
    return (this.#meter?.stage ?? 'content') !== 'content'
  }

  get shown(): Shown {
    return this.#meter?.shown ?? NOTHING_SHOWN
  }

  began(responseId: string | null): void {
    if (responseId === null) return
    this.#hasResponse = true
    this.markStreaming(responseId)
  }

  /** Whether a turn that was admitted in advance may begin now: same discount, same prices, same day. */
  isUpToDate(planned: PlannedTurn, checked: AdmitResult & { readonly kind: 'admitted' }): boolean {
    const { plan, admission } = this.call
    const discount = admission.terms?.discountBillionths ?? null
    return (
      discount === (checked.terms?.discountBillionths ?? null) &&
      plan.priceVersion === planned.plan.priceVersion &&
      dayOf(this.#admittedMs) === dayOf(this.gateway.clock.nowMs())
    )
  }

  /** Begins a turn that was admitted in advance. Its time counts from now. */
  startNow(): this {
    this.sentMs = this.gateway.clock.monotonicMs()
    const exchange = { ...this.call.exchange, method: 'WS', startedMs: this.sentMs }
    this.call = { ...this.call, exchange }
    return this
  }

  /** Called when the message that begins the turn was sent; null if upstream began it. `reader` reads its events. */
  sent(payload: Buffer | null, reader: UsageReader | null): void {
    this.gateway.reached('before_send')
    if (payload !== null) this.bodySent(payload)
    if (reader !== null) this.#meter = createEventMeter(reader)
  }

  /** Observes an event: its bytes, and its content if it is JSON. Silence is measured by arrival times. */
  observe(event: Buffer, document: ReplyDocument | null): void {
    if (this.#ended !== null) return
    this.gateway.reached('first_byte')
    this.bytesOut += event.length
    this.taps?.received(Buffer.concat([DATA, event, EVENT_END]))
    if (document !== null) this.#meter?.read(document)
    this.#silence.recordOutput(this.#meter?.visibleBytes ?? 0, this.gateway.clock.monotonicMs())
  }

  paused(isPaused: boolean): void {
    const nowMs = this.gateway.clock.monotonicMs()
    if (isPaused) this.#silence.pause(nowMs)
    else this.#silence.resume(nowMs)
  }

  end(end: CallEnd = COMPLETE): Promise<void> {
    // If the response has begun, upstream has answered.
    const head = end.kind === 'complete' || this.#hasResponse ? OK_HEAD : null
    return this.#close(end, head, async () => {
      const metered = this.#meter?.end() ?? new SilentMeter().end(end.kind === 'complete')
      const times = this.#silence.timesAt(this.gateway.clock.monotonicMs())
      const elapsedMs = this.gateway.clock.monotonicMs() - this.sentMs
      const id = storedResponseId(this.call, metered, end)
      const transfer = this.transfer(elapsedMs, true, this.bytesOut)
      const stored =
        id === null ? null : await this.gateway.deferrals.findStoredResponse(this.call, id, OK_HEAD, transfer)
      if (stored?.kind === 'deferred') return null
      const outcome = { end, head, metered, bytesOut: this.bytesOut, times, elapsedMs, stored }
      return await billCall(this.call, outcome, this.gateway)
    })
  }

  /** Ends the turn with this usage. Implausible usage is billed like a cut turn. */
  endWith(usage: Usage, end: CallEnd = COMPLETE): Promise<void> {
    const { plan, admission } = this.call
    const rated = plan.rate(usage, admission.terms)
    if (!isPlausible(usage, rated))
      return this.end({ kind: 'cut', error: new Error('the usage cannot be true') })
    return this.#close(end, OK_HEAD, async () => ({
      ...billUsage(usage, rated),
      status: plan.metered ? 200 : null,
    }))
  }

  reject(status: number): Promise<void> {
    const head = { ...OK_HEAD, status }
    return this.#close(COMPLETE, head, async () => ({ ...NOTHING_BILLED, state: 'settled', status }))
  }

  release(): Promise<void> {
    return this.#close({ kind: 'abandoned', sent: false }, null, async () => NOTHING_BILLED)
  }

  /** Only the first close counts. A null bill means that the cost comes later. */
  #close(end: CallEnd, head: ReplyHead | null, makeBill: () => Promise<Bill | null>): Promise<void> {
    this.#ended ??= this.#settle(end, head, makeBill)
    return this.#ended
  }

  async #settle(end: CallEnd, head: ReplyHead | null, makeBill: () => Promise<Bill | null>): Promise<void> {
    const upstreamMs = this.gateway.clock.monotonicMs() - this.sentMs
    const settle = (bill: Bill) =>
      this.settleHold(bill, this.transfer(upstreamMs, true, this.bytesOut), upstreamMs)
    try {
      const bill = await makeBill().catch(async (defect: unknown) => {
        await settle(NOTHING_BILLED)
        throw defect
      })
      this.gateway.reached('before_settle')
      if (bill !== null) await settle(bill)
      this.gateway.reached('settled')
      this.report(bill ?? billWithoutCost(head), end)
    } finally {
      this.removeInFlight(head, end.kind === 'complete')
      this.gateway.keyShares.leave(this.call.share)
      this.call = { ...this.call, request: { ...this.call.request, pieces: [] } }
    }
  }
}
