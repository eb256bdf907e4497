import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { SURFACE_NAMES } from '../kernel/surface.ts'
import { CALL_STATES } from '../kernel/vocabulary.ts'
import type { CallRecord } from '../ledger/call.ts'
import type { CallCursor, CallFilter, RequestLogStore } from '../ledger/request-log.ts'
import { billObject, billSchema } from './bill.ts'
import { CSV_TYPE, type CsvCell, csvRow } from './csv.ts'
import {
  formatInstant,
  instant,
  keyId,
  listObject,
  listSchema,
  type Members,
  objectOf,
  schemaOf,
  usd,
  usdAmount,
  wordParameter,
} from './fields.ts'
import { refusedMissingKey } from './keys.ts'
import { filterOf, formatCursor, limitOf, type RequestQuery, requestQuery } from './request-query.ts'
import {
  defineRoute,
  type Management,
  type OwnReply,
  type OwnRequest,
  type Refused,
  refused,
  replyJson,
  UNSTORED,
} from './route.ts'

// How a call is shown

const count = () => z.int().min(0)

const tokenMembers: Members<CallRecord> = {
  input_tokens: [count(), (call) => call.tokens.input],
  output_tokens: [count(), (call) => call.tokens.output],
  cache_read_tokens: [count(), (call) => call.tokens.cacheRead],
  cache_write_tokens: [count(), (call) => call.tokens.cacheWrite],
}

/** The figures of a call are null while it waits, is in flight or deferred. */
const OPEN: ReadonlySet<CallRecord['state']> = new Set(['waiting', 'in_flight', 'deferred'])
const isOpen = (call: CallRecord) => OPEN.has(call.state)

const requestMembers: Members<CallRecord> = {
  id: [z.string().describe('As in a header of the answer to the call: `req_` and a ULID.'), 'requestId'],
  object: [z.literal('request'), () => 'request'],
  key_id: [keyId(), 'keyId'],
  state: [
    z
      .enum(CALL_STATES)
      .describe(
        'Waiting calls are held back until there is room under a cap or credit. Deferred ones were answered, and what they ' +
          'cost is told later by the object that they have made upstream; their hold stays in force. Settled calls are paid for, released ' +
          'ones used nothing, interrupted ones were cut off before anybody could say what they used, by a crash or by ' +
          'upstream. Refused ones were never sent; `code` says why.',
      ),
    'state',
  ],
  started_at: [instant(), (call) => formatInstant(call.startedAtMs)],
  ended_at: [instant().nullable(), (call) => formatInstant(call.endedAtMs)],
  object_id: [
    z.string().nullable().describe('What the call has made upstream, where its cost comes later.'),
    'objectId',
  ],
  parent_id: [
    z.string().nullable().describe('The call that made the batch of which this is the part of one model.'),
    'parentId',
  ],
  socket_id: [
    z
      .string()
      .nullable()
      .describe(
        'Of a turn of a WebSocket: the id of the handshake. A handshake has its own; it is free and in no sum.',
      ),
    'socketId',
  ],
  method: [z.string(), 'method'],
  path: [z.string(), 'path'],
  surface: [z.enum(SURFACE_NAMES), 'surface'],
  model: [z.string().nullable().describe('The model asked for.'), 'modelAsked'],
  model_served: [z.string().nullable(), 'modelServed'],
  status: [
    z
      .int()
      .min(100)
      .max(999)
      .nullable()
      .describe('The status that upstream answered with; of a refused call, that of the refusal.'),
    'status',
  ],
  stop_reason: [z.string().nullable(), 'stopReason'],
  streamed: [z.boolean(), 'streamed'],
  estimated: [z.boolean().describe('Upstream reported no usage, or not all of it.'), 'estimated'],
  unpriced: [z.boolean().describe('Something in it had no price of its own.'), 'unpriced'],
  overrun: [z.boolean().describe('It cost more than was held for it.'), 'overrun'],
  priced_as_requested: [
    z.boolean().describe('The model served had no price; the one asked for has.'),
    'pricedAsRequested',
  ],
  usage: [
    schemaOf(tokenMembers)
      .nullable()
      .describe('Null while the call waits, is in flight or deferred, as all its figures are.'),
    (call) => (isOpen(call) ? null : objectOf(tokenMembers, call)),
  ],
  cost_usd: [usdAmount('What the call cost.').nullable(), (call) => usd(call.costNanos)],
  list_cost_usd: [
    usdAmount('What it would have cost at list price.').nullable(),
    (call) => usd(call.listNanos),
  ],
  lost_list_cost_usd: [
    usdAmount('What an interrupted call may have cost at list price; nobody is charged it.'),
    (call) => usd(call.lostListNanos),
  ],
  balance_usd: [
    usdAmount('The balance of the account after it.').nullable(),
    (call) => usd(call.balanceNanos),
  ],
  upstream_ms: [z.number().nullable().describe('Milliseconds spent upstream.'), 'upstreamMs'],
  overhead_ms: [z.number().nullable().describe('Milliseconds spent in the gateway.'), 'overheadMs'],
  price_version: [z.string().nullable().describe('Null of a call that was never sent.'), 'priceVersion'],
  upstream_request_id: [z.string().nullable(), 'upstreamRequestId'],
  client_ip: [z.string(), 'clientIp'],
  user_agent: [z.string().nullable(), 'userAgent'],
  bytes_in: [count(), 'bytesIn'],
  bytes_out: [count(), 'bytesOut'],
  credited: [z.boolean().describe('Its cost was given back.'), 'credited'],
  code: [
    z.string().nullable().describe('Of a refused call: the code of the error it was answered with.'),
    'code',
  ],
}

const requestSchema = schemaOf(requestMembers).meta({
  id: 'request',
  description: 'A call that came through the gateway.',
})

const lookedUpSchema = requestSchema
  .extend({ bill: billSchema.optional() })
  .meta({ id: 'looked_up_request', description: 'A call, with its bill where that was asked for.' })

const requestObject = (call: CallRecord) => objectOf(requestMembers, call)

/** The columns of an export: the members in their order, with the counts of tokens in the place of `usage`. */
export const REQUEST_COLUMNS: readonly string[] = Object.keys(requestMembers).flatMap((name) =>
  name === 'usage' ? Object.keys(tokenMembers) : [name],
)

function requestRow(call: CallRecord): string {
  const { usage, ...members } = requestObject(call)
  const cells: Record<string, unknown> = { ...members, ...(usage as object | null) }
  return csvRow(REQUEST_COLUMNS.map((name) => (cells[name] ?? null) as CsvCell))
}

// A list of calls, as a page or as an export

type Log = Pick<RequestLogStore, 'listCalls'>

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

/** The log of the account, or of one key, in the format that was asked for. */
async function answerRequests(
  { caller, query, exchange }: OwnRequest<RequestQuery>,
  { store, clock, waitingCalls, refusedCalls }: Management,
  keyId: string | null,
): Promise<OwnReply> {
  const filter = filterOf(query, caller.accountId, keyId)
  if (filter.state === 'refused') await refusedCalls.written()
  const log = filter.state === 'waiting' ? logOfWaiting(waitingCalls) : store
  if (query.format === 'json') return await replyPage(log, filter, query, () => exchange.res.destroyed)
  const form = EXPORT_FORMS[query.format]
  const subject = keyId === null ? '' : `${keyId}-`
  const now = new Date(clock.nowMs()).toISOString().replace(/\.\d+|[-:]/g, '')
  const disposition = `attachment; filename="requests-${subject}${now}.${query.format}"`
  return {
    kind: 'stream',
    reply: {
      status: 200,
      headers: ['content-type', form.contentType, 'content-disposition', disposition, ...UNSTORED],
      chunks: exportRequests(log, filter, query, form),
    },
  }
}

/** Reads the log until the page is full, but not for ever: a page of few calls, or none, may still have a page after it. */
async function replyPage(
  log: Log,
  filter: CallFilter,
  query: RequestQuery,
  hasLeft: () => boolean,
): Promise<OwnReply> {
  const limit = limitOf(query)
  const calls: CallRecord[] = []
  let position = query.after ?? null
  for (let look = 0; look < limits.logPageLooksMax && !hasLeft(); look += 1) {
    const page = await log.listCalls(filter, position, limit - calls.length)
    calls.push(...page.calls)
    position = page.next
    if (position === null || calls.length >= limit) break
  }
  const next = position === null ? null : formatCursor(position)
  return replyJson(200, listObject(calls.map(requestObject), next))
}

/** How the calls of an export are written. */
interface ExportForm {
  readonly contentType: string
  readonly head: string
  line(call: CallRecord): string
}

const EXPORT_FORMS: Readonly<Record<'ndjson' | 'csv', ExportForm>> = {
  ndjson: {
    contentType: 'application/x-ndjson',
    head: '',
    line: (call) => `${JSON.stringify(requestObject(call))}\n`,
  },
  csv: { contentType: CSV_TYPE, head: csvRow(REQUEST_COLUMNS), line: requestRow },
}

/**
 * All calls that match, a page at a time, so that millions need no more memory than a few. Each page of the log is a chunk,
 * even an empty one: where matches are rare, the sender can stop between pages.
 */
async function* exportRequests(
  log: Log,
  filter: CallFilter,
  query: RequestQuery,
  form: ExportForm,
): AsyncGenerator<Buffer, void, undefined> {
  let position = query.after ?? null
  let left = limitOf(query)
  let text = form.head
  do {
    const page = await log.listCalls(filter, position, Math.min(left, limits.exportPageCallsMax))
    for (const call of page.calls) text += form.line(call)
    yield Buffer.from(text)
    text = ''
    left -= page.calls.length
    position = page.next
  } while (position !== null && left > 0)
}

// The endpoints

const PAGE_DESCRIPTION =
  'The order is that of their beginning, so calls that arrive meanwhile never shift a page. Where matches are rare ' +
  'a page may be short, or empty, and still have more after it: go on while `has_more` is true.'

const LISTED = {
  status: 200,
  schema: listSchema(requestSchema),
  alsoAs: {
    'application/x-ndjson': 'A request on each line, as JSON.',
    'text/csv': 'A row for each request, under the names of its members; the counts of `usage` are columns.',
  },
} as const

/** The full log of a key, revoked or not: when a key has leaked, the log shows what was done with it. */
const listKeyRequests = defineRoute({
  endpoint: 'GET /v1/keys/{id}/requests',
  operationId: 'list_key_requests',
  summary: 'List or export the calls of an API key, newest first',
  description: `Also of a key that is revoked, and whatever its \`log_requests\` is. ${PAGE_DESCRIPTION}`,
  query: requestQuery,
  success: LISTED,
  errors: ['not_found'],
  async handle(request, management) {
    const { caller, params } = request
    const key = await management.store.getKey(caller.accountId, params[0] ?? '', management.clock.nowMs())
    return key === null ? refusedMissingKey() : await answerRequests(request, management, key.id)
  },
})

const listRequests = defineRoute({
  endpoint: 'GET /gateway/v1/requests',
  operationId: 'list_requests',
  summary: 'List or export the calls of the account, newest first',
  description: PAGE_DESCRIPTION,
  query: requestQuery,
  success: LISTED,
  handle: async (request, management) => await answerRequests(request, management, null),
})

export function refusedMissingRequest(): Refused {
  return refused('not_found', 'There is no request with this id.')
}

/**
 * The figures of one call, for clients that cannot read trailers. The answer waits until the call is settled, so that it
 * is final; an API key sees its own calls only.
 */
const getRequest = defineRoute({
  endpoint: 'GET /gateway/v1/requests/{id}',
  access: 'any_key',
  operationId: 'get_request',
  summary: 'Show a call and what it cost',
  description:
    `Waits up to ${limits.requestWaitMs / 1_000} seconds for a call in flight to be settled, then answers without ` +
    'its figures. A call that waits for room is told at once, and a refused one as well. An API key sees its own ' +
    'calls only.',
  query: z.strictObject({
    expand: wordParameter(
      'expand',
      ['bill'],
      'Adds the `bill`: what the call cost as arithmetic, line by line.',
    ),
  }),
  success: { status: 200, schema: lookedUpSchema },
  errors: ['not_found'],
  async handle(request, management) {
    const [id = ''] = request.params
    const call = await settledCall(id, request, management)
    if (call === null || !maySee(request, call)) return refusedMissingRequest()
    const bill = request.query.expand === 'bill' ? { bill: await billObject(call, management) } : {}
    return replyJson(200, { ...requestObject(call), ...bill })
  },
})

function maySee({ caller }: OwnRequest, call: CallRecord): boolean {
  if (caller.accountId !== call.accountId) return false
  return caller.kind === 'admin_key' || caller.keyId === call.keyId
}

/** How often the record is read again: another node may settle the call, and this node is not told of that. */
const LOOK_AGAIN_MS = 1_000

async function settledCall(
  id: string,
  request: OwnRequest,
  { store, settlements, clock, waitingCalls, refusedCalls }: Management,
): Promise<CallRecord | null> {
  // A call may wait for room for longer than the client waits for this answer, so a waiting call is answered at once.
  const waiting = waitingCalls.find(id)
  if (waiting !== null) return waiting
  // The record of a refusal follows its answer by a moment.
  await refusedCalls.written()
  const { res } = request.exchange
  const deadlineMs = clock.monotonicMs() + limits.requestWaitMs
  for (;;) {
    // The wait begins before the record is read, or a settlement between the two would be missed.
    const wait = settlements.wait(id, LOOK_AGAIN_MS)
    const stop = () => wait.stop()
    res.whenClosed.add(stop)
    const call = await store.getCall(id)
    const final = call === null || call.state !== 'in_flight' || !maySee(request, call)
    if (!final && !res.destroyed && clock.monotonicMs() < deadlineMs) await wait.done
    res.whenClosed.remove(stop)
    wait.stop()
    if (final || res.destroyed || clock.monotonicMs() >= deadlineMs) return call
  }
}

export const requestRoutes = [listKeyRequests, listRequests, getRequest]
