import type { CallEnd } from '../../http/upstream-call.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Denial, Refusal } from '../../kernel/errors.ts'
import type { Usage } from '../../kernel/usage.ts'
import { HOLD_METHOD } from '../../ledger/call.ts'
import { type Meter, type Metered, SilentMeter } from '../../metering/meter.ts'
import type { UsageReader } from '../../providers/endpoint.ts'
import { createMeter } from '../../providers/surfaces.ts'
import { type AdmitResult, admit, admitBegun, checkCall } from '../admit.ts'
import type { ReplyHead } from '../answer.ts'
import {
  type Bill,
  billCall,
  billUsage,
  billWithoutCost,
  isPlausible,
  NOTHING_BILLED,
  storedId,
} from '../bill.ts'
import { BodyTaps } from '../body-taps.ts'
import type { AdmittedCall, PlannedCall, ReadCall } from '../call.ts'
import { type ReplyTimes, Silence } from '../estimates.ts'
import type { LeftReply } from '../forward.ts'
import type { Gateway } from '../gateway.ts'
import type { CallPlan } from '../pricer.ts'
import { explainThrown, refuseTooManyCalls } from '../refusals.ts'
import { endedCall, passedBy, recordRefusal, settleCall } from '../sent-call.ts'

export interface PlannedTurn extends Pick<ReadCall, 'read' | 'request' | 'endpoint'> {
  readonly plan: CallPlan
}

export type AdmittedTurn = { readonly kind: 'admitted'; readonly turn: TurnCall } | UnadmittedTurn

export type UnadmittedTurn =
  | ({ readonly kind: 'refused'; readonly requestId: string } & Denial)
  | { readonly kind: 'client_left' }

/** A turn of a socket as a call of its own, with an id, a hold and a record. `handshake` is the call that opened the socket. */
function turnOf(handshake: PlannedCall, turn: PlannedTurn, gateway: Gateway, method = 'WS'): PlannedCall {
  const { exchange } = handshake
  const requestId = gateway.nextRequestId()
  return {
    ...handshake,
    ...turn,
    socketId: exchange.requestId,
    exchange: { ...exchange, requestId, method, startedMs: gateway.clock.monotonicMs() },
  }
}

/** Admits a hold for a turn that has not begun. Neither the hold nor its refusal appears in the request log. */
export function admitHold(
  handshake: PlannedCall,
  planned: PlannedTurn,
  gateway: Gateway,
): Promise<AdmittedTurn> {
  return admitTurn(handshake, planned, gateway, HOLD_METHOD)
}

export async function admitTurn(
  handshake: PlannedCall,
  planned: PlannedTurn,
  gateway: Gateway,
  method = 'WS',
): Promise<AdmittedTurn> {
  const isRecorded = method !== HOLD_METHOD
  const { keyShares } = gateway
  const share = keyShares.enter(handshake.digest)
  if (share === null)
    return refuseTurn(handshake, planned, refuseTooManyCalls(keyShares.callsMax), gateway, isRecorded)
  const call = { ...turnOf(handshake, planned, gateway, method), share }
  const admission = await explained(call, admit(call, gateway), gateway)
  if (admission.kind === 'admitted') {
    gateway.reached('admitted')
    return { kind: 'admitted', turn: new TurnCall({ ...call, admission }, gateway) }
  }
  keyShares.leave(share)
  return notAdmitted(call, admission, gateway, isRecorded)
}

/** Admits a turn that upstream has begun. It costs money, so no limit refuses it. Null: it cannot be billed. */
export async function admitBegunTurn(
  handshake: PlannedCall,
  planned: PlannedTurn,
  gateway: Gateway,
): Promise<TurnCall | null> {
  const models = { names: [], unknown: null, batchFile: null }
  const plan: CallPlan = { ...planned.plan, hold: { kind: 'none' }, unratable: null, models }
  const begun = { ...planned, plan, read: { ...planned.read, unreadable: null } }
  const share = gateway.keyShares.enterInAnyCase(handshake.digest)
  const call = { ...turnOf(handshake, begun, gateway), share }
  const admission = await admitBegun(call, gateway).catch((error: unknown) => {
    explainThrown(error, call.exchange.requestId, gateway.log)
    return null
  })
  if (admission?.kind === 'admitted') return new TurnCall({ ...call, admission }, gateway)
  gateway.keyShares.leave(share)
  const about = { request: call.exchange.requestId, socket: call.socketId }
  gateway.log.error(about, 'upstream began a turn that was not asked for, and it cannot be billed')
  return null
}

/** A socket survives a store outage. */
function explained(call: PlannedCall, asked: Promise<AdmitResult>, gateway: Gateway): Promise<AdmitResult> {
  return asked.catch((error: unknown) => {
    const refusal = explainThrown(error, call.exchange.requestId, gateway.log)
    return { kind: 'refused', refusal, balanceNanos: null }
  })
}

/** Checks a turn that takes over a hold, or the models of a message, as admission would. Null: it may go upstream. */
export async function checkTurn(
  handshake: PlannedCall,
  planned: PlannedTurn,
  gateway: Gateway,
  isRecorded: boolean,
  method = 'WS',
): Promise<UnadmittedTurn | null> {
  const call = turnOf(handshake, planned, gateway, method)
  const admission = await explained(call, checkCall(call, gateway), gateway)
  return admission.kind === 'admitted' ? null : notAdmitted(call, admission, gateway, isRecorded)
}

/** Whether the limits still permit the socket's hold. Counts as no request and leaves no record. */
export function checkHold(
  handshake: PlannedCall,
  planned: PlannedTurn,
  gateway: Gateway,
): Promise<UnadmittedTurn | null> {
  return checkTurn(handshake, planned, gateway, false, HOLD_METHOD)
}

function notAdmitted(
  call: PlannedCall,
  admission: Exclude<AdmitResult, { kind: 'admitted' }>,
  gateway: Gateway,
  isRecorded: boolean,
): UnadmittedTurn {
  if (admission.kind === 'client_left') return admission
  if (isRecorded) recordRefusal(call, admission.refusal, gateway, call.plan.modelAsked)
  return { ...admission, requestId: call.exchange.requestId }
}

export function refuseTurn(
  handshake: PlannedCall,
  planned: PlannedTurn,
  refusal: Refusal,
  gateway: Gateway,
  isRecorded = true,
): AdmittedTurn & { readonly kind: 'refused' } {
  const call = turnOf(handshake, planned, gateway)
  if (isRecorded) recordRefusal(call, refusal, gateway, call.plan.modelAsked)
  return { kind: 'refused', refusal, requestId: call.exchange.requestId, balanceNanos: null }
}

const OK_HEAD: ReplyHead = { status: 200, reason: 'OK', headers: ['content-type', 'text/event-stream'] }
const COMPLETE: CallEnd = { kind: 'complete', trailers: [] }

/** An admitted turn. It has a hold, which `end`, `endWith`, `reject` or `release` closes, once. */
export class TurnCall implements LeftReply {
  call: AdmittedCall
  #responseId: string | null = null
  readonly #gateway: Gateway
  readonly #taps: BodyTaps
  readonly #events: TurnEvents
  #startedMs: number
  #bytesOut = 0
  #ended: Promise<void> | null = null

  constructor(call: AdmittedCall, gateway: Gateway) {
    this.call = call
    this.#gateway = gateway
    this.#startedMs = gateway.clock.monotonicMs()
    this.#taps = new BodyTaps(call, gateway)
    this.#events = new TurnEvents(gateway.clock, (framed) => this.#taps.received(framed))
    gateway.inFlight.count += 1
  }

  readonly isStreamed = true
  readonly isError = false

  get isNearlyDone(): boolean {
    return this.#events.meter.stage !== 'content'
  }

  get shown() {
    return this.#events.meter.shown
  }

  get bytesOut(): number {
    return this.#bytesOut
  }

  /** Upstream has begun the response. Until its turn is settled the response cannot be deleted. */
  began(responseId: string | null): void {
    this.#responseId = responseId
    if (responseId !== null) this.#gateway.deferrals.streaming.add(responseId)
  }

  /** Begins a turn that was admitted in advance. Its time counts from now. */
  startNow(): void {
    this.#startedMs = this.#gateway.clock.monotonicMs()
    this.call = {
      ...this.call,
      exchange: { ...this.call.exchange, method: 'WS', startedMs: this.#startedMs },
    }
  }

  /** The message that begins the turn was sent; null: upstream began the turn. `reader` reads the usage in its events. */
  sent(payload: Buffer | null, reader: UsageReader | null): void {
    this.#gateway.reached('before_send')
    if (payload !== null) this.#taps.sent(payload)
    if (reader !== null)
      this.#events.readWith(createMeter(reader, { status: 200, contentType: 'text/event-stream' }))
  }

  observe(event: Buffer): void {
    if (this.#ended !== null) return
    if (this.#bytesOut === 0) this.#gateway.reached('first_byte')
    this.#bytesOut += event.length
    this.#events.observe(event)
  }

  paused(isPaused: boolean): void {
    this.#events.paused(isPaused)
  }

  end(end: CallEnd = COMPLETE): Promise<void> {
    // Upstream has answered once the response begins.
    const head = end.kind === 'complete' || this.#responseId !== null ? OK_HEAD : null
    return this.#close(end, head, async () => {
      const { metered: observed, times } = this.#events.end(end.kind === 'complete')
      const elapsedMs = this.#gateway.clock.monotonicMs() - this.#startedMs
      const id = storedId(this.call, observed, end)
      const { deferrals } = this.#gateway
      const stored =
        id === null ? null : await deferrals.findStored(this.call, id, OK_HEAD, this.#passed(elapsedMs))
      if (stored?.kind === 'deferred') return null
      const outcome = { end, head, metered: observed, bytesOut: this.#bytesOut, times, elapsedMs }
      return await billCall(this.call, { ...outcome, stored }, this.#gateway)
    })
  }

  /** Ends the turn with this usage. Implausible usage is billed like a cut turn. */
  endWith(usage: Usage, end: CallEnd = COMPLETE): Promise<void> {
    const { plan, admission } = this.call
    const rated = plan.rate(usage, admission.terms)
    if (!isPlausible(usage, rated))
      return this.end({ kind: 'cut', error: new Error('the usage cannot be true') })
    return this.#close(end, OK_HEAD, async () => {
      // The body taps must see the last events.
      this.#events.end(end.kind === 'complete')
      return { ...billUsage(usage, rated), status: plan.metered ? 200 : null }
    })
  }

  reject(status: number): Promise<void> {
    const head = { ...OK_HEAD, status }
    return this.#close(COMPLETE, head, async () => ({ ...NOTHING_BILLED, state: 'settled', status }))
  }

  release(): Promise<void> {
    return this.#close({ kind: 'abandoned', sent: false }, null, async () => NOTHING_BILLED)
  }

  /** Only the first close counts. A null bill means that the cost comes later. */
  #close(end: CallEnd, head: ReplyHead | null, bill: () => Promise<Bill | null>): Promise<void> {
    this.#ended ??= this.#settle(end, head, bill)
    return this.#ended
  }

  async #settle(end: CallEnd, head: ReplyHead | null, makeBill: () => Promise<Bill | null>): Promise<void> {
    const upstreamMs = this.#gateway.clock.monotonicMs() - this.#startedMs
    const whole = end.kind === 'complete'
    try {
      let bill: Bill | null
      try {
        bill = await makeBill()
      } catch (defect) {
        await this.#store(NOTHING_BILLED, upstreamMs)
        throw defect
      }
      this.#gateway.reached('before_settle')
      if (bill !== null) await this.#store(bill, upstreamMs)
      this.#gateway.reached('settled')
      const shown = bill ?? billWithoutCost(head)
      this.#gateway.observeCall?.(endedCall(this.call, shown, end, this.#gateway))
    } finally {
      if (this.#responseId !== null) this.#gateway.deferrals.streaming.delete(this.#responseId)
      this.#taps.callOver(head, whole)
      this.#gateway.inFlight.count -= 1
      this.#gateway.keyShares.leave(this.call.share)
      this.call = { ...this.call, request: { ...this.call.request, pieces: null } }
    }
  }

  #passed(upstreamMs: number) {
    const bytes = { bytesIn: this.#taps.sentBytes, bytesOut: this.#bytesOut }
    return passedBy(this.call, { ...bytes, streamed: true, upstreamMs }, this.#gateway)
  }

  async #store(bill: Bill, upstreamMs: number): Promise<void> {
    await settleCall(this.call, bill, this.#passed(upstreamMs), upstreamMs, this.#gateway)
  }
}

const [DATA, EVENT_END] = [Buffer.from('data: '), Buffer.from('\n\n')]
const [LINE_FEED, CARRIAGE_RETURN, BLANK] = [0x0a, 0x0d, 0x20]

/** The events of a turn, converted to server-sent events for the meter. */
export class TurnEvents {
  readonly #clock: Clock
  readonly #onRead: (framed: Buffer) => void
  readonly #silence = new Silence()
  #meter: Meter = new SilentMeter()

  constructor(clock: Clock, onRead: (framed: Buffer) => void) {
    this.#clock = clock
    this.#onRead = onRead
  }

  get meter(): Pick<Meter, 'stage' | 'shown' | 'visibleBytes'> {
    return this.#meter
  }

  readWith(meter: Meter): void {
    this.#meter = meter
  }

  /** Observes an event, as JSON. Silence is measured by arrival times. */
  observe(event: Buffer): void {
    const nowMs = this.#clock.monotonicMs()
    const framed = Buffer.concat([DATA, inOneLine(event), EVENT_END])
    this.#onRead(framed)
    this.#meter.write(framed)
    this.#silence.see(this.#meter.visibleBytes, nowMs)
  }

  paused(isPaused: boolean): void {
    const nowMs = this.#clock.monotonicMs()
    if (isPaused) this.#silence.pause(nowMs)
    else this.#silence.resume(nowMs)
  }

  end(whole: boolean): { readonly metered: Metered; readonly times: ReplyTimes } {
    return { times: this.#silence.timesAt(this.#clock.monotonicMs()), metered: this.#meter.end(whole) }
  }
}

/** JSON may contain line breaks between its tokens, which would end a line of the stream. */
function inOneLine(event: Buffer): Buffer {
  if (!event.includes(LINE_FEED) && !event.includes(CARRIAGE_RETURN)) return event
  return Buffer.from(event).map((byte) =>
    byte === LINE_FEED || byte === CARRIAGE_RETURN ? BLANK : byte,
  ) as Buffer
}
