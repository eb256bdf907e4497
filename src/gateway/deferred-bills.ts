import type { Clock } from '../kernel/clock.ts'
import { StoreRefused } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import { childIdOf } from '../kernel/ids.ts'
import type { Log } from '../kernel/log.ts'
import type { Borrowed } from '../kernel/memory.ts'
import type { Usage } from '../kernel/usage.ts'
import type { CallClosing, CallRecord, Settled } from '../ledger/call.ts'
import type { DeferredObject, DeferredStore } from '../ledger/deferred.ts'
import type { RequestLogStore } from '../ledger/request-log.ts'
import type { Metered } from '../metering/meter.ts'
import type { PriceVersion } from '../pricing/price-book.ts'
import { type KeptRating, rateFigures, readRating, writeRating } from '../pricing/rate.ts'
import { BatchResults } from '../providers/batch-results.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import type { AdmissionQueues } from './admission-queue.ts'
import { type Bill, billUsage, isPlausible, LOST, NOTHING_BILLED, withoutSecrets } from './bill.ts'
import type { Settler } from './settle.ts'

export interface DeferredBillParts {
  readonly store: DeferredStore & Pick<RequestLogStore, 'readPriceVersion'>
  readonly settler: Settler
  readonly counts: CallCounts
  readonly queues: Pick<AdmissionQueues, 'signalAll'>
  readonly clock: Clock
  readonly log: Log
  readonly names: Pick<HeaderNames, 'redact'>
}

/** Gives the bytes of the results of a batch to `take`. Resolves to whether they came to their end. */
type ReadResults = (take: (chunk: Borrowed) => void) => Promise<boolean>

/** Bills of calls whose object has come to its end, by the prices and the discount of the day on which the call was made. */
export interface DeferredBills {
  /** Bills the usage that the object itself states. False: the bill waits for the store. */
  settle(object: DeferredObject, metered: Metered): Promise<boolean>
  /** Bills the usage of each request, in a record for each model. False: the results cannot be read now, or booked. */
  settleBatch(object: DeferredObject, metered: Metered, read: ReadResults | null): Promise<boolean>
  /** Closes the call without a cost, which cannot be known any more. */
  giveUp(object: DeferredObject): Promise<void>
}

/** Of a record of a batch: time and bytes are those of the call that made it. */
const NOTHING_PASSED = { upstreamMs: null, overheadMs: 0, bytesIn: 0, bytesOut: 0 }

function passed({ upstreamMs, overheadMs, bytesIn, bytesOut }: CallRecord) {
  return { upstreamMs, overheadMs: overheadMs ?? 0, bytesIn, bytesOut }
}

/** The final states of an object that has used something. In the other ones it may have used nothing, and says nothing then. */
const HAS_USED: ReadonlySet<string | null> = new Set(['completed', 'incomplete'])

/** Whether a final object that states its usage itself has stated it. */
export function tellsCost({ usage, inputKnown, outputKnown }: Metered): boolean {
  return (inputKnown && outputKnown) || !HAS_USED.has(usage.stopReason)
}

/** Each record is closed once, whatever comes first and however often it comes: by the client, the poller, another node. */
export function createDeferredBills(parts: DeferredBillParts): DeferredBills {
  const { store, settler, counts, queues, clock, log, names } = parts

  /** False: the settlement waits for the store, in memory perhaps, where the end of this process would lose it. */
  async function close(call: CallRecord, requestId: string, bill: Bill): Promise<boolean> {
    const isParent = requestId === call.requestId
    const closing: CallClosing = {
      ...withoutSecrets(bill, names.redact),
      requestId,
      atMs: clock.nowMs(),
      ...{ status: call.status, streamed: call.streamed, upstreamRequestId: call.upstreamRequestId },
      ...(isParent ? passed(call) : NOTHING_PASSED),
    }
    const onSettled = ({ booked }: Settled) => {
      queues.signalAll()
      const times = { overheadMs: call.overheadMs ?? 0, upstreamMs: call.upstreamMs ?? 0 }
      if (booked) counts.settled(call.surface, call.modelAsked, closing, isParent ? times : null)
    }
    try {
      return (await settler.settle(closing, onSettled)) !== null
    } catch (error) {
      // The settler has put the bill aside. Asked for again, the object would have it refused each time, for 30 days.
      if (error instanceof StoreRefused && bill !== LOST) return await close(call, requestId, LOST)
      throw error
    }
  }

  /** False: some of the settlements wait for the store. */
  async function closeChildren(
    call: CallRecord,
    bills: readonly (readonly [string, Bill])[],
  ): Promise<boolean> {
    let allClosed = true
    for (const [requestId, bill] of bills) allClosed = (await close(call, requestId, bill)) && allClosed
    return allClosed
  }

  /** No start interrupts a deferred call: until its call is closed, its object has to be asked for again. */
  async function closeObject(object: DeferredObject, bill: Bill): Promise<boolean> {
    const isClosed = await close(object.call, object.call.requestId, bill)
    if (isClosed) await store.forgetDeferred(object, clock.nowMs())
    return isClosed
  }

  /** The prices that a call was made at. Those of the last one are kept: to compile a book takes milliseconds. */
  let last: { readonly id: string; readonly version: PriceVersion } | null = null
  async function versionOf({ requestId, priceVersion }: CallRecord): Promise<PriceVersion> {
    const id = priceVersion ?? ''
    if (last?.id === id) return last.version
    // Loaded when it is first needed: few gateways need it.
    const { readVersion } = await import('../pricing/rate-again.ts')
    const json = await store.readPriceVersion(id)
    const version = json === null ? null : readVersion(json)
    if (version === null) throw new Error(`the price version of ${requestId} cannot be read`)
    last = { id, version }
    return version
  }

  function billOf(
    { requestId }: CallRecord,
    usage: Usage,
    { context, discount }: KeptRating,
    version: PriceVersion,
  ): Bill {
    const rated = rateFigures(usage, context, version, discount)
    if (!isPlausible(usage, rated)) throw new Error(`what upstream says that ${requestId} has used cannot be`)
    return billUsage(usage, rated)
  }

  function ratingOf({ requestId, rating }: CallRecord): KeptRating {
    const kept = readRating(rating)
    if (kept === null) throw new Error(`how ${requestId} is rated cannot be read`)
    return kept
  }

  return {
    async settle(object, metered) {
      const { call } = object
      const { usage } = metered
      if (!tellsCost(metered)) throw new Error(`${call.requestId} is done, and does not say what it has used`)
      const kept = ratingOf(call)
      return await closeObject(object, billOf(call, usage, kept, await versionOf(call)))
    },
    async settleBatch(object, { usage: { stopReason }, requestsFor = null }, read) {
      const { call } = object
      const { BatchUsage } = await import('../pricing/batch-usage.ts')
      const version = await versionOf(call)
      const kept = ratingOf(call)
      const { discount } = kept
      // The endpoint of the requests is the one that upstream states: the client may have named a cheaper one.
      const context = { ...kept.context, endpoint: requestsFor ?? kept.context.endpoint }
      const endpoint = findEndpoint(call.surface, 'POST', context.endpoint)
      const done: Bill = { ...NOTHING_BILLED, state: 'settled', stopReason }
      if (read === null || endpoint?.billing === 'free') return await closeObject(object, done)
      if (endpoint?.billing !== 'metered') return await closeObject(object, { ...done, unpriced: true })
      const used = new BatchUsage(context, version)
      const results = new BatchResults(endpoint.usage, ({ usage, inputKnown, outputKnown }) =>
        used.add(usage, inputKnown && outputKnown),
      )
      if (!(await read((chunk) => results.write(chunk))) || !results.end()) return false
      const children = used.byModel().map(({ model: served, requests, usage }) => {
        const model = served === null ? null : names.redact(served)
        const rated = { context: { ...context, modelAsked: context.modelAsked ?? model }, discount }
        const rating = writeRating(rated.context, discount)
        const billed = { ...billOf(call, usage, rated, version), stopReason }
        const requestId = childIdOf(call.requestId, JSON.stringify([served, usage.geography]))
        const { costNanos, listNanos } = billed
        const figures = { requests, costNanos, listNanos }
        return { billed, record: { requestId, parentId: call.requestId, model, rating, ...figures } }
      })
      // The children are there, and paid, before the parent lets go of its hold.
      await store.openChildren(children.map(({ record }) => record))
      const bills = children.map(({ record, billed }) => [record.requestId, billed] as const)
      return (await closeChildren(call, bills)) && (await closeObject(object, done))
    },
    async giveUp(object) {
      const about = { request: object.call.requestId, object: object.objectId }
      log.warn(about, 'what a call has made cannot be asked for any more; its cost is lost')
      // Records of a batch that a process has opened, and did not come to pay, have a part of its hold.
      const open = await store.listOpenChildren(object.call)
      const isClosed = await closeChildren(
        object.call,
        open.map((requestId) => [requestId, LOST]),
      )
      if (isClosed) await closeObject(object, LOST)
    },
  }
}
