import type { AdmissionQueues } from '../calls/admission-queue.ts'
import {
  type Bill,
  type Billing,
  billHold,
  billUsage,
  findCachedShare,
  isPlausible,
  LOST,
  NOTHING_BILLED,
  withNewContainers,
  withoutSecrets,
} from '../calls/bill.ts'
import type { Core } from '../calls/core.ts'
import { estimateObject } from '../calls/estimates.ts'
import type { HoldFigures } from '../calls/evidence.ts'
import { StoreRefused } from '../kernel/errors.ts'
import { childIdOf } from '../kernel/ids.ts'
import { alsoRedacting, type Redact, type Secret } from '../kernel/secret.ts'
import type { Usage } from '../kernel/usage.ts'
import type { CallClosing, CallRecord, Settled } from '../ledger/call.ts'
import type { DeferredObject } from '../ledger/deferred.ts'
import type { Metered } from '../metering/meter.ts'
import { withCallFees } from '../pricing/call-fees.ts'
import type { PriceVersion } from '../pricing/price-book.ts'
import { rate } from '../pricing/rate.ts'
import { type RatingContext, readRating, writeRating } from '../pricing/rating-context.ts'
import { readBatchResults } from '../providers/batch-results.ts'
import { statesUsage } from '../providers/deferred-kinds.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import type { Store } from '../store/store.ts'

type BillStore = Billing['store'] &
  Pick<Store, 'countBatchAsRequest' | 'listOpenChildren' | 'openChildren' | 'readPriceVersion'>

export interface ObjectBillDependencies extends Pick<Core, 'outbox' | 'counts' | 'clock' | 'log'> {
  readonly store: BillStore
  readonly queues: Pick<AdmissionQueues, 'signalAll'>
  readonly names: { readonly redact: Redact }
}

type ReadResults = (take: (chunk: Buffer) => void) => Promise<'read' | 'gone' | 'failed'>

/** A closing of an object's call, or of the part of a batch that one model served. */
interface Part {
  readonly requestId: string
  readonly bill: Bill
}

const NO_TRANSFER = { upstreamMs: null, overheadMs: 0, bytesIn: 0, bytesOut: 0 }

function transferOf({ upstreamMs, overheadMs, bytesIn, bytesOut }: CallRecord) {
  return { upstreamMs, overheadMs: overheadMs ?? 0, bytesIn, bytesOut }
}

/** Bills deferred calls at the prices of their day. False: the bill waits for the store, or for upstream's results. */
export class ObjectBills {
  readonly #from: ObjectBillDependencies
  /** Caches the last price version: compiling one takes milliseconds. */
  #last: { readonly id: string; readonly version: PriceVersion } | null = null

  constructor(from: ObjectBillDependencies) {
    this.#from = from
  }

  /** `key`: the credential that the object was fetched with. It is redacted from what is recorded. */
  async settle(object: DeferredObject, metered: Metered, key: Secret | null): Promise<boolean> {
    const { call } = object
    const version = await this.#versionOf(call)
    const stated = statesUsage(metered) ? metered.usage : await this.#estimate(metered, call)
    const used = { callId: call.requestId, scope: object.scope, ids: metered.containerIds }
    const usage = await withNewContainers(stated, used, this.#from)
    return await this.#closeAll(object, billUsed(call, usage, ratingOf(call), version), key)
  }

  /** `read` null: the batch has no results, so it costs nothing. */
  async settleBatch(
    object: DeferredObject,
    metered: Metered,
    read: ReadResults | null,
    key: Secret | null,
  ): Promise<boolean> {
    const { call } = object
    const { stopReason } = metered.usage
    const rating = ratingOf(call)
    // Use the endpoint that upstream states for the lines: the client may have named a cheaper one.
    const context = { ...rating, endpoint: metered.requestsFor ?? rating.endpoint }
    const endpoint = findEndpoint(call.surface, 'POST', context.endpoint)
    const done: Bill = { ...NOTHING_BILLED, state: 'settled', stopReason }
    if (read === null || endpoint?.billing === 'free') return await this.#closeAll(object, done, key)
    if (endpoint?.billing !== 'metered') return await this.#closeAll(object, { ...done, unpriced: true }, key)
    const version = await this.#versionOf(call)
    const { createBatchUsage } = await import('../pricing/batch-usage.ts')
    const used = createBatchUsage(context, version)
    // What a line asked is not known here. The fee of a model that always searches is.
    const searchFee = endpoint.hasSearchFee ? ('by_model' as const) : ('never' as const)
    const fees = { searchFee, searchSize: null, codeRunsFree: false }
    const results = readBatchResults(endpoint.usage, (line) => {
      const isKnown = line.inputKnown && line.outputKnown
      // What the line carried is unknown: the request that created the batch does not show it.
      const usage = isKnown ? line.usage : estimateObject(line, 0, 0)
      used.add(withCallFees(usage, fees, context, version))
    })
    const outcome = await read((chunk) => results.write(chunk))
    if (outcome === 'gone') return await this.settleAtHold(object)
    if (outcome === 'failed' || !results.end()) return false
    const redact = this.#redacting(key)
    const children = used.byModel().map((lines) => {
      const model = lines.model && redact(lines.model)
      const rated = { ...context, modelAsked: context.modelAsked ?? model }
      return childOf(call, lines, model, rated, {
        ...billUsed(call, lines.usage, rated, version),
        stopReason,
      })
    })
    // The children are charged before the parent releases its hold.
    await this.#from.store.openChildren(children.map(({ record }) => record))
    return await this.#closeAll(object, done, key, children)
  }

  async settleAtHold(object: DeferredObject): Promise<boolean> {
    const { log, store } = this.#from
    const about = { request: object.call.requestId, object: object.objectId }
    log.warn(about, 'the object that states the cost of a call was deleted; its hold is charged')
    await store.countBatchAsRequest(object.call)
    return await this.#closeWith(object, billHold)
  }

  async giveUp(object: DeferredObject): Promise<boolean> {
    const about = { request: object.call.requestId, object: object.objectId }
    this.#from.log.warn(about, 'the object of a call cannot be polled any more; its cost is lost')
    return await this.#closeWith(object, () => LOST)
  }

  async #closeWith(object: DeferredObject, billOf: (hold: HoldFigures) => Bill): Promise<boolean> {
    const open = await this.#from.store.listOpenChildren(object.call)
    const children = open.map((child) => ({ requestId: child.requestId, bill: billOf(child) }))
    return await this.#closeAll(object, billOf(object.call), null, children)
  }

  async #closeAll(
    object: DeferredObject,
    bill: Bill,
    key: Secret | null,
    children: readonly Part[] = [],
  ): Promise<boolean> {
    const { call } = object
    let isClosed = true
    for (const child of children) isClosed = (await this.#close(call, child, key)) && isClosed
    return isClosed && (await this.#close(call, { requestId: call.requestId, bill }, key))
  }

  /** Returns false if the settlement still waits for the database. */
  async #close(call: CallRecord, { requestId, bill }: Part, key: Secret | null): Promise<boolean> {
    const { outbox, counts, queues, clock } = this.#from
    const isParent = requestId === call.requestId
    const closing: CallClosing = {
      ...withoutSecrets(bill, this.#redacting(key)),
      requestId,
      atMs: clock.nowMs(),
      status: call.status,
      streamed: call.streamed,
      upstreamRequestId: call.upstreamRequestId,
      ...(isParent ? transferOf(call) : NO_TRANSFER),
    }
    const onSettled = ({ applied }: Settled) => {
      queues.signalAll()
      const times = { overheadMs: call.overheadMs ?? 0, upstreamMs: call.upstreamMs ?? 0 }
      if (applied) counts.countSettlement(call.surface, call.modelAsked, closing, isParent ? times : null)
    }
    try {
      return (await outbox.settle(closing, onSettled)) !== null
    } catch (error) {
      // The outbox has saved the refused bill. Close the object, or every poll would be refused again for 30 days.
      if (error instanceof StoreRefused && bill !== LOST)
        return await this.#close(call, { requestId, bill: LOST }, key)
      throw error
    }
  }

  async #estimate(metered: Metered, { keyId, modelAsked, bytesIn }: CallRecord): Promise<Usage> {
    const share = metered.inputKnown ? 0 : await findCachedShare(keyId, modelAsked, this.#from.store)
    return estimateObject(metered, bytesIn, share)
  }

  #redacting(key: Secret | null): Redact {
    return alsoRedacting(this.#from.names.redact, key)
  }

  async #versionOf({ requestId, priceVersion }: CallRecord): Promise<PriceVersion> {
    const id = priceVersion ?? ''
    if (this.#last?.id === id) return this.#last.version
    const { parseVersion } = await import('../pricing/load-book.ts')
    const json = await this.#from.store.readPriceVersion(id)
    const version = json === null ? null : parseVersion(json)
    if (version === null) throw new Error(`the price version of ${requestId} cannot be read`)
    this.#last = { id, version }
    return version
  }
}

function ratingOf({ requestId, rating }: CallRecord): RatingContext {
  const stored = readRating(rating)
  if (stored === null) throw new Error(`the stored rating of ${requestId} cannot be read`)
  return stored
}

function billUsed(call: CallRecord, usage: Usage, context: RatingContext, version: PriceVersion): Bill {
  const rated = rate(usage, context, version)
  if (!isPlausible(usage, rated)) throw new Error(`upstream states implausible usage for ${call.requestId}`)
  return billUsage(usage, rated)
}

/** The record of the lines that one model served. Its id is derived from the parent's, so a retry finds it. */
function childOf(
  { requestId: parentId }: CallRecord,
  { requests, name }: { readonly requests: number; readonly name: string },
  model: string | null,
  context: RatingContext,
  bill: Bill,
) {
  const requestId = childIdOf(parentId, name)
  const { costNanos, listNanos } = bill
  const rating = writeRating(context)
  return { requestId, bill, record: { requestId, parentId, model, requests, costNanos, listNanos, rating } }
}
