import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { fieldsOf } from '../api/field-names.ts'
import { rangeOf, type Written } from '../api/fields.ts'
import {
  type LoggedBodyObject,
  REQUESTS_PAGE,
  type RequestListQuery,
  type RequestRecord,
  requestExpandQuery,
  requestListQuery,
  requestSchema,
  type Tokens,
} from '../api/request.ts'
import { limits } from '../kernel/limits.ts'
import type { CallRecord } from '../ledger/call.ts'
import { TOKEN_COLUMNS, type TokenCounts } from '../ledger/call-columns.ts'
import type { CallFilter, LoggedBody } from '../ledger/request-log.ts'
import type { Store } from '../store/store.ts'
import { billObject } from './bill.ts'
import { replyExport } from './csv.ts'
import { personFilter } from './people.ts'
import { queuesOf, RequestQueues } from './request-queues.ts'
import {
  type Answer,
  defineRoute,
  formatInstant,
  listObject,
  type Management,
  type OwnRequest,
  refused,
  usd,
} from './route.ts'

/** Calls of an export that are in memory at once. Serialising so many takes 0.4 ms, during which streams wait. */
const EXPORT_PAGE_CALLS_MAX = 25

/** Maximum number of database reads for a page of the request log. After that, the page is sent short. */
export const LOG_PAGE_READS_MAX = 20

/** The figures of a call are null while it waits, is in flight or deferred. */
const OPEN: ReadonlySet<CallRecord['state']> = new Set(['waiting', 'in_flight', 'deferred'])

function tokensObject({ tokens }: CallRecord): Tokens {
  const entries = Object.entries(TOKEN_COLUMNS) as [keyof TokenCounts, keyof Tokens][]
  return Object.fromEntries(entries.map(([name, field]) => [field, tokens[name]])) as Tokens
}

function requestObject(call: CallRecord, keyName: string): Written<RequestRecord> {
  return {
    id: call.requestId,
    object: 'request',
    ...fieldsOf(call, ['accountId', 'keyId']),
    key_name: keyName,
    person_id: call.personId,
    ...fieldsOf(call, ['state', 'startedAtMs', 'endedAtMs', 'objectId', 'parentId', 'socketId', 'sessionId']),
    ...fieldsOf(call, ['method', 'path', 'surface']),
    model: call.modelAsked,
    ...fieldsOf(call, ['modelServed', 'status', 'stopReason', 'streamed', 'estimated', 'unpriced']),
    ...fieldsOf(call, ['overrun', 'pricedAsRequested']),
    usage: OPEN.has(call.state) ? null : tokensObject(call),
    cost_usd: usd(call.costNanos),
    list_cost_usd: usd(call.listNanos),
    lost_list_cost_usd: usd(call.lostListNanos),
    ...fieldsOf(call, ['balanceNanos', 'upstreamMs', 'overheadMs', 'priceVersion', 'upstreamRequestId']),
    client_ip: call.clientIp || null,
    ...fieldsOf(call, ['userAgent', 'bytesIn', 'bytesOut', 'credited']),
    ...(call.children === null
      ? {}
      : { children: call.children, children_cost_usd: usd(call.childrenNanos ?? 0n) }),
    code: call.code,
  }
}

/** Converts calls to objects. The name of each key is read once. */
function createConverter({ readKeyNames }: Management['store']) {
  const names = new Map<string, string>()
  return async (calls: readonly CallRecord[]): Promise<Written<RequestRecord>[]> => {
    const missing = new Set(calls.map(({ keyId }) => keyId).filter((id) => !names.has(id)))
    if (missing.size > 0) for (const { id, name } of await readKeyNames([...missing])) names.set(id, name)
    return calls.map((call) => requestObject(call, names.get(call.keyId) ?? ''))
  }
}

/** The members that every call has, with token counts in place of `usage`. Child records are separate rows. */
export const REQUEST_COLUMNS: readonly string[] = Object.keys(requestSchema.shape).flatMap((name) => {
  if (name === 'children' || name === 'children_cost_usd') return []
  return name === 'usage' ? Object.keys(requestSchema.shape.usage.unwrap().shape) : [name]
})

type LoggedCalls = Pick<Store, 'listCalls'>

function filterOf(
  query: RequestListQuery,
  accountId: string | null,
  keyId: string | null,
  personId: string | null,
): CallFilter {
  const { flag = null } = query
  return {
    accountId,
    keyId,
    personId,
    ...rangeOf(query),
    model: query.model ?? null,
    status: query.status ?? null,
    state: flag === 'refused' ? flag : (query.state ?? null),
    minCostNanos: query.min_cost_usd ?? null,
    flag: flag === 'refused' ? null : flag,
    parentId: query.parent_id ?? null,
    socketId: query.socket ?? null,
    sessionId: query.session ?? null,
  }
}

/** The stored calls and this node's waiting calls. A call that was admitted in between is listed once, as stored. */
function logWithWaiting({ store, waitingCalls }: Management): LoggedCalls {
  return {
    async listCalls(filter, after, limit) {
      const all = filter.state === null || filter.state === 'waiting' ? waitingCalls.list(filter) : []
      const waiting = after === null ? all : all.filter(({ requestId }) => requestId < after)
      const stored =
        filter.state === 'waiting' ? { calls: [], next: null } : await store.listCalls(filter, after, limit)
      const { calls, next } = stored
      if (waiting.length === 0) return stored
      const ids = new Set(calls.map(({ requestId }) => requestId))
      const added = waiting.filter(
        ({ requestId }) => !ids.has(requestId) && (next === null || requestId >= next),
      )
      const merged = [...calls, ...added].sort((a, b) => (a.requestId < b.requestId ? 1 : -1))
      return {
        calls: merged.slice(0, limit),
        next: merged.length > limit ? (merged[limit - 1]?.requestId ?? null) : next,
      }
    },
  }
}

async function answerRequests(
  request: OwnRequest<RequestListQuery>,
  management: Management,
  keyId: string | null,
): Promise<Answer> {
  const { query, exchange, atMs } = request
  const person = personFilter(request.ownPersonId, query.person)
  if (person.kind === 'refused') return person
  const filter = filterOf(query, request.listedAccountId, keyId, person.id)
  const { store, refusedCalls } = management
  if (filter.state === 'refused') await refusedCalls.written()
  const log = logWithWaiting(management)
  const toObjects = createConverter(store)
  const { format } = query
  if (format === 'json') {
    const { calls, next } = await readPage(log, filter, query, () => exchange.res.destroyed)
    return listObject(await toObjects(calls), next)
  }
  const now = formatInstant(atMs).replace(/\.\d+|[-:]/g, '')
  return replyExport<string>(format, {
    name: `requests-${keyId === null ? '' : `${keyId}-`}${now}`,
    columns: REQUEST_COLUMNS,
    after: query.after ?? null,
    limit: query.limit,
    pageMax: EXPORT_PAGE_CALLS_MAX,
    async read(after, limit) {
      const { calls, next } = await log.listCalls(filter, after, limit)
      const objects = await toObjects(calls)
      return { rows: format === 'csv' ? objects.map((call) => ({ ...call, ...call.usage })) : objects, next }
    },
  })
}

/** Reads until the page is full or the maximum number of reads is reached. So a short page may have a next page. */
async function readPage(
  log: LoggedCalls,
  filter: CallFilter,
  query: RequestListQuery,
  hasLeft: () => boolean,
) {
  const { limit = REQUESTS_PAGE } = query
  const calls: CallRecord[] = []
  let next = query.after ?? null
  for (let reads = 0; reads < LOG_PAGE_READS_MAX && !hasLeft(); reads += 1) {
    const page = await log.listCalls(filter, next, limit - calls.length)
    calls.push(...page.calls)
    next = page.next
    if (next === null || calls.length >= limit) break
  }
  return { calls, next }
}

const PAGE_DESCRIPTION =
  'Ordered by id, which is the order of arrival, so new calls do not shift pages. If matches are rare, a page may be short or empty ' +
  'although more follow: continue while `has_more` is true.'

const LISTED = {
  query: requestListQuery,
  alsoAs: {
    'application/x-ndjson': 'One request per line, as JSON. Complete without `limit`.',
    'text/csv':
      'One row per request, with the names of its members as the header; the counts of `usage` are columns. Complete ' +
      'without `limit`.',
  },
} as const

/** The full log of a key, even of a revoked one: after a leak, it shows how the key was used. */
export const listKeyRequests = defineRoute({
  summary: 'List or export the calls of an API key, newest first',
  description: `Works for revoked keys too, and does not depend on \`log_requests\`. ${PAGE_DESCRIPTION}`,
  ...LISTED,
  async handle(request, management) {
    const { accountId, id, atMs } = request
    const key = await management.store.getKey(accountId, id, atMs)
    return key && (await answerRequests(request, management, key.id))
  },
})

export const listRequests = defineRoute({
  summary: 'List or export the calls of the account, newest first',
  description: `An API key sees its own calls only. ${PAGE_DESCRIPTION}`,
  ...LISTED,
  handle: (request, management) =>
    answerRequests(request, management, request.caller.kind === 'api_key' ? request.caller.keyId : null),
})

/** The router does not queue lookups, because they may wait long for the call to be settled. */
const lookups = new RequestQueues()

/** The answer waits until the call is settled, because clients that cannot read trailers get the cost here. */
export const getRequest = defineRoute({
  summary: 'Show a call and its cost',
  description:
    `Waits up to ${limits.requestWaitMs / 1_000} seconds (or \`wait\`) until a call in flight is settled. After that, the answer has no figures. ` +
    'Waiting and refused calls are answered at once. An API key sees its own calls only.',
  query: requestExpandQuery,
  async handle(request, management) {
    const call = await settledCall(request, request.query.wait * 1_000, management)
    if (call === null || !maySee(request, call)) return null
    return await lookups.enqueue(queuesOf(request.caller), async () => {
      const [object = null] = await createConverter(management.store)([call])
      if (object === null || request.query.expand !== 'bill') return object
      return { ...object, bill: await billObject(call, management) }
    })
  },
})

function maySee({ caller, accountId }: OwnRequest, call: CallRecord): boolean {
  if (accountId !== call.accountId) return false
  return caller.kind !== 'api_key' || caller.keyId === call.keyId
}

/** How often the record is read again, because another node may settle the call. */
const READ_AGAIN_MS = 1_000

async function settledCall(
  request: OwnRequest,
  waitMs: number,
  { store, settlements, clock, waitingCalls, refusedCalls }: Management,
): Promise<CallRecord | null> {
  const { id } = request
  // A call may wait for budget longer than the client waits for this answer.
  const waiting = waitingCalls.find(id)
  if (waiting !== null) return waiting
  // The record of a refusal is written shortly after its answer.
  await refusedCalls.written()
  const { res } = request.exchange
  const deadlineMs = clock.monotonicMs() + waitMs
  for (;;) {
    // Start waiting before the record is read, or a settlement in between would be missed.
    const wait = settlements.wait(id, READ_AGAIN_MS)
    const stop = () => wait.stop()
    res.whenClosed.add(stop)
    const call = await lookups.enqueue(queuesOf(request.caller), () => store.getCall(id))
    const final = call === null || call.state !== 'in_flight' || !maySee(request, call)
    if (!final && !res.destroyed && clock.monotonicMs() < deadlineMs) await wait.done
    res.whenClosed.remove(stop)
    wait.stop()
    if (final || res.destroyed || clock.monotonicMs() >= deadlineMs) return call
  }
}

export const getRequestBodies = defineRoute({
  summary: 'Show the bodies of a call',
  description:
    'Stored only if the key had `log_requests` at the time: the first MiB of each, for `requests.retention_days`.',
  async handle({ id, accountId }, { store }) {
    const call = await store.getCall(id)
    if (call === null || call.accountId !== accountId) return null
    const bodies = await store.getBodies(id)
    if (bodies === null) {
      const message =
        'No bodies are stored for this request: its key did not log them, or they were deleted. PATCH the key with ' +
        '{"log_requests": true} to log those of later calls.'
      return refused('not_found', message)
    }
    const [request, response] = [await bodyObject(bodies.request), await bodyObject(bodies.response)]
    return { object: 'request_bodies', id, request, response }
  },
})

const decompress = promisify(zstdDecompress)

async function bodyObject(logged: LoggedBody | null): Promise<LoggedBodyObject | null> {
  if (logged === null) return null
  const bytes = await decompress(logged.compressed, { maxOutputLength: limits.loggedBodyBytesMax * 2 })
  const encoding = isText(bytes, logged.truncated) ? 'utf-8' : 'base64'
  return {
    content_type: logged.contentType,
    length_bytes: logged.lengthBytes,
    truncated: logged.truncated,
    encoding,
    content: bytes.toString(encoding === 'utf-8' ? 'utf8' : 'base64'),
  }
}

/** A truncated text may end in the middle of a character. */
function isText(bytes: Buffer, truncated: boolean): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: truncated })
    return true
  } catch {
    return false
  }
}
