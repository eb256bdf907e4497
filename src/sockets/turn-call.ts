import { admit, admitBegun, checkAsk } from '../calls/admit.ts'
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
import { type CallPlan, rateFor } from '../calls/call-plan.ts'
import type { Answer, CallEnding, Evidence } from '../calls/evidence.ts'
import type { Hold } from '../calls/hold.ts'
import type { KeyShare } from '../calls/key-shares.ts'
import { refuseTooManyCalls } from '../calls/refusals.ts'
import { Silence } from '../calls/silence.ts'
import type { CallEnd } from '../http/upstream-call.ts'
import type { Handshake } from '../http-calls/call.ts'
import type { AbandonedReply } from '../http-calls/forward.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import { upstreamFor } from '../http-calls/own-upstreams.ts'
import { explainThrown, recordRefusal } from '../http-calls/refusals.ts'
import type { ReplyHead } from '../http-calls/reply-writer.ts'
import { OpenCall } from '../http-calls/sent-call.ts'
import type { Denial, Refusal } from '../kernel/errors.ts'
import type { Usage } from '../kernel/usage.ts'
import { NO_MODELS } from '../kernel/vocabulary.ts'
import { dayOf } from '../ledger/calendar.ts'
import type { ReplyDocument } from '../metering/json-shape.ts'
import { type EventMeter, NOTHING_SHOWN, type Shown, SilentMeter } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createEventMeter } from '../providers/surfaces.ts'

export type UnadmittedTurn =
  | ({ readonly kind: 'refused'; readonly requestId: string } & Denial)
  | { readonly kind: 'client_left' }

export type AdmittedTurn = { readonly kind: 'admitted'; readonly turn: TurnCall } | UnadmittedTurn

/** Admits the turns of a socket as separate calls, each with an id, a hold and a record. */
export class TurnAdmission {
  readonly #handshake: Handshake
  readonly #gateway: Gateway

  constructor(handshake: Handshake, gateway: Gateway) {
    this.#handshake = handshake
    this.#gateway = gateway
  }

  /** `isStanding`: takes a hold for a turn that has not begun, which the request log does not show. */
  async admit(work: Work, isStanding = false): Promise<AdmittedTurn> {
    const { keyShares } = this.#gateway
    const share = keyShares.enter(this.#handshake.caller.digest)
    if (share === null) return this.refuse(work, refuseTooManyCalls(keyShares.callsMax), isStanding)
    const ask = this.#askFor(work, isStanding)
    const admission = await admit(ask, this.#gateway).catch((error: unknown) => this.#explain(error, ask))
    if (admission.kind === 'admitted') {
      this.#gateway.reached('admitted')
      return { kind: 'admitted', turn: this.#turnOf(admission.hold, share) }
    }
    keyShares.leave(share)
    return admission.kind === 'refused' ? this.#refuseAsk(ask, admission) : admission
  }

  /** Admits a turn that upstream has begun. It costs money, so no limit refuses it. Null: it cannot be billed. */
  async admitBegun(work: Work): Promise<TurnCall | null> {
    const { keyShares, log } = this.#gateway
    const profile: CallPlan = { ...work.profile, hold: { kind: 'none' }, unratable: null, models: NO_MODELS }
    const ask = this.#askFor({ ...work, profile, ambiguity: null }, false)
    const share = keyShares.enterUnlimited(this.#handshake.caller.digest)
    const hold = await admitBegun(ask, this.#gateway).catch((error: unknown) => {
      this.#explain(error, ask)
      return null
    })
    if (hold !== null) return this.#turnOf(hold, share)
    keyShares.leave(share)
    const about = { request: ask.requestId, socket: ask.socketId }
    log.error(about, 'upstream began a turn without a request, and it cannot be billed')
    return null
  }

  /** The call goes to the upstream of its account, like an HTTP request. */
  #turnOf(hold: Hold, share: KeyShare): TurnCall {
    const { upstream: own, accountId } = hold.terms
    const upstream = upstreamFor(accountId, own, hold.ask.surface, this.#gateway) ?? this.#handshake.upstream
    if (own !== null) hold.uses(upstream.key)
    return new TurnCall({ ...this.#handshake, upstream }, hold, share, this.#gateway)
  }

  /** Checks a turn that takes over a hold, or the models of a message, as admission would. Records nothing. */
  check(work: Work, isStanding = false) {
    const ask = this.#askFor(work, isStanding)
    return checkAsk(ask, this.#gateway).catch((error: unknown) => this.#explain(error, ask))
  }

  /** A socket stays open while the database is unavailable. */
  #explain(error: unknown, { requestId }: Ask) {
    return refused(explainThrown(error, requestId, this.#gateway.log))
  }

  refuse(work: Work, refusal: Refusal, isStanding = false) {
    return this.#refuseAsk(this.#askFor(work, isStanding), refused(refusal))
  }

  #refuseAsk(ask: Ask, denial: Denial) {
    const { headers } = this.#handshake.exchange
    if (ask.isStanding !== true)
      recordRefusal(ask, denial.refusal, this.#gateway, headers, ask.profile.modelAsked)
    return { ...denial, kind: 'refused', requestId: ask.requestId } as const
  }

  #askFor(work: Work, isStanding: boolean): Ask {
    const { requestId: socketId, caller, surface, path } = this.#handshake
    const requestId = this.#gateway.nextRequestId()
    return { ...work, requestId, caller, surface, method: 'WS', path, socketId, isStanding }
  }
}

function refused(refusal: Refusal) {
  return { kind: 'refused', refusal, balanceNanos: null } as const
}

const OK_HEAD: ReplyHead = { status: 200, reason: 'OK', headers: ['content-type', 'text/event-stream'] }
const OK: Answer = { status: 200, contentType: 'text/event-stream', upstreamRequestId: null }
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

  constructor({ ask, ...handshake }: Handshake, hold: Hold, share: KeyShare, gateway: Gateway) {
    const read = {
      kind: 'read',
      body: { kind: 'none' },
      facts: hold.ask.bytes.facts,
      unreadable: null,
    } as const
    super({ ...handshake, ...hold.ask, read, hold, share }, gateway.clock.monotonicMs(), gateway)
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
      ask.profile.priceVersion === work.profile.priceVersion &&
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

  #evidence(end: CallEnding, answer: Answer | null): Evidence {
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
  #close(end: CallEnding, answer: Answer | null, makeBill: () => Promise<Bill | null>): Promise<Bill | null> {
    this.#ended ??= this.#settle(end, answer, makeBill)
    return this.#ended
  }

  async #settle(
    end: CallEnding,
    answer: Answer | null,
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
      this.removeInFlight(answer === null ? null : { ...OK_HEAD, status: answer.status }, end === 'complete')
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
