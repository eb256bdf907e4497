import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { formatUsd, NANOS_PER_USD, type Nanos, parseUsd } from '../kernel/money.ts'
import { UNITS } from '../kernel/usage.ts'
import { CALL_FLAGS, CALL_STATES, SURFACE_NAMES } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'

const tokensSchema = z.object({
  input_tokens: f.count(),
  output_tokens: f.count(),
  cache_read_tokens: f.count(),
  cache_write_tokens: f.count(),
})
export type Tokens = z.infer<typeof tokensSchema>

const requestMembers = z.object({
  id: f.text('Also in a header of the answer to the call: `req_` and a ULID.'),
  object: z.literal('request'),
  account_id: z.string(),
  key_id: f.idOf('key'),
  key_name: f.text('The current name of the key.'),
  state: z
    .enum(CALL_STATES)
    .describe(
      '`waiting`: for a budget or for credit. `deferred`: answered, but its cost is stated later by the object that ' +
        'it created upstream. `settled`: paid. `released`: used nothing. `interrupted`: its usage is unknown, and ' +
        'nobody pays. `refused`: never sent; `code` says why.',
    ),
  started_at: f.instant(),
  ended_at: f.instant().nullable(),
  object_id: f.textOrNull('The object that the call created upstream, if its cost comes later.'),
  parent_id: f.textOrNull('The call that created the batch; this record is the part of one model.'),
  socket_id: f.textOrNull('For a WebSocket turn: the id of the handshake, which is free.'),
  method: z.string(),
  path: z.string(),
  surface: z.enum(SURFACE_NAMES),
  model: f.textOrNull('The model requested.'),
  model_served: f.textOrNull(),
  status: z.int().min(100).max(999).nullable().describe("Upstream's status; of a refused call, ours."),
  stop_reason: f.textOrNull(),
  streamed: z.boolean(),
  estimated: f.flag('Upstream reported no usage, or only part of it.'),
  unpriced: f.flag('Some of its usage has no price of its own.'),
  overrun: f.flag('It cost more than was reserved for it.'),
  priced_as_requested: f.flag('The served model has no price, so the requested one counts.'),
  usage: tokensSchema.nullable().describe('Null, like every figure, until the call is settled.'),
  cost_usd: f.usdAmount('The cost of the call.').nullable(),
  list_cost_usd: f.usdAmount('Its cost at list price.').nullable(),
  lost_list_cost_usd: f.usdAmount('Maximum list cost of an interrupted call; nobody pays it.'),
  balance_usd: f.usdAmount('The balance of the account afterwards.').nullable(),
  upstream_ms: z.number().nullable().describe('Milliseconds spent upstream.'),
  overhead_ms: z.number().nullable().describe('Milliseconds spent in the gateway.'),
  price_version: f.textOrNull('Null if the call was never sent.'),
  upstream_request_id: f.textOrNull(),
  client_ip: z.string(),
  user_agent: f.textOrNull(),
  bytes_in: f.count(),
  bytes_out: f.count(),
  credited: f.flag('Its cost was credited back.'),
  children: f
    .count()
    .optional()
    .describe('For a call that created a batch: the number of its parts, one per model.'),
  children_cost_usd: f.usdAmount('For a call that created a batch: the cost of its parts.').optional(),
  code: f.textOrNull('For a refused call: the error code.'),
})

export const requestSchema = requestMembers.meta({
  id: 'request',
  description: 'A call through the gateway.',
})
export type RequestRecord = z.infer<typeof requestSchema>

const billLineSchema = z.object({
  label: f.text('What was used, as text.'),
  kind: z.enum(UNITS),
  model: f.text('The name in the price book.'),
  quantity: f.count(),
  rate_usd: z.number().describe('The listed price of `rate_per` of them.'),
  rate_per: z.int().min(1).describe('Units per rate: a million tokens, a thousand searches.'),
  modifiers: z.array(z.string()).describe('Tier, long context, multipliers and substitutes, as text.'),
  amount_usd: z
    .number()
    .describe('At list price, with at most 18 decimals: nothing is rounded before the total.'),
  discount: z.number().describe('The fraction of it that is not billed.'),
})
export type BillLine = z.infer<typeof billLineSchema>

const billSchema = z
  .object({
    object: z.literal('bill'),
    price_version: f.textOrNull(),
    lines: z.array(billLineSchema).describe('One for each unit and model.'),
    rounding_usd: z.number().describe('List cost minus the sum of the lines: the effect of rounding once.'),
    list_cost_usd: f.usdAmount('The sum of the lines, rounded.').nullable(),
    discount_usd: f.usdAmount('List cost minus cost.').nullable(),
    cost_usd: f.usdAmount('The cost of the call.').nullable(),
    held_usd: f.usdAmount('Reserved from the budgets and the credit while the call ran.'),
    held_list_usd: f.usdAmount('The same at list price.'),
    held_because: f.text('Why this amount was reserved, as text.'),
    note: f.textOrNull('Why there are no lines, if there are none.'),
  })
  .meta({
    id: 'bill',
    description:
      'The cost of a call: lines + rounding_usd = list_cost_usd; list_cost_usd − discount_usd = cost_usd.',
  })
export type Bill = z.infer<typeof billSchema>

export const requestWithBillSchema = requestMembers
  .extend({ bill: billSchema.optional() })
  .meta({ id: 'request_with_bill', description: 'A call, with its bill if requested.' })

export const requestExpandQuery = z.strictObject({
  expand: f.wordParameter('expand', ['bill'], 'Adds the `bill`: the cost of the call, line by line.'),
})

const loggedBodySchema = z
  .strictObject({
    content_type: f.textOrNull(),
    length_bytes: z.int().describe('Of the whole body, as sent.'),
    truncated: f.flag('Only the beginning was stored or could be decoded.'),
    encoding: z.enum(['utf-8', 'base64']).describe('The encoding of `content`.'),
    content: z.string(),
  })
  .meta({ id: 'logged_body' })
export type LoggedBodyObject = z.infer<typeof loggedBodySchema>

export const requestBodiesSchema = z
  .strictObject({
    object: z.literal('request_bodies'),
    id: z.string(),
    request: loggedBodySchema.nullable(),
    response: loggedBodySchema.nullable(),
  })
  .meta({ id: 'request_bodies', description: 'The bodies of a call, without credentials.' })

/** The position of a call in the log: admission time, then id. */
export interface RequestCursor {
  readonly startedAtMs: number
  readonly requestId: string
}

const PAGE_MAX = 1_000
export const REQUESTS_PAGE = 100
const EXPORT_MAX = 10_000_000
const COST_MAX: Nanos = 1_000_000_000n * NANOS_PER_USD

export const requestListQuery = z
  .strictObject({
    start: f.timeParameter('start', 'Calls that began at or after this time; a date is a UTC day.'),
    end: f.timeParameter('end', 'Calls that began before this time; a date includes the whole day.'),
    model: z
      .string()
      .refine(
        (model) => model !== '' && model.length <= limits.recordedCharsMax,
        `model must be a string of 1 to ${limits.recordedCharsMax} characters.`,
      )
      .optional()
      .meta({
        minLength: 1,
        maxLength: limits.recordedCharsMax,
        description: 'The model requested or served.',
      }),
    status: f.parameter(
      'status must be an HTTP status from 100 to 599.',
      { type: 'integer', minimum: 100, maximum: 599, description: 'The HTTP status of the answer.' },
      (text) => (/^[1-5]\d\d$/.test(text) ? Number(text) : null),
    ),
    min_cost_usd: f.parameter(
      `min_cost_usd must be a plain decimal from 0 to ${formatUsd(COST_MAX)} with at most 9 decimals.`,
      {
        type: 'number',
        minimum: 0,
        maximum: Number(formatUsd(COST_MAX)),
        description: 'Calls that cost at least this.',
      },
      (text) => {
        const nanos = text.startsWith('-') ? null : parseUsd(text)
        return nanos === null || nanos > COST_MAX ? null : nanos
      },
    ),
    state: f.wordParameter(
      'state',
      CALL_STATES,
      'The state of the call. Refused calls, and calls that wait on this node, are listed only with this filter.',
    ),
    parent_id: requestIdParameter('parent_id', 'The records of this batch, one for each model.'),
    socket: requestIdParameter(
      'socket',
      'The turns of the WebSocket with this handshake, and the handshake.',
    ),
    flag: f.wordParameter(
      'flag',
      [...CALL_FLAGS, 'refused'],
      'Calls with this flag; `refused` is the same as the state.',
    ),
    limit: f.optionalLimit(
      EXPORT_MAX,
      `Maximum calls per answer. JSON: ${REQUESTS_PAGE} by default and up to ${PAGE_MAX}. NDJSON and CSV: all by default.`,
    ),
    after: f.parameter<RequestCursor>(
      f.AFTER_EXPECTED,
      { type: 'string', description: 'The `next` of the previous page.' },
      parseCursor,
    ),
    format: z
      .enum(['json', 'ndjson', 'csv'], 'format must be one of json, ndjson, csv.')
      .default('json')
      .describe('A page as JSON, or a complete export: one JSON object per line, or CSV.'),
  })
  .refine(({ flag, state = 'refused' }) => flag !== 'refused' || state === 'refused', {
    error: 'flag=refused must not be combined with another state.',
    path: ['flag'],
  })
  .refine(...f.ORDERED)
  .refine(({ format, limit = 0 }) => format !== 'json' || limit <= PAGE_MAX, {
    error: `limit must be a whole number from 1 to ${PAGE_MAX}.`,
    path: ['limit'],
  })

export type RequestListQuery = z.infer<typeof requestListQuery>

function requestIdParameter(name: string, description: string) {
  return f.parameter(
    `${name} must be the id of a request: \`req_\` and a ULID.`,
    { type: 'string', pattern: f.REQUEST_ID.source, description },
    (text) => (f.REQUEST_ID.test(text) ? text : null),
  )
}

/** Encoded as base64url, so that clients treat it as opaque. */
export function formatCursor({ startedAtMs, requestId }: RequestCursor): string {
  return Buffer.from(`${startedAtMs}.${requestId}`).toString('base64url')
}

function parseCursor(text: string): RequestCursor | null {
  const decoded = Buffer.from(text, 'base64url').toString()
  const [, startedAtMs = '', requestId = ''] = /^(\d{1,15})\.(.*)$/.exec(decoded) ?? []
  if (!f.REQUEST_ID.test(requestId)) return null
  const cursor = { startedAtMs: Number(startedAtMs), requestId }
  // Accept only the canonical form.
  return formatCursor(cursor) === text ? cursor : null
}
