import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { formatUsd, NANOS_PER_USD, type Nanos, parseUsd } from '../kernel/money.ts'
import { UNITS } from '../kernel/usage.ts'
import { CALL_FLAGS, CALL_STATES, SURFACE_NAMES } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'

const tokensSchema = z.object({
  input_tokens: f.whole(),
  output_tokens: f.whole(),
  cache_read_tokens: f.whole(),
  cache_write_tokens: f.whole(),
})
export type Tokens = z.infer<typeof tokensSchema>

export const requestSchema = z
  .object({
    id: f.string('`req_` and a ULID. The reply to the call has it in a header too.'),
    object: z.literal('request'),
    account_id: z.string(),
    key_id: f.idOf('key'),
    key_name: f.string('The current name of the key.'),
    person_id: f.idOf('person').nullable().describe('Whose key it is. Null: the key of a service.'),
    state: z
      .enum(CALL_STATES)
      .describe(
        '`waiting`: waits for a budget or for credit. `deferred`: answered, but the object that it created upstream states the ' +
          'cost later. `settled`: charged. `released`: used nothing. `interrupted`: its usage is unknown, and ' +
          'nobody pays. `refused`: never sent; `code` says why.',
      ),
    started_at: f.instant(),
    ended_at: f.instant().nullable(),
    object_id: f.stringOrNull(
      'The object that the call created upstream, if the object states the cost later.',
    ),
    parent_id: f.stringOrNull(
      'For the part of a batch that one model served: the call that created the batch.',
    ),
    socket_id: f.stringOrNull('For a WebSocket turn: the id of the handshake, which is free.'),
    session_id: f.stringOrNull(
      "The client's own name of its session, from the header `x-claude-code-session-id`, `session-id`, `session_id` or `x-session-id`.",
    ),
    method: z.string(),
    path: z.string(),
    surface: z.enum(SURFACE_NAMES),
    model: f.stringOrNull('The model requested.'),
    model_served: f.stringOrNull(),
    status: z
      .int()
      .min(100)
      .max(999)
      .nullable()
      .describe("Upstream's status. If the gateway refused the call, the status of the refusal."),
    stop_reason: f.stringOrNull(),
    streamed: z.boolean(),
    estimated: f.flag('Whether usage was estimated, because upstream did not report all of it.'),
    unpriced: f.flag('Whether part of the usage has no listed price.'),
    overrun: f.flag('Whether the call cost more than it reserved.'),
    priced_as_requested: f.flag(
      'Whether the price of the requested model was used, because the served model has none.',
    ),
    usage: tokensSchema
      .nullable()
      .describe('The token counts. Like all figures, null until the call is settled.'),
    cost_usd: f.usdAmount('The cost of the call.').nullable(),
    list_cost_usd: f.usdAmount('The cost of the call at list price.').nullable(),
    lost_list_cost_usd: f.usdAmount(
      'The list cost that may have been lost with an interrupted or broken call. Nobody pays it.',
    ),
    balance_usd: f.usdAmount('The balance of the account afterwards.').nullable(),
    upstream_ms: z.number().nullable().describe('Milliseconds spent upstream.'),
    overhead_ms: z.number().nullable().describe('Milliseconds spent in the gateway.'),
    price_version: f.stringOrNull('The version of the price book. Null if the call was never sent.'),
    upstream_request_id: f.stringOrNull(),
    client_ip: f.stringOrNull('Null if `requests.client_details` is off.'),
    user_agent: f.stringOrNull(),
    bytes_in: f.whole(),
    bytes_out: f.whole(),
    credited: f.flag('Whether the cost was credited back.'),
    children: f
      .whole()
      .optional()
      .describe('For a call that created a batch: the number of its parts, one per model.'),
    children_cost_usd: f.usdAmount('For a call that created a batch: the cost of its parts.').optional(),
    code: f.stringOrNull('For a refused call: the error code.'),
  })
  .meta({ id: 'request', description: 'A call through the gateway.' })
export type RequestRecord = z.infer<typeof requestSchema>

const billLineSchema = z.object({
  label: f.string('What was used, as text.'),
  kind: z.enum(UNITS),
  model: f.string('The name in the price book.'),
  quantity: f.whole(),
  rate_usd: z.number().describe('The listed price of `rate_per` units.'),
  rate_per: z.int().min(1).describe('Units per rate: a million tokens, a thousand searches.'),
  modifiers: z.array(z.string()).describe('Tier, long context, multipliers and substitutes, as text.'),
  amount_usd: z
    .number()
    .describe('At list price, with at most 18 decimals: nothing is rounded before the total.'),
  discount: z.number().describe('The fraction of the amount that is not billed.'),
})
export type BillLine = z.infer<typeof billLineSchema>

const billSchema = z
  .object({
    object: z.literal('bill'),
    price_version: f.stringOrNull(),
    lines: z.array(billLineSchema).describe('A line for each unit and model.'),
    rounding_usd: z.number().describe('The effect of rounding: list cost minus the sum of the lines.'),
    list_cost_usd: f.usdAmount('The sum of the lines, rounded.').nullable(),
    discount_usd: f.usdAmount('List cost minus cost.').nullable(),
    cost_usd: f.usdAmount('The cost of the call.').nullable(),
    held_usd: f.usdAmount('The amount that the call reserved from the budgets and the credit while it ran.'),
    held_list_usd: f.usdAmount('The reserved amount at list price.'),
    held_because: f.string('Why this amount was reserved.'),
    note: f.stringOrNull('If there are no lines, why.'),
  })
  .meta({
    id: 'bill',
    description:
      'The cost of a call: lines + rounding_usd = list_cost_usd; list_cost_usd − discount_usd = cost_usd.',
  })
export type Bill = z.infer<typeof billSchema>

export const requestWithBillSchema = requestSchema
  .extend({ bill: billSchema.optional() })
  .meta({ id: 'request_with_bill', description: 'A call, with its bill if requested.' })

export const requestExpandQuery = z.strictObject({
  expand: f.choiceParameter('expand', ['bill'], 'Adds the `bill`: the cost of the call, line by line.'),
  wait: f.waitParameter(limits.requestWaitMs / 1_000),
})

const loggedBodySchema = z
  .strictObject({
    content_type: f.stringOrNull(),
    length_bytes: z.int().describe('The length of the whole body, as sent.'),
    truncated: f.flag('Whether only the beginning was stored or could be decoded.'),
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

const PAGE_MAX = 1_000
export const REQUESTS_PAGE = 100
const EXPORT_MAX = 10_000_000
const COST_MAX: Nanos = 1_000_000_000n * NANOS_PER_USD

const MODEL_CHARS_MAX = limits.recordedCharsMax
const MODEL_DESCRIPTION = 'Only calls that requested this model, or were served by it.'

export const requestListQuery = z
  .strictObject({
    start: f.timeParameter(
      'start',
      'Only calls that began at this time or later. A date means the start of this UTC day.',
    ),
    end: f.timeParameter('end', 'Only calls that began before this time. A date includes the whole day.'),
    model: f.parameter(
      `model must be a string of 1 to ${MODEL_CHARS_MAX} characters.`,
      { type: 'string', minLength: 1, maxLength: MODEL_CHARS_MAX, description: MODEL_DESCRIPTION },
      (text) => (text !== '' && text.length <= MODEL_CHARS_MAX ? text : null),
    ),
    status: f.parameter(
      'status must be an HTTP status from 100 to 599.',
      { type: 'integer', minimum: 100, maximum: 599, description: 'Only calls with this HTTP status.' },
      (text) => (/^[1-5]\d\d$/.test(text) ? Number(text) : null),
    ),
    min_cost_usd: f.parameter(
      `min_cost_usd must be a plain decimal from 0 to ${formatUsd(COST_MAX)} with at most 9 decimals.`,
      {
        type: 'number',
        minimum: 0,
        maximum: Number(formatUsd(COST_MAX)),
        description: 'Only calls that cost at least this amount.',
      },
      (text) => {
        const nanos = text.startsWith('-') ? null : parseUsd(text)
        return nanos === null || nanos > COST_MAX ? null : nanos
      },
    ),
    state: f.choiceParameter(
      'state',
      CALL_STATES,
      'Only calls in this state. Refused calls, and calls that wait on this node, are listed only with this filter.',
    ),
    person: f.personParameter('Only the calls with the keys of this person.'),
    parent_id: requestIdParameter('parent_id', 'Only the records of this batch, one for each model.'),
    socket: requestIdParameter(
      'socket',
      'Only the turns of the WebSocket with this handshake, and the handshake.',
    ),
    session: f.parameter(
      `session must be a string of 1 to ${limits.sessionIdCharsMax} characters.`,
      {
        type: 'string',
        minLength: 1,
        maxLength: limits.sessionIdCharsMax,
        description: "Only calls of this session, by the client's own name of it.",
      },
      (text) => (text !== '' && text.length <= limits.sessionIdCharsMax ? text : null),
    ),
    flag: f.choiceParameter(
      'flag',
      [...CALL_FLAGS, 'refused'],
      'Only calls with this flag. `refused` is the same as the state.',
    ),
    limit: f.optionalLimit(
      EXPORT_MAX,
      `Maximum calls per answer. JSON: ${REQUESTS_PAGE} by default and up to ${PAGE_MAX}. NDJSON and CSV: all by default.`,
    ),
    after: f.parameter(
      f.AFTER_EXPECTED,
      { type: 'string', pattern: f.REQUEST_ID.source, description: 'The `next` of the previous page.' },
      (text) => (f.REQUEST_ID.test(text) ? text : null),
    ),
    format: z
      .enum(['json', 'ndjson', 'csv'], 'format must be one of json, ndjson, csv.')
      .default('json')
      .describe('`json` is a page. `ndjson` and `csv` are complete exports.'),
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
