import {
  type Bill,
  billCall,
  billWithoutCost,
  type CallOutcome,
  figuresOfRequest,
  LOST,
  NOTHING_BILLED,
  type StoredResponse,
  storedResponseId,
  withoutSecrets,
} from '../calls/bill.ts'
import { ReservedBytes } from '../calls/key-shares.ts'
import type { CallEnd } from '../http/upstream-call.ts'
import { StoreRefused } from '../kernel/errors.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Settled } from '../ledger/call.ts'
import type { Shown } from '../metering/meter.ts'
import type { Transfer } from '../objects/deferrals.ts'
import { uploadsBatches } from '../providers/surfaces.ts'
import { type BodyTaps, createBodyTaps } from './body-taps.ts'
import type { AdmittedCall } from './call.ts'
import type { Gateway } from './gateway.ts'
import { originFor } from './permitted-changes.ts'
import { explainFailure, recordable, sendRefusal } from './refusals.ts'
import { Reply, type ReplyHead } from './reply.ts'

export type Switched = CallEnd & { readonly kind: 'switched' }

/** An admitted call, over HTTP or as a turn of a socket, while upstream works on it. */
export class OpenCall {
  call: AdmittedCall
  /** Null for most calls: their bodies are neither logged nor recorded. */
  protected readonly taps: BodyTaps | null
  #sentBytes = 0
  protected readonly gateway: Gateway
  protected sentMs: number
  #stopStreaming: (() => void) | null = null

  constructor(call: AdmittedCall, gateway: Gateway) {
    this.call = call
    this.gateway = gateway
    this.sentMs = gateway.clock.monotonicMs()
    const isObserved = call.admission.logRequests || uploadsBatches(call.endpoint)
    this.taps = isObserved ? createBodyTaps(call, gateway) : null
    gateway.inFlight.count += 1
  }

  bodySent(chunk: Buffer): void {
    this.#sentBytes += chunk.length
    this.taps?.sent(chunk)
  }

  /** Counts the stream of a response, until the call is over. */
  protected markStreaming(objectId: string): void {
    const { streaming, resumed } = this.gateway.deferrals
    const streams = this.call.plan.objectReader === null ? streaming : resumed
    streams.add(objectId)
    this.#stopStreaming = () => streams.remove(objectId)
  }

  protected transfer(upstreamMs: number, streamed: boolean, bytesOut: number): Transfer {
    return {
      requestId: this.call.exchange.requestId,
      streamed,
      bytesIn: this.#sentBytes,
      bytesOut,
      overheadMs: Math.round(this.#overheadMs(upstreamMs)),
      upstreamMs: Math.round(upstreamMs),
    }
  }

  #overheadMs(upstreamMs: number): number {
    return Math.max(0, this.gateway.clock.monotonicMs() - this.call.exchange.startedMs - upstreamMs)
  }

  /** Closes the hold. `isCounted`: whether the settlement counts in the metrics. */
  protected settleHold(
    bill: Bill,
    transfer: Transfer,
    upstreamMs: number,
    isCounted: (applied: boolean) => boolean = () => true,
  ): Promise<Settled | null> {
    const { exchange, surface, admission, plan } = this.call
    const { clock, settler, queues, counts } = this.gateway
    const times = { overheadMs: this.#overheadMs(upstreamMs), upstreamMs }
    const closing = { ...withoutSecrets(bill, exchange.names.redact), ...transfer, atMs: clock.nowMs() }
    return settler.settle(closing, ({ applied }) => {
      queues.settled(admission.budgetId, admission.accountId)
      if (isCounted(applied)) counts.countSettlement(surface, plan.modelAsked, closing, times)
    })
  }

  protected report(bill: Bill, end: CallEnd): void {
    const { observeCall, clock } = this.gateway
    if (observeCall === null) return
    const { exchange, plan, admission, surface, target, endpoint, upstream } = this.call
    const { names, requestId, method, headers, startedMs } = exchange
    observeCall({
      ...{ requestId, keyId: admission.keyId, surface, method, path: target.path, endpoint, headers },
      modelAsked: recordable(plan.modelAsked, names),
      modelServed: recordable(bill.modelServed, names),
      status: bill.status,
      code: end.kind === 'failed' ? explainFailure(end).code : null,
      cut: end.kind === 'cut',
      tokens: bill.tokens,
      costNanos: bill.costNanos,
      endedAtMs: clock.nowMs(),
      ms: clock.monotonicMs() - startedMs,
      upstream: upstream.url,
    })
  }

  protected removeInFlight(head: ReplyHead | null, isWhole: boolean): void {
    this.#stopStreaming?.()
    this.taps?.callOver(head, isWhole)
    this.gateway.inFlight.count -= 1
  }
}

/** A call over HTTP, from sending to answer. Its hold closes once: by a bill, or by the object that states the cost. */
export class SentCall extends OpenCall {
  readonly reply: Reply
  #end: { readonly atMs: number; readonly isWhole: boolean } | null = null
  /** `recorded`: the poller closes the hold if this process ends before. `deferred`: the poller closes the hold. */
  #hold: 'open' | 'recorded' | 'deferred' | 'closed' = 'open'

  constructor(call: AdmittedCall, gateway: Gateway) {
    super(call, gateway)
    const { exchange, plan, share, endpoint, admission } = call
    this.reply = new Reply(exchange, {
      reader: plan.reader,
      objectReader: plan.objectReader,
      origin: originFor(exchange, endpoint?.template ?? '', gateway.isSecure),
      balanceNanos: admission.balanceNanos,
      requestFigures: figuresOfRequest(call),
      bufferJson: this.taps?.bufferJson === true || plan.objectReader !== null,
      memory: new ReservedBytes(gateway.bufferedReplies, share.name),
      nowMs: () => gateway.clock.monotonicMs(),
      upstreamMs: () => Math.round(this.#upstreamMs),
      onChunk: (chunk) => {
        gateway.reached('first_byte')
        this.taps?.received(chunk)
      },
      onObject:
        (plan.reader ?? plan.objectReader) === 'responses' ? (shown) => this.#recordObject(shown) : null,
    })
  }

  recordEnd({ kind }: CallEnd): void {
    this.#end = { atMs: this.gateway.clock.monotonicMs(), isWhole: kind === 'complete' }
  }

  /** Closes the hold of a handshake. On a metered socket the turns are counted, not the handshake. */
  async settleHandshake({ head, connection }: Switched): Promise<void> {
    const unpriced = this.call.socketId === null
    try {
      await this.#close({ ...billWithoutCost(head), unpriced }, unpriced)
    } catch (defect) {
      connection.destroy()
      throw defect
    }
  }

  async observe(end: CallEnd): Promise<CallOutcome> {
    const { reply } = this
    const { times, replyHead: head } = reply
    const elapsedMs = this.#upstreamMs
    const metered = await reply.observed(end.kind === 'complete')
    const id = storedResponseId(this.call, metered, end)
    const stored = id === null || head === null ? null : await this.#findStoredResponse(id, head, end)
    return { end, head, bytesOut: reply.bytesOut, times, elapsedMs, metered, stored }
  }

  async settle(outcome: CallOutcome): Promise<{ bill: Bill; balanceNanos: Nanos | null }> {
    const { call, gateway } = this
    const deferred = await this.#defer(outcome)
    const bill =
      deferred === 'not_deferred' ? await billCall(call, outcome, gateway) : billWithoutCost(outcome.head)
    gateway.reached('before_settle')
    const settled = deferred === 'deferred' ? call.admission : await this.#close(bill)
    gateway.reached('settled')
    return { bill, balanceNanos: settled?.balanceNanos ?? null }
  }

  /** Before the answer, settles objects of earlier calls and records files, which the next request may need. */
  async settleEarlierCalls({ metered, head, end }: CallOutcome): Promise<void> {
    const { plan, exchange } = this.call
    const { deferrals } = this.gateway
    if (plan.objectReader !== null && metered !== null) await deferrals.settleFetched(this.call, metered)
    const status = head?.status ?? 0
    if (exchange.method === 'DELETE' && status >= 200 && status < 300) await deferrals.closeDeleted(this.call)
    await this.taps?.callSettled(head, end.kind === 'complete')
  }

  answer(end: CallEnd, { bill, balanceNanos }: { bill: Bill; balanceNanos: Nanos | null }): void {
    const { exchange, surface } = this.call
    const figures = { costNanos: bill.costNanos, listNanos: bill.listNanos, balanceNanos }
    if (end.kind === 'complete') this.reply.finish(figures, end.trailers)
    else if (end.kind === 'cut' || (end.kind === 'abandoned' && !exchange.res.isOver)) this.reply.cut()
    else if (end.kind === 'failed') {
      sendRefusal(exchange, surface, explainFailure(end), {
        balanceNanos,
        upstreamMs: Math.round(this.#upstreamMs),
      })
    }
    this.report(bill, end)
  }

  /** Closes the hold after a defect, unless the refused bill is already recorded as lost. */
  async fail(defect: unknown): Promise<void> {
    if (this.#hold === 'open') await this.#close(defect instanceof StoreRefused ? LOST : NOTHING_BILLED)
  }

  finish(): void {
    this.removeInFlight(this.reply.replyHead, this.#end?.isWhole ?? false)
  }

  get #upstreamMs(): number {
    return (this.#end?.atMs ?? this.gateway.clock.monotonicMs()) - this.sentMs
  }

  get #transfer(): Transfer {
    const { isStreamed, bytesOut, bytesBuffered } = this.reply
    // The held bytes leave next, with the figures of this settlement.
    return this.transfer(this.#upstreamMs, isStreamed, bytesOut + bytesBuffered)
  }

  async #close(bill: Bill, isCounted = true): Promise<Settled | null> {
    // A recorded object may have been settled and counted before its stream ended.
    const isRecorded = this.#hold === 'recorded'
    const counts = (applied: boolean) => isCounted && (applied || !isRecorded)
    const settled = await this.settleHold(bill, this.#transfer, this.#upstreamMs, counts)
    this.#hold = 'closed'
    return settled
  }

  async #defer(outcome: CallOutcome) {
    if (this.#hold === 'deferred') return 'deferred'
    if (this.call.plan.deferredKind === null) return 'not_deferred'
    const deferred = await this.gateway.deferrals.defer(this.call, outcome, this.#transfer)
    if (deferred === 'deferred') this.#hold = 'deferred'
    return deferred
  }

  /** The stream has named its response. A background response is recorded at once. */
  async #recordObject({ objectId }: Shown): Promise<void> {
    const head = this.reply.replyHead
    const kind = this.call.plan.deferredKind
    if (objectId === null || head === null) return
    this.markStreaming(objectId)
    if (kind === null) return
    const object = { kind, objectId, head } as const
    const isRecorded = await this.gateway.deferrals.record(this.call, object, this.#transfer)
    if (isRecorded && this.#hold === 'open') this.#hold = 'recorded'
  }

  async #findStoredResponse(id: string, head: ReplyHead, end: CallEnd): Promise<StoredResponse> {
    // The client must not wait while the gateway reads on for the bill. A complete reply has been sent by now.
    if (end.kind !== 'complete') this.reply.cut()
    const stored = await this.gateway.deferrals.findStoredResponse(this.call, id, head, this.#transfer)
    if (stored.kind === 'deferred') this.#hold = 'deferred'
    return stored
  }
}
