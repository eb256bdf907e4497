import type { Ask, Work } from '../calls/ask.ts'
import {
  type Bill,
  billCall,
  billUsage,
  billWithoutCost,
  isPlausible,
  NOTHING_BILLED,
  storedResponseId,
} from '../calls/bill.ts'
import { rateFor } from '../calls/call-plan.ts'
import type { AnswerHead, CallEnding, Evidence } from '../calls/evidence.ts'
import { Silence } from '../calls/silence.ts'
import type { CallEnd } from '../http/upstream-call.ts'
import type { CarriedCall } from '../http-calls/call.ts'
import type { AbandonedReply } from '../http-calls/forward.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import { OpenCall } from '../http-calls/sent-call.ts'
import type { Usage } from '../kernel/usage.ts'
import { dayOf } from '../ledger/calendar.ts'
import type { ReplyDocument } from '../metering/json-shape.ts'
import { type EventMeter, NOTHING_SHOWN, type Shown, SilentMeter } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createEventMeter } from '../providers/surfaces.ts'

const OK: AnswerHead = { status: 200, contentType: 'text/event-stream', upstreamRequestId: null }
/** The events of a turn are logged as the stream that HTTP would have sent. */
const LOGGED_HEADERS = ['content-type', OK.contentType]
const [DATA, EVENT_END] = [Buffer.from('data: '), Buffer.from('\n\n')]

/** An admitted turn. It has a hold, which `end`, `endWith`, `reject` or `release` closes, once. */
export class TurnCall extends OpenCall implements AbandonedReply {
  readonly isError = false
  readonly #admittedMs: number
  /** Reads the usage in the events; null if it is stated otherwise. */
  #meter: EventMeter | null = null
  readonly #silence = new Silence()
  #hasResponse = false
  bytesOut = 0
  #ended: Promise<Bill | null> | null = null

  constructor(call: CarriedCall, gateway: Gateway) {
    super(call, gateway.clock.monotonicMs(), gateway)
    this.#admittedMs = gateway.clock.nowMs()
  }

  get ask(): Ask {
    return this.call.hold.ask
  }

  get isNearlyDone(): boolean {
    return (this.#meter?.stage ?? 'content') !== 'content'
  }

  get shown(): Shown {
    return this.#meter?.shown ?? NOTHING_SHOWN
  }

  began(responseId: string | null): void {
    this.#hasResponse = true
    if (responseId !== null) this.markStreaming(responseId)
  }

  /** Whether a turn that was admitted in advance may begin now: same discount, same prices, same day. */
  isUpToDate(work: Work, discountBillionths: number | null): boolean {
    const { ask, terms } = this.call.hold
    return (
      terms.discountBillionths === discountBillionths &&
      ask.profile.version.id === work.profile.version.id &&
      dayOf(this.#admittedMs) === dayOf(this.gateway.clock.nowMs())
    )
  }

  /** Begins a turn that was admitted in advance. Its time counts from now. */
  startNow(): this {
    this.sentMs = this.gateway.clock.monotonicMs()
    this.startedMs = this.sentMs
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

  /** Upstream sent an error that names no turn, and ended this one. */
  failed({ document }: { readonly document: ReplyDocument | null }): void {
    if (document !== null) this.#meter?.read(document)
  }

  paused(isPaused: boolean): void {
    const nowMs = this.gateway.clock.monotonicMs()
    if (isPaused) this.#silence.pause(nowMs)
    else this.#silence.resume(nowMs)
  }

  end(end: CallEnding = 'complete'): Promise<Bill | null> {
    // If the response has begun, upstream has answered.
    const answer = end === 'complete' || this.#hasResponse ? OK : null
    return this.#close(end, answer, async () => {
      const { hold, upstream } = this.call
      const evidence = this.#evidence(end, answer)
      const id = storedResponseId(hold.ask.profile, evidence.metered, end)
      if (id === null) return await billCall(hold, evidence, this.gateway)
      const transfer = this.transfer(evidence.times.elapsedMs, true, this.bytesOut)
      const stored = await this.gateway.deferrals.findStoredResponse(hold, upstream, id, OK, transfer)
      return stored.kind === 'deferred' ? null : await billCall(hold, { ...evidence, stored }, this.gateway)
    })
  }

  #evidence(end: CallEnding, answer: AnswerHead | null): Evidence {
    const nowMs = this.gateway.clock.monotonicMs()
    return {
      end,
      answer,
      metered: this.#meter?.end() ?? new SilentMeter().end(end === 'complete'),
      delivered: this.bytesOut,
      times: { ...this.#silence.timesAt(nowMs), elapsedMs: nowMs - this.sentMs },
    }
  }

  /** Ends the turn with this usage. Implausible usage is billed like a cut turn. */
  endWith(usage: Usage, end: CallEnding = 'complete'): Promise<Bill | null> {
    const { ask, terms } = this.call.hold
    const rated = rateFor(ask.profile, usage, terms)
    if (!isPlausible(usage, rated)) {
      this.#hasResponse = true
      return this.end('broken')
    }
    return this.#close(end, OK, async () => ({
      ...billUsage(usage, rated),
      status: ask.profile.metered ? 200 : null,
    }))
  }

  reject(status: number): Promise<Bill | null> {
    const answer = { ...OK, status }
    return this.#close('complete', answer, async () => billWithoutCost(answer))
  }

  release(): Promise<Bill | null> {
    return this.#close('unsent', null, async () => NOTHING_BILLED)
  }

  /** Only the first close counts. A null bill means that the cost comes later. */
  #close(
    end: CallEnding,
    answer: AnswerHead | null,
    makeBill: () => Promise<Bill | null>,
  ): Promise<Bill | null> {
    this.#ended ??= this.#settle(end, answer, makeBill)
    return this.#ended
  }

  async #settle(
    end: CallEnding,
    answer: AnswerHead | null,
    makeBill: () => Promise<Bill | null>,
  ): Promise<Bill | null> {
    const upstreamMs = this.gateway.clock.monotonicMs() - this.sentMs
    const transfer = () => this.transfer(upstreamMs, true, this.bytesOut)
    const { hold } = this.call
    hold.sending(() => ({ evidence: this.#evidence(end, answer), transfer: transfer() }))
    try {
      await using _hold = hold
      const bill = await makeBill()
      this.gateway.reached('before_settle')
      if (bill !== null) await hold.settle(bill, transfer())
      this.gateway.reached('settled')
      this.report(bill ?? billWithoutCost(answer), END_OF[end])
      return bill
    } finally {
      this.removeInFlight(answer && { status: answer.status, headers: LOGGED_HEADERS }, end === 'complete')
      this.gateway.keyShares.leave(this.call.share)
      hold.forgetBody()
    }
  }
}

const END_OF: Readonly<Record<CallEnding, CallEnd>> = {
  complete: { kind: 'complete', trailers: [] },
  left: { kind: 'abandoned', sent: true },
  unsent: { kind: 'abandoned', sent: false },
  broken: { kind: 'cut', error: new Error('upstream closed the socket') },
}
