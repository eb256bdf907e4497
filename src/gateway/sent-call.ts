import { clientLeft, type Exchange, sendWhole } from '../http/exchange.ts'
import type { CallEnd } from '../http/upstream-call.ts'
import { type ErrorCode, type Refusal, redactRefusal, StoreRefused } from '../kernel/errors.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Settled } from '../ledger/call.ts'
import type { Metered, Shown } from '../metering/meter.ts'
import { type Audience, shapeError, statusOf } from '../providers/surfaces.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import type { EndedCall } from '../telemetry/call-log.ts'
import { describeUnsent, recordable } from './admit.ts'
import { Answer, figureLines } from './answer.ts'
import {
  type Bill,
  billCall,
  billWithoutCost,
  type CallOutcome,
  LOST,
  NOTHING_BILLED,
  type Stored,
  storedId,
  withoutSecrets,
} from './bill.ts'
import { BodyTaps } from './body-taps.ts'
import type { AdmittedCall, Call } from './call.ts'
import type { Deferred } from './deferrals.ts'
import type { Gateway } from './gateway.ts'
import { originFor } from './permitted-changes.ts'
import { explainFailure } from './refusals.ts'
import { ReplyPipeline } from './reply-pipeline.ts'

export interface ObservedReply extends CallOutcome {
  readonly observed: Metered | null
}

export type Switched = CallEnd & { readonly kind: 'switched' }

interface SettledBill {
  readonly bill: Bill
  readonly balanceNanos: Nanos | null
}

/** An admitted call, from sending to answer. Its hold closes once: by a bill, or by the object that states the cost. */
export class SentCall {
  readonly reply: ReplyPipeline
  readonly taps: BodyTaps
  readonly #call: AdmittedCall
  readonly #gateway: Gateway
  readonly #sentMs: number
  #end: { readonly atMs: number; readonly isWhole: boolean } | null = null
  /** `recorded`: the poller closes the hold if this process does not. `deferred`: the poller closes it. */
  #hold: 'open' | 'recorded' | 'deferred' | 'closed' = 'open'
  #streamingId: string | null = null

  constructor(call: AdmittedCall, gateway: Gateway) {
    const { exchange, plan, share } = call
    const { clock } = gateway
    this.#call = call
    this.#gateway = gateway
    this.#sentMs = clock.monotonicMs()
    this.taps = new BodyTaps(call, gateway)
    const upstreamMs = () => Math.round(this.#upstreamMs)
    this.reply = new ReplyPipeline({
      createAnswer: (onDrain) =>
        new Answer(exchange, { memory: gateway.heldReplies, keyName: share.name, upstreamMs, onDrain }),
      reader: plan.reader,
      shows: plan.shows,
      template: call.endpoint?.template ?? '',
      origin: originFor(exchange, gateway.isSecure),
      balanceNanos: call.admission.balanceNanos,
      holdJson: this.taps.holdJson || plan.shows !== null,
      nowMs: () => clock.monotonicMs(),
      onFirstByte: () => gateway.reached('first_byte'),
      look: (chunk) => this.taps.received(chunk),
      onObject: plan.reader === 'responses' ? (shown) => this.#nameObject(shown) : null,
    })
    gateway.inFlight.count += 1
  }

  ended({ kind }: CallEnd): void {
    this.#end = { atMs: this.#gateway.clock.monotonicMs(), isWhole: kind === 'complete' }
  }

  /** Closes the hold of a handshake. On a metered socket the turns are counted, not the handshake. */
  async settleHandshake({ head, connection }: Switched): Promise<void> {
    const unpriced = this.#call.socketId === null
    try {
      await this.#settle({ ...billWithoutCost(head), unpriced }, unpriced)
    } catch (defect) {
      connection.destroy()
      throw defect
    }
  }

  async observe(end: CallEnd): Promise<ObservedReply> {
    const { reply } = this
    const { times } = reply
    const elapsedMs = this.#upstreamMs
    const observed = await reply.observed(end.kind === 'complete')
    const stored = await this.#findStored(observed, end)
    const replied = { end, head: reply.replyHead, bytesOut: reply.bytesOut, times, elapsedMs }
    return { ...replied, metered: observed, observed, stored }
  }

  async settle(outcome: CallOutcome): Promise<SettledBill> {
    const call = this.#call
    const gateway = this.#gateway
    const deferred = await this.#defer(outcome)
    const bill = deferred === 'no' ? await billCall(call, outcome, gateway) : billWithoutCost(outcome.head)
    gateway.reached('before_settle')
    const settled = deferred === 'deferred' ? call.admission : await this.#settle(bill)
    gateway.reached('settled')
    return { bill, balanceNanos: settled?.balanceNanos ?? null }
  }

  async settleEarlier({ observed, head }: ObservedReply): Promise<void> {
    const { plan, exchange } = this.#call
    const { deferrals } = this.#gateway
    if (plan.shows !== null && observed !== null) await deferrals.shown(this.#call, observed)
    const status = head?.status ?? 0
    if (exchange.method === 'DELETE' && status >= 200 && status < 300) await deferrals.deleted(this.#call)
  }

  answer(end: CallEnd, { bill, balanceNanos }: SettledBill): void {
    const { exchange, surface } = this.#call
    const figures = { costNanos: bill.costNanos, listNanos: bill.listNanos, balanceNanos }
    if (end.kind === 'complete') this.reply.finish(figures, end.trailers)
    else if (end.kind === 'cut' || (end.kind === 'abandoned' && !clientLeft(exchange))) this.reply.cut()
    else if (end.kind === 'failed') {
      deny(exchange, surface, explainFailure(end), { balanceNanos, upstreamMs: Math.round(this.#upstreamMs) })
    }
    this.#gateway.observeCall?.(endedCall(this.#call, bill, end, this.#gateway))
  }

  /**
   * Closes the hold after a defect. If the store refused the bill, the call is already recorded as lost, and a release
   * would hide that.
   */
  async fail(defect: unknown): Promise<void> {
    if (this.#hold === 'open') await this.#settle(defect instanceof StoreRefused ? LOST : NOTHING_BILLED)
  }

  over(): void {
    if (this.#streamingId !== null) this.#gateway.deferrals.streaming.delete(this.#streamingId)
    this.taps.callOver(this.reply.replyHead, this.#end?.isWhole ?? false)
    this.#gateway.inFlight.count -= 1
  }

  get #upstreamMs(): number {
    return (this.#end?.atMs ?? this.#gateway.clock.monotonicMs()) - this.#sentMs
  }

  get #passed() {
    const { reply } = this
    // The held bytes leave next, with the figures of this settlement.
    const bytes = { bytesIn: this.taps.sentBytes, bytesOut: reply.bytesOut + reply.bytesHeld }
    const seen = { ...bytes, streamed: reply.isStreamed, upstreamMs: this.#upstreamMs }
    return passedBy(this.#call, seen, this.#gateway)
  }

  async #settle(bill: Bill, isCounted = true) {
    // A recorded object may have been settled and counted before its stream ended.
    const isRecorded = this.#hold === 'recorded'
    const counts = (booked: boolean) => isCounted && (booked || !isRecorded)
    const settled = await settleCall(this.#call, bill, this.#passed, this.#upstreamMs, this.#gateway, counts)
    this.#hold = 'closed'
    return settled
  }

  async #defer(outcome: CallOutcome): Promise<Deferred> {
    if (this.#hold === 'deferred') return 'deferred'
    if (this.#call.plan.makes === null) return 'no'
    const deferred = await this.#gateway.deferrals.defer(this.#call, outcome, this.#passed)
    if (deferred === 'deferred') this.#hold = 'deferred'
    return deferred
  }

  /** The stream has named its response. It cannot be deleted from now on; a background response is recorded at once. */
  async #nameObject({ objectId = null }: Shown): Promise<void> {
    const head = this.reply.replyHead
    const kind = this.#call.plan.makes
    if (objectId === null || head === null) return
    const { deferrals } = this.#gateway
    this.#streamingId = objectId
    deferrals.streaming.add(objectId)
    if (kind === null) return
    const object = { kind, objectId, head } as const
    const isRecorded = await deferrals.record(this.#call, object, this.#passed)
    if (isRecorded && this.#hold === 'open') this.#hold = 'recorded'
  }

  async #findStored(observed: Metered | null, end: CallEnd): Promise<Stored | null> {
    const id = storedId(this.#call, observed, end)
    const head = this.reply.replyHead
    if (id === null || head === null) return null
    // The client must not wait while the gateway reads on for the bill. A complete reply has been sent by now.
    if (end.kind !== 'complete') this.reply.cut()
    const stored = await this.#gateway.deferrals.findStored(this.#call, id, head, this.#passed)
    if (stored.kind === 'deferred') this.#hold = 'deferred'
    return stored
  }
}

export function deny(
  exchange: Exchange,
  audience: Audience,
  refusal: Refusal,
  known: { readonly balanceNanos?: Nanos | null; readonly upstreamMs?: number } = {},
): void {
  // A response that has begun cannot become an error: the connection breaks instead.
  if (exchange.res.headersSent) {
    exchange.res.destroy()
    return
  }
  const shaped = shapeError(audience, redactRefusal(refusal, exchange.names.redact), exchange.requestId)
  const figures = { costNanos: 0n, listNanos: 0n, balanceNanos: known.balanceNanos ?? null }
  const lines = audience === 'own' ? [] : figureLines(exchange.names, figures, known.upstreamMs ?? 0)
  sendWhole(
    exchange,
    { ...shaped, headers: [...shaped.headers, ...lines] },
    { close: refusal.close === true },
  )
}

/** Refuses a request without a record, and counts the refusal if the path is proxied. */
export function refuseRequest(
  exchange: Exchange,
  audience: Audience,
  refusal: Refusal,
  counts: CallCounts,
): void {
  if (audience !== 'own') counts.refused(refusal.code)
  deny(exchange, audience, refusal)
}

/** The times and bytes of a call as its record has them. */
export function passedBy(
  { exchange }: AdmittedCall,
  seen: {
    readonly upstreamMs: number
    readonly streamed: boolean
    readonly bytesIn: number
    readonly bytesOut: number
  },
  { clock }: Gateway,
) {
  const overheadMs = Math.max(0, clock.monotonicMs() - exchange.startedMs - seen.upstreamMs)
  return {
    ...seen,
    requestId: exchange.requestId,
    overheadMs: Math.round(overheadMs),
    upstreamMs: Math.round(seen.upstreamMs),
  }
}

/** Settles a call over HTTP or a turn. `isCounted`: whether the settlement counts in the metrics. */
export function settleCall(
  { exchange, surface, admission, plan }: AdmittedCall,
  bill: Bill,
  passed: ReturnType<typeof passedBy>,
  upstreamMs: number,
  { clock, settler, queues, counts }: Gateway,
  isCounted: (booked: boolean) => boolean = () => true,
): Promise<Settled | null> {
  const times = { overheadMs: Math.max(0, clock.monotonicMs() - exchange.startedMs - upstreamMs), upstreamMs }
  const closing = { ...withoutSecrets(bill, exchange.names.redact), ...passed, atMs: clock.nowMs() }
  return settler.settle(closing, ({ booked }) => {
    queues.settled(admission.budgetId, admission.accountId)
    if (isCounted(booked)) counts.settled(surface, plan.modelAsked, closing, times)
  })
}

export function endedCall(call: AdmittedCall, bill: Bill, end: CallEnd, { clock }: Gateway): EndedCall {
  const { exchange } = call
  const { names } = exchange
  const modelAsked = recordable(call.plan.modelAsked, names)
  const sameModel = bill.modelServed === call.plan.modelAsked
  return {
    requestId: exchange.requestId,
    keyId: call.admission.keyId,
    surface: call.surface,
    method: exchange.method,
    path: call.target.path,
    endpoint: call.endpoint,
    modelAsked,
    modelServed: sameModel ? modelAsked : recordable(bill.modelServed, names),
    status: bill.status,
    code: end.kind === 'failed' ? explainFailure(end).code : null,
    cut: end.kind === 'cut',
    tokens: bill.tokens,
    costNanos: bill.costNanos,
    endedAtMs: clock.nowMs(),
    ms: clock.monotonicMs() - exchange.startedMs,
    headers: exchange.headers,
    upstream: call.upstream.url,
  }
}

/** Refuses a call and records it, so that its id can be looked up. An unknown key leaves no record. */
export function refuseCall(
  call: Call,
  refusal: Refusal,
  gateway: Gateway,
  known: { readonly balanceNanos?: Nanos | null; readonly modelAsked?: string | null } = {},
): void {
  deny(call.exchange, call.surface, refusal, known)
  recordRefusal(call, refusal, gateway, known.modelAsked ?? null)
}

export function recordRefusal(
  call: Call,
  refusal: Refusal,
  gateway: Gateway,
  modelAsked: string | null,
): void {
  const { surface, digest } = call
  const { clock, counts, refusedCalls, observeCall } = gateway
  counts.refused(refusal.code)
  if (refusal.unknownKey === true && observeCall === null) return
  const unsent = describeUnsent(call, modelAsked, gateway)
  const status = statusOf(surface, refusal.code)
  const endedAtMs = Math.trunc(clock.nowMs())
  if (refusal.unknownKey !== true) {
    refusedCalls.add({ ...unsent, digest, endedAtMs, status, code: refusal.code })
  }
  observeCall?.(refusedCall(call, unsent, { status, code: refusal.code, endedAtMs }))
}

function refusedCall(
  { exchange, endpoint }: Call,
  unsent: ReturnType<typeof describeUnsent>,
  refused: { readonly status: number; readonly code: ErrorCode; readonly endedAtMs: number },
): EndedCall {
  return {
    ...unsent,
    ...refused,
    ...{ keyId: null, endpoint, modelServed: null, cut: false, tokens: null, costNanos: 0n },
    ...{ ms: refused.endedAtMs - unsent.startedAtMs, headers: exchange.headers, upstream: null },
  }
}
