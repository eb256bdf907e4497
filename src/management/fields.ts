import { z } from 'zod'
import { formatUsd, type Nanos, parseUsd, type RawNumber, rawNumber } from '../kernel/money.ts'
import { dayOf } from '../ledger/calendar.ts'

// Fields of requests

/**
 * A field whose value `read` makes, or null where the input is not as expected. zod cannot describe such a field, so
 * `schema` describes it in the OpenAPI document.
 */
export function readField<T>(
  expected: string,
  schema: Record<string, unknown>,
  read: (value: unknown) => T | null,
) {
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

/** `readField` for a parameter of the query, which is always a text and may be absent. */
export function parameter<T>(
  expected: string,
  schema: Record<string, unknown>,
  read: (text: string) => T | null,
) {
  return readField(expected, schema, (value) => (typeof value === 'string' ? read(value) : null)).optional()
}

/** A parameter that is one of these words, or absent. */
export function wordParameter<const Word extends string>(
  name: string,
  words: readonly Word[],
  description: string,
) {
  const one = z.enum(words, `${name} must be one of ${words.join(', ')}.`)
  return one.optional().meta({ description })
}

export interface TextRules {
  /** The most UTF-16 code units, where the text is compared with a text that is bounded by those. */
  readonly unitsMax?: number
  /** Whether the text may be nothing but blanks; true by default. */
  readonly blank?: boolean
  /** Whether the text may be empty; false by default. */
  readonly empty?: boolean
}

const CONTROL = '\\u0000-\\u001f\\u007f-\\u009f'
const ANY = `[^${CONTROL}]`
const NO_BLANK = `[^${CONTROL}\\s]`

/**
 * A text of one line. Characters are Unicode code points, as JSON Schema counts them. An unpaired surrogate cannot
 * be stored as UTF-8 and would come back as something else.
 */
export function textField(subject: string, charsMax: number, more: TextRules = {}) {
  const { unitsMax = Number.POSITIVE_INFINITY, blank = true, empty = false } = more
  const charsMin = empty ? 0 : 1
  return z
    .string(`${subject} must be a text of ${charsMin} to ${charsMax} characters.`)
    .refine((text) => text !== '' || empty, `${subject} must not be empty.`)
    .refine((text) => [...text].length <= charsMax, `${subject} must have at most ${charsMax} characters.`)
    .refine((text) => !/\p{Cc}/u.test(text), `${subject} must not have control characters.`)
    .refine((text) => text.isWellFormed(), `${subject} must be well-formed Unicode.`)
    .refine((text) => text.length <= unitsMax, `${subject} must have at most ${unitsMax} UTF-16 units.`)
    .refine((text) => blank || /\S/.test(text), `${subject} must not be blank.`)
    .meta({
      minLength: charsMin,
      maxLength: charsMax,
      pattern: blank ? `^${ANY}*$` : `^${ANY}*${NO_BLANK}${ANY}*$`,
    })
}

const INSTANT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|[+-]00:00)$/

/** An instant in UTC as milliseconds. Finer digits are cut off, so that a key never outlives its expiry. */
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
  // Date.parse moves the 30th of February into March and 24:00 into the next day; neither was meant.
  return Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(seconds) ? null : ms
}

export const DATE = /^\d{4}-\d\d-\d\d$/

export function isDate(text: string): boolean {
  if (!DATE.test(text)) return false
  const ms = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(ms) && dayOf(ms) === text
}

/** A number of a `…_usd` member as it was written, because a double cannot hold every nanodollar. */
class UsdNumber {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/** JSON.parse that keeps the text of numbers which are money. */
export function parseOwnJson(text: string): unknown {
  const revive: Reviver = (key, value, { source }) =>
    typeof value === 'number' && key.endsWith('_usd') ? new UsdNumber(source ?? String(value)) : value
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown)
}

/** A member of money: a JSON number with at most nine decimals within the bounds, as nanodollars. */
export function usdField(name: string, { min, max }: { readonly min: Nanos; readonly max: Nanos }) {
  return readField(
    `${name} must be a number from ${formatUsd(min)} to ${formatUsd(max)} with at most 9 decimals.`,
    // Doubles are for the document alone. Amounts never become doubles.
    { type: 'number', minimum: Number(formatUsd(min)), maximum: Number(formatUsd(max)) },
    (value) => {
      const nanos = value instanceof UsdNumber ? parseUsd(withoutExponent(value.source)) : null
      return nanos !== null && nanos >= min && nanos <= max ? nanos : null
    },
  )
}

/** JSON allows 1e2 and 1.50, which are plain decimals written in another way. */
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

/** The sentence of a refusal about `after`. */
export const AFTER_EXPECTED = 'after must be the `next` of an earlier page.'

export function limitParameter({ max, fallback } = { max: 1_000, fallback: 100 }) {
  return readField(
    `limit must be a whole number from 1 to ${max}.`,
    { type: 'integer', minimum: 1, maximum: max },
    (value) => {
      const limit = typeof value === 'string' && /^\d{1,6}$/.test(value) ? Number(value) : 0
      return limit >= 1 && limit <= max ? limit : null
    },
  )
    .default(fallback)
    .describe('How many rows the answer has at most.')
}

// Members of answers

/**
 * The members of an answer: each with its schema in the OpenAPI document, and its value. The value is a member of the
 * record that is shown, by its name, or is made from the record.
 */
export type Members<Shown> = Readonly<
  Record<string, readonly [schema: z.ZodType, value: keyof Shown | ((shown: Shown) => unknown)]>
>

export function schemaOf<Shown>(members: Members<Shown>): z.ZodObject {
  return z.object(Object.fromEntries(Object.entries(members).map(([name, [schema]]) => [name, schema])))
}

export function objectOf<Shown>(members: Members<Shown>, shown: Shown): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (const [name, [, value]] of Object.entries(members)) {
    object[name] = typeof value === 'function' ? value(shown) : shown[value]
  }
  return object
}

/** Our ids are a prefix that names the kind of object, and a ULID. */
const KEY_ID = /^key_[0-9A-HJKMNP-TV-Z]{26}$/
export const REQUEST_ID = /^req_[0-9A-HJKMNP-TV-Z]{26}$/
const CREDIT_ID = /^crd_[0-9A-HJKMNP-TV-Z]{26}$/

const WEBHOOK_ID = /^wh_[0-9A-HJKMNP-TV-Z]{26}$/
const DELIVERY_ID = /^whd_[0-9A-HJKMNP-TV-Z]{26}$/

export const keyId = (expected?: string) => z.string().regex(KEY_ID, expected)
export const creditId = () => z.string().regex(CREDIT_ID)
export const webhookId = (expected?: string) => z.string().regex(WEBHOOK_ID, expected)
export const deliveryId = (expected?: string) => z.string().regex(DELIVERY_ID, expected)

export const instant = () => z.iso.datetime({ precision: 3 })
export const date = () => z.string().regex(DATE).meta({ format: 'date' })

export function formatInstant(ms: number): string
export function formatInstant(ms: number | null): string | null
export function formatInstant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

export function usdAmount(description: string) {
  return z.number().describe(`${description} In US dollars, with at most 9 decimals.`)
}

/** Money in an answer: a JSON number printed from the integer, never from a double. */
export function usd(nanos: Nanos): RawNumber
export function usd(nanos: Nanos | null): RawNumber | null
export function usd(nanos: Nanos | null): RawNumber | null {
  return nanos === null ? null : rawNumber(formatUsd(nanos))
}

export function listSchema<Row extends z.ZodType>(row: Row) {
  return z.object({
    object: z.literal('list'),
    data: z.array(row).describe('Newest first.'),
    has_more: z.boolean(),
    next: z.string().nullable().describe('What `after` takes to go on; null at the end.'),
  })
}

export function listObject(data: readonly unknown[], next: string | null): Record<string, unknown> {
  return { object: 'list', data, has_more: next !== null, next }
}
