import type { AdmissionQueues } from '../calls/admission-queue.ts'
import {
  type Bill,
  billHold,
  billUsage,
  isPlausible,
  LOST,
  NOTHING_BILLED,
  withNewContainers,
  withoutSecrets,
} from '../calls/bill.ts'
import type { Estimates } from '../calls/estimates.ts'
import type { Settler } from '../calls/settle.ts'
import type { Clock } from '../kernel/clock.ts'
import { StoreRefused } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import { childIdOf } from '../kernel/ids.ts'
import type { Log } from '../kernel/log.ts'
import type { Usage } from '../kernel/usage.ts'
import type { CallClosing, CallRecord, Settled } from '../ledger/call.ts'
import type { DeferredObject, OpenChild } from '../ledger/deferred.ts'
import type { Metered } from '../metering/meter.ts'
import type { PriceVersion } from '../pricing/price-book.ts'
import { rateFigures, readRating, type StoredRating, writeRating } from '../pricing/rate.ts'
import { readBatchResults } from '../providers/batch-results.ts'
import { statesUsage } from '../providers/deferred-kinds.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import type { Store } from '../store/store.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'

export interface DeferredBillDependencies {
  readonly store: Store
  readonly settler: Settler
  readonly counts: CallCounts
  readonly queues: Pick<AdmissionQueues, 'signalAll'>
  readonly clock: Clock
  readonly estimates: Estimates
  readonly log: Log
  readonly names: Pick<HeaderNames, 'redact'>
}

type ReadResults = (take: (chunk: Buffer) => void) => Promise<'read' | 'gone' | 'failed'>

const NO_TRANSFER = { upstreamMs: null, overheadMs: 0, bytesIn: 0, bytesOut: 0 }

function transferOf({ upstreamMs, overheadMs, bytesIn, bytesOut }: CallRecord) {
  return { upstreamMs, overheadMs: overheadMs ?? 0, bytesIn, bytesOut }
}

/** Bills deferred calls at the prices of their day. False: the bill waits for the store, or for upstream's results. */
export function createDeferredBills(dependencies: DeferredBillDependencies) {
  const { store, settler, counts, queues, clock, log, names, estimates } = dependencies

  /** Returns false if the settlement still waits for the database. */
  async function close(call: CallRecord, requestId: string, bill: Bill): Promise<boolean> {
    const isParent = requestId === call.requestId
    const closing: CallClosing = {
      ...withoutSecrets(bill, names.redact),
      requestId,
      atMs: clock.nowMs(),
      ...{ status: call.status, streamed: call.streamed, upstreamRequestId: call.upstreamRequestId },
      ...(isParent ? transferOf(call) : NO_TRANSFER),
    }
    const onSettled = ({ applied }: Settled) => {
      queues.signalAll()
      const times = { overheadMs: call.overheadMs ?? 0, upstreamMs: call.upstreamMs ?? 0 }
      if (applied) counts.countSettlement(call.surface, call.modelAsked, closing, isParent ? times : null)
    }
    try {
      return (await settler.settle(closing, onSettled)) !== null
    } catch (error) {
      // The settler has saved the refused bill. Close the object, or every poll would be refused again for 30 days.
      if (error instanceof StoreRefused && bill !== LOST) return await close(call, requestId, LOST)
      throw error
    }
  }

  async function closeAll(
    object: DeferredObject,
    bill: Bill,
    children: readonly (readonly [string, Bill])[] = [],
  ): Promise<boolean> {
    const { call } = object
    let allClosed = true
    for (const [requestId, part] of children) allClosed = (await close(call, requestId, part)) && allClosed
    const isClosed = allClosed && (await close(call, call.requestId, bill))
    if (isClosed) await store.deleteDeferred(object)
    return isClosed
  }

  async function closeWith(object: DeferredObject, billOf: (hold: Omit<OpenChild, 'requestId'>) => Bill) {
    const open = await store.listOpenChildren(object.call)
    const children = open.map((child) => [child.requestId, billOf(child)] as const)
    return await closeAll(object, billOf(object.call), children)
  }

  async function settleAtHold(object: DeferredObject): Promise<boolean> {
    const about = { request: object.call.requestId, object: object.objectId }
    log.warn(about, 'the object that states the cost of a call was deleted; its hold is charged')
    await store.countBatchAsRequest(object.call)
    return await closeWith(object, billHold)
  }

  /** Caches the last price version: compiling one takes milliseconds. */
  let last: { readonly id: string; readonly version: PriceVersion } | null = null
  async function versionOf({ requestId, priceVersion }: CallRecord): Promise<PriceVersion> {
    const id = priceVersion ?? ''
    if (last?.id === id) return last.version
    const { readVersion } = await import('../pricing/load-book.ts')
    const json = await store.readPriceVersion(id)
    const version = json === null ? null : readVersion(json)
    if (version === null) throw new Error(`the price version of ${requestId} cannot be read`)
    last = { id, version }
    return version
  }

  function ratingOf({ requestId, rating }: CallRecord): StoredRating {
    const stored = readRating(rating)
    if (stored === null) throw new Error(`the stored rating of ${requestId} cannot be read`)
    return stored
  }

  function billOf(
    call: CallRecord,
    usage: Metered['usage'],
    stored: StoredRating,
    version: PriceVersion,
  ): Bill {
    const rated = rateFigures(usage, stored.context, version, stored.discount)
    if (!isPlausible(usage, rated)) throw new Error(`upstream states implausible usage for ${call.requestId}`)
    return billUsage(usage, rated)
  }

  return {
    async settle(object: DeferredObject, metered: Metered): Promise<boolean> {
      const { call } = object
      const version = await versionOf(call)
      const rating = ratingOf(call)
      const stated = statesUsage(metered) ? metered.usage : estimateShown(metered, call, estimates)
      const usage = withNewContainers(stated, metered, dependencies)
      return await closeAll(object, billOf(call, usage, rating, version))
    },
    async settleBatch(
      object: DeferredObject,
      { usage: { stopReason }, requestsFor }: Metered,
      read: ReadResults | null,
    ): Promise<boolean> {
      const { call } = object
      const { createBatchUsage } = await import('../pricing/batch-usage.ts')
      const version = await versionOf(call)
      const stored = ratingOf(call)
      const { discount } = stored
      // Use the endpoint that upstream states for the lines: the client may have named a cheaper one.
      const context = { ...stored.context, endpoint: requestsFor ?? stored.context.endpoint }
      const endpoint = findEndpoint(call.surface, 'POST', context.endpoint)
      const done: Bill = { ...NOTHING_BILLED, state: 'settled', stopReason }
      if (read === null || endpoint?.billing === 'free') return await closeAll(object, done)
      if (endpoint?.billing !== 'metered') return await closeAll(object, { ...done, unpriced: true })
      const used = createBatchUsage(context, version)
      // The size of a line is unknown, and the request that created the batch is not its size.
      const ofLine = { ...call, bytesIn: 0 }
      const results = readBatchResults(endpoint.usage, (line) => {
        const isKnown = line.inputKnown && line.outputKnown
        used.add(isKnown ? line.usage : estimateShown(line, ofLine, estimates))
      })
      const outcome = await read((chunk) => results.write(chunk))
      if (outcome === 'gone') return await settleAtHold(object)
      if (outcome === 'failed' || !results.end()) return false
      const children = used.byModel().map(({ model: served, requests, usage, name }) => {
        const model = served === null ? null : names.redact(served)
        const rated = { context: { ...context, modelAsked: context.modelAsked ?? model }, discount }
        const bill = { ...billOf(call, usage, rated, version), stopReason }
        const { costNanos, listNanos } = bill
        const figures = { requests, costNanos, listNanos, rating: writeRating(rated.context, discount) }
        const requestId = childIdOf(call.requestId, name)
        return { bill, record: { requestId, parentId: call.requestId, model, ...figures } }
      })
      // The children are charged before the parent releases its hold.
      await store.openChildren(children.map(({ record }) => record))
      return await closeAll(
        object,
        done,
        children.map(({ record, bill }) => [record.requestId, bill]),
      )
    },
    settleAtHold,
    async giveUp(object: DeferredObject): Promise<boolean> {
      const about = { request: object.call.requestId, object: object.objectId }
      log.warn(about, 'the object of a call cannot be polled any more; its cost is lost')
      return await closeWith(object, () => LOST)
    },
  }
}

/** Estimates usage that a finished object or line does not state, from the request's size and the output shown. */
function estimateShown(
  { usage, inputKnown, outputKnown, outputTokensSeen, output }: Metered,
  { keyId, modelAsked, bytesIn }: CallRecord,
  estimates: Estimates,
): Usage {
  const { inputTokensPerByte, outputTokensPerByte } = estimates.figuresFor(keyId, modelAsked, '')
  const [own = { model: null, quantities: {}, promptTokens: 0 }, ...others] = usage.parts
  const outputTokens = Math.ceil((output.text + output.thinking + output.tool) * outputTokensPerByte)
  const inputTokens = Math.ceil(bytesIn * inputTokensPerByte)
  const quantities = {
    ...own.quantities,
    ...(inputKnown ? {} : { input_tokens: inputTokens }),
    ...(outputKnown ? {} : { output_tokens: Math.max(outputTokensSeen, outputTokens) }),
  }
  const promptTokens = inputKnown ? own.promptTokens : inputTokens
  return { ...usage, suspect: true, parts: [{ ...own, quantities, promptTokens }, ...others] }
}
