import { limits } from '../kernel/limits.ts'
import type { CallRecord } from '../ledger/call.ts'
import type { CallCursor, CallFilter } from '../ledger/request-log.ts'
import { CSV, exportRequests, NDJSON } from './export-requests.ts'
import { replyUnstored } from './reply-unstored.ts'
import { formatCursor } from './request-cursor.ts'
import { requestObject } from './request-object.ts'
import { filterOf, limitOf, type RequestQuery } from './request-query.ts'
import type { Management, OwnReply, OwnRequest } from './route.ts'

/** The log of the account, or of one key, in the format that was asked for. */
export async function answerRequests(
  { caller, query, exchange }: OwnRequest<RequestQuery>,
  { store, clock, waitingCalls, refusedCalls }: Management,
  keyId: string | null,
): Promise<OwnReply> {
  const filter = filterOf(query, caller.accountId, keyId)
  if (filter.state === 'refused') await refusedCalls.written()
  const log = filter.state === 'waiting' ? logOfWaiting(waitingCalls) : store
  if (query.format === 'json') {
    return await replyPage(log, filter, query, () => exchange.res.destroyed)
  }
  const form = query.format === 'csv' ? CSV : NDJSON
  const subject = keyId === null ? '' : `${keyId}-`
  const instant = new Date(clock.nowMs()).toISOString().replace(/\.\d+|[-:]/g, '')
  const fileName = `requests-${subject}${instant}.${form.extension}`
  return {
    kind: 'stream',
    reply: {
      status: 200,
      headers: [
        'content-type',
        form.contentType,
        'content-disposition',
        `attachment; filename="${fileName}"`,
        'cache-control',
        'no-store',
      ],
      chunks: exportRequests(log, filter, query.after ?? null, limitOf(query), form),
    },
  }
}

type Log = Pick<Management['store'], 'listCalls'>

/** The calls that wait, as pages of a log. */
function logOfWaiting(waitingCalls: Management['waitingCalls']): Log {
  return {
    async listCalls(filter, after, limit) {
      const all = waitingCalls.list(filter)
      const left = after === null ? all : all.filter((call) => isBehind(call, after))
      const calls = left.slice(0, limit)
      const last = calls.at(-1)
      return { calls, next: left.length > calls.length && last !== undefined ? last : null }
    },
  }
}

function isBehind(call: CallRecord, { startedAtMs, requestId }: CallCursor): boolean {
  return call.startedAtMs < startedAtMs || (call.startedAtMs === startedAtMs && call.requestId < requestId)
}

/** Looks until the page is full, but not for ever: a page of few calls, or none, may still have one after it. */
async function replyPage(
  store: Log,
  filter: CallFilter,
  query: RequestQuery,
  hasLeft: () => boolean,
): Promise<OwnReply> {
  const limit = limitOf(query)
  const calls: CallRecord[] = []
  let place = query.after ?? null
  for (let look = 0; look < limits.logPageLooksMax && !hasLeft(); look += 1) {
    const page = await store.listCalls(filter, place, limit - calls.length)
    calls.push(...page.calls)
    place = page.next
    if (place === null || calls.length >= limit) break
  }
  return replyUnstored(200, {
    object: 'list',
    data: calls.map(requestObject),
    has_more: place !== null,
    next: place === null ? null : formatCursor(place),
  })
}
