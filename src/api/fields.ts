import { z } from 'zod'
import { ACTOR_KINDS } from '../kernel/actor.ts'
import { ERRORS, type ErrorCode } from '../kernel/errors.ts'
import {
  formatUsd,
  NANOS_PER_USD,
  type Nanos,
  parseUsd,
  parseWithDigits,
  type RawNumber,
} from '../kernel/money.ts'
import { nearestName } from '../kernel/nearest-name.ts'

/** Building blocks of the API's objects. Each defines the JSON, the type and the validation. */

/** An API object whose numbers have another type. */
export type WithNumbers<T, Numbers> = T extends number
  ? Numbers
  : T extends readonly (infer Item)[]
    ? readonly WithNumbers<Item, Numbers>[]
    : T extends object
      ? { readonly [Name in keyof T]: WithNumbers<T[Name], Numbers> }
      : T

/** An object as written by the server: money and large sums are raw JSON numbers, never doubles. */
export type Written<T> = WithNumbers<T, number | RawNumber>

/** An id is a prefix for the kind of object, followed by a ULID. */
const idPattern = (prefix: string) => new RegExp(`^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`)

export const REQUEST_ID = idPattern('req')
const PATTERNS = {
  key: idPattern('key'),
  credit: idPattern('crd'),
  budget: idPattern('bud'),
  webhook: idPattern('wh'),
  admin_key: idPattern('adm'),
  delivery: idPattern('whd'),
  event: idPattern('evt'),
  person: idPattern('per'),
  /** The id of the first account is `default`; all others have a ULID. */
  account: /^(?:default|acct_[0-9A-HJKMNP-TV-Z]{26})$/,
}

export const idOf = (kind: keyof typeof PATTERNS, expected?: string) =>
  z.string().regex(PATTERNS[kind], expected)

export const string = (description: string) => z.string().describe(description)
export const flag = (description: string) => z.boolean().describe(description)
export const stringOrNull = (description = '') => describedBy(z.string().nullable(), description)
export const optionalText = (description: string) => z.string().optional().describe(description)

function describedBy<Schema extends z.ZodType>(schema: Schema, description: string): Schema {
  return description === '' ? schema : schema.describe(description)
}

export const whole = (description = '') => describedBy(z.int().min(0), description)
export const instant = () =>
  z
    .string()
    .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    .meta({ format: 'date-time' })

const DATE = /^\d{4}-\d\d-\d\d$/
export const date = () => z.string().regex(DATE).meta({ format: 'date' })

export function usdAmount(description: string) {
  return z.number().describe(`${description} In US dollars, with at most 9 decimals.`)
}

export function listOf<Row extends z.ZodType>(row: Row) {
  return z.object({
    object: z.literal('list'),
    data: z.array(row).describe('Newest first.'),
    has_more: z.boolean(),
    next: stringOrNull('Send it as `after` to read the next page; null on the last page.'),
  })
}

export interface ListOf<Row> {
  readonly data: readonly Row[]
  readonly has_more: boolean
  readonly next: string | null
}

export const actorSchema = z
  .object({
    kind: z.enum(ACTOR_KINDS),
    id: stringOrNull('The id of the key or person; null for `command_line` and `system`.'),
    name: stringOrNull(),
  })
  .meta({ id: 'actor', description: 'Who made a change. A session has the id and name of its key.' })

const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[]

export const errorSchema = z
  .object({
    error: z.object({
      message: string('What is wrong and how to fix it.'),
      type: z.string(),
      param: stringOrNull('The invalid field or parameter.'),
      code: z
        .enum(ERROR_CODES)
        .describe('The error code. docs/ERRORS.md lists all of them; more may be added.'),
      details: z.record(z.string(), z.unknown()).optional().describe('Figures, if any.'),
    }),
    request_id: z.string(),
  })
  .meta({ id: 'error', description: 'The form of every error.' })

/** `read` returns null for invalid input. `schema` describes the field for OpenAPI, because zod cannot. */
function readField<T>(expected: string, schema: Record<string, unknown>, read: (value: unknown) => T | null) {
  return z
    .unknown()
    .transform((value, context): T => {
      const found = read(value)
      if (found !== null) return found
      context.addIssue(expected)
      return z.NEVER
    })
    .meta(schema)
}

/** `readField` for a query parameter, which is a string or absent. */
export function parameter<T>(
  expected: string,
  schema: Record<string, unknown>,
  read: (text: string) => T | null,
) {
  return readField(expected, schema, (value) => (typeof value === 'string' ? read(value) : null)).optional()
}

/** The last sentence of the refusal of an unknown name. Empty if no known name is similar. */
export function didYouMean(name: unknown, known: readonly string[]): string {
  if (typeof name !== 'string') return ''
  const nearest = nearestName(name, known, Math.max(2, Math.floor(name.length / 2)))
  return nearest === null ? '' : ` Did you mean ${nearest}?`
}

/**
 * Explains why a value is invalid, with the closest word if the schema is an enum. Call it for one issue: a search for the
 * closest word takes long for thousands.
 */
export function explainIssue(issue: z.core.$ZodIssue | undefined, value: unknown): string {
  if (issue?.code !== 'invalid_value') return issue?.message ?? ''
  return issue.message + didYouMean(value, issue.values.map(String))
}

export function choiceParameter<const Word extends string>(
  name: string,
  words: readonly Word[],
  description: string,
) {
  return z
    .enum(words, `${name} must be one of ${words.join(', ')}, or left out.`)
    .optional()
    .describe(description)
}

const CONTROL = '\\u0000-\\u001f\\u007f-\\u009f'
const ANY = `[^${CONTROL}]`
const NO_BLANK = `[^${CONTROL}\\s]`

/** One line of text. Characters are Unicode code points, as in JSON Schema. `blank`: it may be only whitespace. */
export function textField(subject: string, charsMax: number, { blank = true, empty = false } = {}) {
  const charsMin = empty ? 0 : 1
  return z
    .string(`${subject} must be a string of ${charsMin} to ${charsMax} characters.`)
    .refine((text) => text !== '' || empty, `${subject} must not be empty.`)
    .refine((text) => [...text].length <= charsMax, `${subject} must have at most ${charsMax} characters.`)
    .refine((text) => !/\p{Cc}/u.test(text), `${subject} must not have control characters.`)
    .refine((text) => text.isWellFormed(), `${subject} must be well-formed Unicode.`)
    .refine((text) => blank || /\S/.test(text), `${subject} must not be blank.`)
    .meta({
      minLength: charsMin,
      maxLength: charsMax,
      pattern: blank ? `^${ANY}*$` : `^${ANY}*${NO_BLANK}${ANY}*$`,
    })
}

const METADATA_PAIRS_MAX = 16
const METADATA_NAME = textField('A name in metadata', 64)
const METADATA_VALUE = textField('A value in metadata', 512, { empty: true })

/** Pairs of strings that belong to an object, or null. An error names the field `metadata`, not a pair in it. */
export function metadataField() {
  return z
    .unknown()
    .transform((value, context): Readonly<Record<string, string>> => {
      const pairs = typeof value === 'object' && !Array.isArray(value) ? Object.entries(value ?? {}) : null
      if (pairs === null) context.addIssue('metadata must be null or an object of strings.')
      else if (pairs.length > METADATA_PAIRS_MAX)
        context.addIssue(`metadata must have at most ${METADATA_PAIRS_MAX} pairs.`)
      for (const pair of (pairs ?? []).slice(0, METADATA_PAIRS_MAX)) {
        const wrong = [METADATA_NAME, METADATA_VALUE].map((field, at) => field.safeParse(pair[at]))
        for (const issue of wrong.flatMap(({ error }) => error?.issues ?? [])) context.addIssue(issue.message)
      }
      return Object.fromEntries(pairs ?? [])
    })
    .meta({
      type: ['object', 'null'],
      maxProperties: METADATA_PAIRS_MAX,
      propertyNames: { type: 'string', minLength: 1, maxLength: 64 },
      additionalProperties: { type: 'string', maxLength: 512 },
    })
}

export const metadata = () => z.record(z.string(), z.string())

const INSTANT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|[+-]00:00)$/

/** A UTC timestamp in milliseconds. Digits beyond are cut off, so that a key never works after its expiry. */
export function instantField(name: string) {
  return readField(
    `${name} must be a UTC timestamp such as 2030-01-31T00:00:00Z.`,
    { type: 'string', format: 'date-time', pattern: INSTANT.source },
    (value) => (typeof value === 'string' ? parseInstant(value) : null),
  )
}

export function parseInstant(text: string): number | null {
  const [, seconds, fraction = ''] = INSTANT.exec(text) ?? []
  if (seconds === undefined) return null
  const ms = Date.parse(`${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // Date.parse moves the 30th of February into March and 24:00 into the next day.
  return Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(seconds) ? null : ms
}

export interface Time {
  readonly fromMs: number
  readonly lengthMs: number
}

const DAY_MS = 24 * 60 * 60 * 1_000

export function parseTime(text: string): Time | null {
  const isDay = DATE.test(text)
  const fromMs = parseInstant(isDay ? `${text}T00:00:00Z` : text)
  return fromMs === null ? null : { fromMs, lengthMs: isDay ? DAY_MS : 0 }
}

export function timeParameter(name: string, description: string) {
  const expected = 'must be a date such as 2030-01-31 or a UTC timestamp such as 2030-01-31T00:00:00Z.'
  return parameter<Time>(`${name} ${expected}`, { type: 'string', description }, parseTime)
}

interface Period {
  readonly start?: Time | undefined
  readonly end?: Time | undefined
}

/** Arguments for `refine` that require `start` to be before or equal to `end`. */
export const ORDERED: [check: (period: Period) => boolean, error: { error: string; path: string[] }] = [
  ({ start, end }: Period) =>
    start === undefined || end === undefined || start.fromMs < end.fromMs + (end.lengthMs || 1),
  { error: 'start must not be after end.', path: ['start'] },
]

/** `toMs` is exclusive. */
export const rangeOf = ({ start, end }: Period) => ({
  fromMs: start?.fromMs ?? null,
  toMs: end === undefined ? null : end.fromMs + end.lengthMs,
})

export function dateParameter(name: string, description: string) {
  return parameter(
    `${name} must be a date such as 2030-01-31.`,
    { type: 'string', format: 'date', pattern: DATE.source, description },
    (text) => (DATE.test(text) && parseTime(text) !== null ? text : null),
  )
}

/** A `…_usd` number as its digits, because a double cannot hold every amount of nanodollars. */
class UsdNumber {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

/** JSON.parse that preserves the digits of money. */
export function parseOwnJson(text: string): unknown {
  return parseWithDigits(text, (name, value, digits) => {
    const isMoney = typeof value === 'number' && (name.endsWith('_usd') || name === 'discount')
    return isMoney ? new UsdNumber(digits) : value
  })
}

/** Money in a request: a JSON number from `min` to `max` with at most nine decimals. It is read as nanodollars. */
export function usdField(name: string, { min, max }: { readonly min: Nanos; readonly max: Nanos }) {
  return readField(
    `${name} must be a number from ${formatUsd(min)} to ${formatUsd(max)} with at most 9 decimals.`,
    { type: 'number', minimum: Number(formatUsd(min)), maximum: Number(formatUsd(max)) },
    (value) => {
      const nanos = value instanceof UsdNumber ? parseUsd(withoutExponent(value.source)) : null
      return nanos !== null && nanos >= min && nanos <= max ? nanos : null
    },
  )
}

export const budgetField = (name: string, description: string) =>
  usdField(name, { min: 0n, max: 1_000_000_000n * NANOS_PER_USD })
    .nullable()
    .optional()
    .describe(description)

function withoutExponent(source: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/.exec(source)
  if (match === null) return source
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = whole + fraction
  const point = whole.length + Number(exponent)
  const padded = digits.padEnd(Math.max(point, 0), '0').padStart(digits.length - Math.min(point, 0), '0')
  const at = Math.max(point, 0)
  const decimals = padded.slice(at).replace(/0+$/, '')
  const integers = padded.slice(0, at).replace(/^0+(?=\d)/, '') || '0'
  return sign + integers + (decimals === '' ? '' : `.${decimals}`)
}

export const flagField = (name: string, description: string) =>
  z.boolean(`${name} must be true or false.`).optional().describe(description)

export function wholeField(name: string, min: number, max: number, ending = '') {
  const expected = `${name} must be a whole number from ${min} to ${max}${ending}.`
  return z.int(expected).min(min, expected).max(max, expected)
}

/** Documents that exactly one of these fields is required. A zod union would only report that no object matches. */
export const oneRequired = (...names: readonly string[]) => ({
  oneOf: names.map((name) => ({ type: 'object' as const, required: [name] })),
})

export const AFTER_EXPECTED = 'after must be the `next` of an earlier page.'

export const afterParameter = (kind: keyof typeof PATTERNS) =>
  idOf(kind, AFTER_EXPECTED).optional().describe('The `next` of the previous page.')

export const personParameter = (description: string) =>
  idOf('person', 'person must be the id of a person, such as per_01J….').optional().describe(description)

export const paging = (kind: keyof typeof PATTERNS) => ({
  limit: wholeParameter(1_000).default(100).describe('Maximum rows per page.'),
  after: afterParameter(kind),
})

export function waitParameter(max: number) {
  const expected = `wait must be a whole number of seconds from 0 to ${max}.`
  return readField(expected, { type: 'integer', minimum: 0, maximum: max }, (value) => {
    const number = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : -1
    return number >= 0 && number <= max ? number : null
  })
    .default(max)
    .describe('How many seconds the answer waits for a call in flight to be settled.')
}

/** A `limit` whose default depends on the format: a streamed list without `limit` is complete. */
export function optionalLimit(max: number, description: string) {
  return wholeParameter(max).optional().describe(description)
}

function wholeParameter(max: number) {
  const expected = `limit must be a whole number from 1 to ${max}.`
  return readField(expected, { type: 'integer', minimum: 1, maximum: max }, (value) => {
    const number = typeof value === 'string' && /^\d{1,8}$/.test(value) ? Number(value) : 0
    return number >= 1 && number <= max ? number : null
  })
}
