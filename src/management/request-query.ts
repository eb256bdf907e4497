import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { formatUsd, NANOS_PER_USD, type Nanos, parseUsd } from '../kernel/money.ts'
import { CALL_FLAGS, type CallState } from '../kernel/vocabulary.ts'
import type { CallCursor, CallFilter } from '../ledger/request-log.ts'
import { AFTER_EXPECTED, DATE, parameter, parseInstant, REQUEST_ID, wordParameter } from './fields.ts'

export const CALL_STATES = [
  'waiting',
  'in_flight',
  'deferred',
  'settled',
  'released',
  'interrupted',
  'refused',
] as const satisfies readonly CallState[]

const FORMATS = ['json', 'ndjson', 'csv'] as const
const FLAGS = [...CALL_FLAGS, 'refused'] as const

/** The most calls of a page, and of an export. */
const PAGE_MAX = 1_000
const PAGE_DEFAULT = 100
const EXPORT_MAX = 10_000_000

const COST_MAX: Nanos = 1_000_000_000n * NANOS_PER_USD
const DAY_MS = 24 * 60 * 60 * 1_000

/** A day in UTC, or an instant, which is a time without length. */
interface Time {
  readonly fromMs: number
  readonly lengthMs: number
}

function timeParameter(name: string, description: string) {
  return parameter<Time>(
    `${name} must be a date such as 2030-01-31 or a UTC timestamp such as 2030-01-31T00:00:00Z.`,
    { type: 'string', description },
    (text) => {
      const isDay = DATE.test(text)
      const fromMs = parseInstant(isDay ? `${text}T00:00:00Z` : text)
      return fromMs === null ? null : { fromMs, lengthMs: isDay ? DAY_MS : 0 }
    },
  )
}

type Status = { readonly state: CallState } | { readonly status: number }

/** The parameters that select calls of the log, and the format of the answer. */
export const requestQuery = z
  .strictObject({
    start: timeParameter('start', 'Calls that began at this instant or later; a date is a day in UTC.'),
    end: timeParameter('end', 'Calls that began before this instant; of a date, the whole day.'),
    model: z
      .string()
      .refine(
        (model) => model !== '' && model.length <= limits.recordedCharsMax,
        `model must be a text of 1 to ${limits.recordedCharsMax} characters.`,
      )
      .optional()
      .meta({
        minLength: 1,
        maxLength: limits.recordedCharsMax,
        description: 'The model that was asked for, or that served.',
      }),
    status: parameter<Status>(
      `status must be an HTTP status from 100 to 599, or one of ${CALL_STATES.join(', ')}.`,
      {
        anyOf: [
          { type: 'integer', minimum: 100, maximum: 599 },
          { type: 'string', enum: CALL_STATES },
        ],
        description: 'The status that upstream answered with, or the state of the call.',
      },
      (text) => {
        if (/^[1-5]\d\d$/.test(text)) return { status: Number(text) }
        const state = CALL_STATES.find((each) => each === text)
        return state === undefined ? null : { state }
      },
    ),
    min_cost_usd: parameter(
      `min_cost_usd must be a plain decimal from 0 to ${formatUsd(COST_MAX)} with at most 9 decimals.`,
      {
        type: 'number',
        minimum: 0,
        maximum: Number(formatUsd(COST_MAX)),
        description: 'Calls that cost so much or more.',
      },
      (text) => {
        const nanos = text.startsWith('-') ? null : parseUsd(text)
        return nanos === null || nanos > COST_MAX ? null : nanos
      },
    ),
    state: wordParameter(
      'state',
      CALL_STATES,
      'The state of the call. Refused calls, and those that wait on the node that answers, are listed only where ' +
        'their state is asked for.',
    ),
    parent_id: parameter(
      'parent_id must be the id of a request.',
      { type: 'string', description: 'The records of this batch, one for each model.' },
      (text) => (/^req_[0-9A-Z]{26}$/.test(text) ? text : null),
    ),
    socket: parameter(
      'socket must be the id of a request: `req_` and a ULID.',
      {
        type: 'string',
        pattern: REQUEST_ID.source,
        description: 'The turns of the WebSocket whose handshake has this id, and the handshake.',
      },
      (text) => (REQUEST_ID.test(text) ? text : null),
    ),
    flag: wordParameter('flag', FLAGS, 'Calls of which this is true; `refused` is the state.'),
    limit: parameter(
      `limit must be a whole number from 1 to ${PAGE_MAX}; of an export, to ${EXPORT_MAX}.`,
      {
        type: 'integer',
        minimum: 1,
        maximum: EXPORT_MAX,
        description:
          `How many calls the answer has at most: ${PAGE_DEFAULT} unless told otherwise and up to ${PAGE_MAX} ` +
          'as JSON. An export has all of them unless told otherwise.',
      },
      (text) => {
        const limit = /^\d{1,8}$/.test(text) ? Number(text) : 0
        return limit >= 1 && limit <= EXPORT_MAX ? limit : null
      },
    ),
    after: parameter<CallCursor>(
      AFTER_EXPECTED,
      { type: 'string', description: 'The `next` of the page before.' },
      parseCursor,
    ),
    format: z
      .enum(FORMATS, `format must be one of ${FORMATS.join(', ')}.`)
      .default('json')
      .describe('A page as JSON, or all of it to be kept: a JSON object on each line, or CSV.'),
  })
  .superRefine((query, context) => {
    const { start, end, limit, format } = query
    const refuseField = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: [field], message })
    if (statesOf(query).size > 1)
      refuseField('state', 'state, status and flag must not name different states.')
    if (start !== undefined && end !== undefined && isAfter(start, end)) {
      refuseField('start', 'start must not be after end.')
    }
    if (format === 'json' && limit !== undefined && limit > PAGE_MAX) {
      refuseField('limit', `limit must be a whole number from 1 to ${PAGE_MAX}.`)
    }
  })

export type RequestQuery = z.infer<typeof requestQuery>

/** A range from an instant to the same instant is empty, but not a mistake. */
function isAfter(start: Time, end: Time): boolean {
  return start.fromMs > end.fromMs && start.fromMs >= end.fromMs + end.lengthMs
}

/** A state can be named by three parameters. */
function statesOf({ status, state, flag }: Partial<Pick<RequestQuery, 'status' | 'state' | 'flag'>>) {
  const inStatus = status !== undefined && 'state' in status ? status.state : undefined
  const named: (CallState | undefined)[] = [state, inStatus, flag === 'refused' ? flag : undefined]
  return new Set(named.filter((each) => each !== undefined))
}

export function filterOf(query: RequestQuery, accountId: string, keyId: string | null): CallFilter {
  const { status, flag } = query
  const [state = null] = statesOf(query)
  return {
    accountId,
    keyId,
    fromMs: query.start?.fromMs ?? null,
    toMs: query.end === undefined ? null : query.end.fromMs + query.end.lengthMs,
    model: query.model ?? null,
    status: status !== undefined && 'status' in status ? status.status : null,
    state,
    minCostNanos: query.min_cost_usd ?? null,
    flag: flag === undefined || flag === 'refused' ? null : flag,
    parentId: query.parent_id ?? null,
    socketId: query.socket ?? null,
  }
}

/** The most calls that the answer may have. */
export function limitOf({ format, limit }: RequestQuery): number {
  return limit ?? (format === 'json' ? PAGE_DEFAULT : Number.POSITIVE_INFINITY)
}

/** A position in the log as `next` and `after` show it. A cursor is encoded, so that clients do not make up their own. */
export function formatCursor({ startedAtMs, requestId }: CallCursor): string {
  return Buffer.from(`${startedAtMs}.${requestId}`).toString('base64url')
}

function parseCursor(text: string): CallCursor | null {
  const decoded = Buffer.from(text, 'base64url').toString('latin1')
  const [, startedAtMs = '', requestId = ''] = /^(\d{1,15})\.(.*)$/.exec(decoded) ?? []
  if (!REQUEST_ID.test(requestId)) return null
  const cursor = { startedAtMs: Number(startedAtMs), requestId }
  // Buffer skips characters that are not base64, and a position has one way to be written.
  return formatCursor(cursor) === text ? cursor : null
}
