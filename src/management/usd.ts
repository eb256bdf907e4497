import { z } from 'zod'
import { formatUsd, type Nanos, parseUsd, type RawNumber, rawNumber } from '../kernel/money.ts'

/** A number of a `…_usd` member as it was written, because a double cannot hold every nanodollar. */
export class UsdNumber {
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
export function usdField(name: string, bounds: { readonly min: Nanos; readonly max: Nanos }) {
  const range = `${formatUsd(bounds.min)} to ${formatUsd(bounds.max)}`
  return z
    .unknown()
    .transform((value, context): Nanos => {
      const nanos = value instanceof UsdNumber ? parseUsd(withoutExponent(value.source)) : null
      if (nanos !== null && nanos >= bounds.min && nanos <= bounds.max) return nanos
      context.addIssue(`${name} must be a number from ${range} with at most 9 decimals.`)
      return z.NEVER
    })
    .meta({ type: 'number', minimum: toDouble(bounds.min), maximum: toDouble(bounds.max) })
}

/** A bound as the schema of the document shows it. Amounts themselves never become doubles. */
function toDouble(nanos: Nanos): number {
  return Number(formatUsd(nanos))
}

/** What an answer says of money, for its schema. */
export function usdAmount(description: string) {
  return z.number().meta({ description: `${description} In US dollars, with at most 9 decimals.` })
}

/** Money in an answer: a JSON number printed from the integer, never from a double. */
export function usd(nanos: Nanos): RawNumber
export function usd(nanos: Nanos | null): RawNumber | null
export function usd(nanos: Nanos | null): RawNumber | null {
  return nanos === null ? null : rawNumber(formatUsd(nanos))
}

/** JSON allows 1e2 and 1.50; both are plain decimals in disguise. */
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
