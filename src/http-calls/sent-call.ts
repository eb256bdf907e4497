import { recordable } from '../calls/ask.ts'
import { type Bill, billCall, billWithoutCost, figuresOfRequest, storedResponseId } from '../calls/bill.ts'
import type { AnswerHead, CallEnding, Evidence, StoredResponse, Transfer } from '../calls/evidence.ts'
import type { SoFar } from '../calls/hold.ts'
import { ReservedBytes } from '../calls/key-shares.ts'
import { firstValue } from '../http/raw-headers.ts'
import type { CallEnd } from '../http/upstream-call.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Shown } from '../metering/meter.ts'
import { uploadsBatches } from '../providers/surfaces.ts'
import { type BodyTaps, createBodyTaps, type LoggedHead } from './body-taps.ts'
import type { AdmittedCall, CarriedCall } from './call.ts'
import type { Gateway } from './gateway.ts'
import { originFor } from './permitted-changes.ts'
import { explainFailure, sendRefusal } from './refusals.ts'
import { Reply } from './reply.ts'
import type { ReplyHead } from './reply-writer.ts'

export type Switched = CallEnd & { readonly kind: 'switched' }

interface SettledBill {
  readonly bill: Bill
  readonly balanceNanos: Nanos | null
}

/** An admitted call, over HTTP or as a turn of a socket, while upstream works on it. */
export class OpenCall<Carried extends CarriedCall = CarriedCall> {
  readonly call: Carried
  /** Null for most calls: their bodies are neither logged nor recorded. */
  protected readonly taps: BodyTaps | null
  #sentBytes = 0
  protected readonly gateway: Gateway
  protected startedMs: number
  protected sentMs: number
  #stopStreaming: (() => void) | null = null

  constructor(call: Carried, startedMs: number, gateway: Gateway) {
    this.call = call
    this.gateway = gateway
    this.startedMs = startedMs
    this.sentMs = gateway.clock.monotonicMs()
    const isObserved = call.hold.terms.logRequests || uploadsBatches(call.hold.ask.endpoint)
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
    const streams = this.call.hold.ask.profile.objectReader === null ? streaming : resumed
    streams.add(objectId)
    this.#stopStreaming = () => streams.remove(objectId)
  }

  protected transfer(upstreamMs: number, streamed: boolean, bytesOut: number): Transfer {
    const overheadMs = Math.max(0, this.gateway.clock.monotonicMs() - this.startedMs - upstreamMs)
    return { streamed, bytesIn: this.#sentBytes, bytesOut, overheadMs, upstreamMs }
  }

  protected report(bill: Bill, end: CallEnd): void {
    const { observeCall, clock } = this.gateway
    if (observeCall === null) return
    const { hold, upstream, headers } = this.call
    const { surface, method, path, endpoint, requestId } = hold.ask
    observeCall({
      requestId,
      keyId: hold.terms.keyId,
      surface,
      method,
      path,
      endpoint,
      headers,
      modelAsked: recordable(hold.ask.profile.model, hold.redact),
      modelServed: recordable(bill.modelServed, hold.redact),
      status: bill.status,
      code: end.kind === 'failed' ? explainFailure(end).code : null,
      cut: end.kind === 'cut',
      tokens: bill.tokens,
      costNanos: bill.costNanos,
      endedAtMs: clock.nowMs(),
      ms: clock.monotonicMs() - this.startedMs,
      upstream: upstream.url,
    })
  }

  protected removeInFlight(head: LoggedHead | null, isWhole: boolean): void {
    this.#stopStreaming?.()
    this.taps?.callOver(head, isWhole)
    this.gateway.inFlight.count -= 1
  }
}

/** A call over HTTP, from sending to answer. */
export class SentCall extends OpenCall<AdmittedCall> {
  readonly reply: Reply
  #end: { readonly atMs: number; readonly kind: CallEnd } | null = null
  #evidence: Evidence | null = null

  constructor(call: AdmittedCall, gateway: Gateway) {
    const { exchange, hold, share, endpoint } = call
    super(call, exchange.startedMs, gateway)
    const { reader, objectReader } = hold.ask.profile
    this.reply = new Reply(exchange, {
      reader,
      objectReader,
      origin: originFor(exchange, endpoint?.template ?? '', gateway.isSecure),
      balanceNanos: hold.terms.balanceNanos,
      requestFigures: figuresOfRequest(hold),
      bufferJson: this.taps?.bufferJson === true || objectReader !== null,
      memory: new ReservedBytes(gateway.bufferedReplies, share.name),
      nowMs: () => gateway.clock.monotonicMs(),
      upstreamMs: () => Math.round(this.#upstreamMs),
      onChunk: (chunk) => {
        gateway.reached('first_byte')
        this.taps?.received(chunk)
      },
      onObject: (reader ?? objectReader) === 'responses' ? (shown) => this.#recordObject(shown) : null,
    })
  }

  /** Called before the first byte goes upstream. */
  sending(): void {
    this.gateway.reached('before_send')
    this.sentMs = this.gateway.clock.monotonicMs()
    this.call.hold.sending(() => this.#soFar())
  }

  ended(end: CallEnd): void {
    this.#end = { atMs: this.gateway.clock.monotonicMs(), kind: end }
  }

  /** Closes the hold of a handshake. */
  async settleHandshake({ head, connection }: Switched): Promise<void> {
    try {
      const unpriced = this.call.socketId === null
      await this.call.hold.settle({ ...billWithoutCost(answerOf(head)), unpriced }, this.#transfer)
    } catch (defect) {
      connection.destroy()
      throw defect
    }
  }

  /** Collects what was seen of the call. A stored response whose stream was cut is read from upstream. */
  async observe(end: CallEnd): Promise<Evidence> {
    const { hold, upstream } = this.call
    const seen = await this.#readEvidence(end)
    const { answer } = seen
    const id = storedResponseId(hold.ask.profile, seen.metered, seen.end)
    let stored: StoredResponse | null = null
    if (id !== null && answer !== null) {
      // The client must not wait while the gateway reads on for the bill. A complete reply has been sent by now.
      if (seen.end !== 'complete') this.reply.cut()
      stored = await this.gateway.deferrals.findStoredResponse(hold, upstream, id, answer, this.#transfer)
    }
    this.#evidence = { ...seen, stored }
    return this.#evidence
  }

  /** Settles the hold, or leaves it to the object that states the cost. */
  async settle(evidence: Evidence): Promise<SettledBill> {
    const { call, gateway } = this
    const { hold } = call
    const outcome = hold.isDeferred
      ? 'deferred'
      : await gateway.deferrals.defer(hold, evidence, this.#transfer)
    const isBilled = outcome === 'not_deferred'
    const bill = isBilled ? await billCall(hold, evidence, gateway) : billWithoutCost(evidence.answer)
    gateway.reached('before_settle')
    const settled = outcome === 'deferred' ? hold.terms : await hold.settle(bill, this.#transfer)
    gateway.reached('settled')
    return { bill, balanceNanos: settled?.balanceNanos ?? null }
  }

  /** Before the answer, settles objects of earlier calls and records files, which the next request may need. */
  async settleEarlierCalls({ metered, answer, end }: Evidence): Promise<void> {
    const { hold, method } = this.call
    const { deferrals } = this.gateway
    if (hold.ask.profile.objectReader !== null && metered !== null)
      await deferrals.settleFetched(hold, metered)
    const status = answer?.status ?? 0
    if (method === 'DELETE' && status >= 200 && status < 300) await deferrals.closeDeleted(hold)
    await this.taps?.callSettled(this.reply.replyHead, end === 'complete')
  }

  answer(end: CallEnd, { bill, balanceNanos }: SettledBill): void {
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

  [Symbol.dispose](): void {
    this.removeInFlight(this.reply.replyHead, this.#end?.kind.kind === 'complete')
  }

  get #upstreamMs(): number {
    return (this.#end?.atMs ?? this.gateway.clock.monotonicMs()) - this.sentMs
  }

  get #transfer(): Transfer {
    const { isStreamed, bytesOut, bytesBuffered } = this.reply
    // The held bytes leave next, with the figures of this settlement.
    return this.transfer(this.#upstreamMs, isStreamed, bytesOut + bytesBuffered)
  }

  async #readEvidence(end: CallEnd): Promise<Evidence> {
    const { reply } = this
    const { replyHead: head, bytesOut: delivered } = reply
    const times = { ...reply.times, elapsedMs: this.#upstreamMs }
    const answer = head === null ? null : answerOf(head)
    const metered = await reply.observed(end.kind === 'complete')
    return { end: endingOf(end, answer), answer, metered, delivered, times }
  }

  async #soFar(): Promise<SoFar> {
    const end = this.#end?.kind ?? { kind: 'cut', error: new Error('the gateway failed') }
    const evidence = this.#evidence ?? (await this.#readEvidence(end))
    return { evidence, transfer: this.#transfer }
  }

  /** The stream has named its response. A background response is recorded at once. */
  #recordObject({ objectId }: Shown): void {
    const { hold } = this.call
    const head = this.reply.replyHead
    if (objectId === null || head === null) return
    this.markStreaming(objectId)
    const kind = hold.ask.profile.deferredKind
    if (kind === null) return
    void this.gateway.deferrals.record(hold, kind, objectId, answerOf(head), this.#transfer)
  }
}

function answerOf({ status, headers }: Pick<ReplyHead, 'status' | 'headers'>): AnswerHead {
  return {
    status,
    contentType: firstValue(headers, 'content-type') ?? '',
    upstreamRequestId: firstValue(headers, 'request-id') ?? firstValue(headers, 'x-request-id') ?? null,
  }
}

function endingOf(end: CallEnd, answer: AnswerHead | null): CallEnding {
  switch (end.kind) {
    case 'complete':
    case 'switched':
      return 'complete'
    case 'cut':
      return 'broken'
    case 'failed':
      return end.whole ? 'broken' : 'unsent'
    case 'abandoned':
      return answer === null && (!end.sent || end.partly === true) ? 'unsent' : 'left'
  }
}
