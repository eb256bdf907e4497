import { formatUsd, type Nanos, parseUsd, type RawNumber, rawNumber } from '../../../src/kernel/money.ts'

/** What a field says: a value for the API, or why its text cannot be read. */
export type Reading<Value> = { readonly value: Value } | { readonly problem: string }

export const given = <Value>(value: Value): Reading<Value> => ({ value })

/** Amounts are decimals as text, never doubles, so that no digit changes on its way. */
const AMOUNT = 'Write an amount such as 50, $50 or 1,000.50, with at most nine decimals.'

/** Reads an amount: `50`, `$50`, `1,000.50`, `1e3`. Null: the text is empty. */
export function readAmount(text: string): Reading<RawNumber | null> {
  const trimmed = text.trim()
  if (trimmed === '') return given(null)
  const nanos = nanosOf(trimmed)
  return nanos === null ? { problem: AMOUNT } : given(usd(nanos))
}

/** The nanodollars of a typed amount. Null: it is not an amount. */
export function nanosOf(text: string): Nanos | null {
  const [, digits = '', zeros = '0'] = /^\$?\s*([\d,]*\.?\d*)(?:e([0-9]))?$/i.exec(text.trim()) ?? []
  const isGrouped = /^\d{1,3}(,\d{3})+(\.\d*)?$/.test(digits)
  const plain = isGrouped ? digits.replaceAll(',', '') : digits
  const [whole = '', part = ''] = plain.split('.')
  if (plain.includes(',') || whole + part === '') return null
  const moved = part.padEnd(Number(zeros), '0')
  const at = Number(zeros)
  const decimals = moved.slice(at)
  return parseUsd(`${whole}${moved.slice(0, at)}`.padStart(1, '0') + (decimals === '' ? '' : `.${decimals}`))
}

/** An amount as the API takes it. */
export const usd = (nanos: Nanos): RawNumber => rawNumber(formatUsd(nanos))

/** The nanodollars of an amount of the API. Its shortest decimal is exact up to nine million dollars. */
export function nanosOfUsd(amount: number): Nanos {
  const text = String(amount)
  return parseUsd(text) ?? parseUsd(amount.toFixed(9)) ?? 0n
}

/** The sum of amounts of the API, without the errors of doubles. */
export const sumUsd = (amounts: readonly number[]) =>
  Number(formatUsd(amounts.reduce((sum, each) => sum + nanosOfUsd(each), 0n)))

/** The text of a field for an amount of the API. */
export const amountText = (amount: number | null | undefined) =>
  amount == null ? '' : formatUsd(nanosOfUsd(amount))

/** Reads percent as a fraction: `12.5` is 0.125. */
export function readPercent(text: string): Reading<RawNumber | null> {
  const trimmed = text.trim()
  if (trimmed === '') return given(null)
  const billionths = /^\d{1,3}(\.\d{1,7})?$/.test(trimmed) ? parseUsd(trimmed) : null
  return billionths === null || billionths > 100_000_000_000n
    ? { problem: 'Write a number from 0 to 100 without a sign, such as 10 or 12.5.' }
    : given(usd(billionths / 100n))
}

/** The text of a field in percent for a fraction of the API. */
export const percentText = (fraction: number | null | undefined) =>
  fraction == null ? '' : formatUsd(nanosOfUsd(fraction) * 100n)

/** Reads a whole number, of which 1,000 may be written with a comma. Null: the text is empty. */
export function readCount(text: string): Reading<number | null> {
  const trimmed = text.trim()
  if (trimmed === '') return given(null)
  return /^(\d{1,9}|\d{1,3}(,\d{3}){1,2})$/.test(trimmed)
    ? given(Number(trimmed.replaceAll(',', '')))
    : { problem: 'Write a whole number, such as 60.' }
}

/** Reads the time of a field for dates, in UTC. Browsers leave out seconds that are zero. */
export function readInstant(text: string): Reading<string | null> {
  if (text === '') return given(null)
  const withSeconds = /T\d\d:\d\d$/.test(text) ? `${text}:00` : text
  return Number.isNaN(Date.parse(`${withSeconds}Z`))
    ? { problem: 'Write a date and a time in UTC.' }
    : given(`${withSeconds}Z`)
}

/** The text of a field for dates. Milliseconds that are zero are left out. */
export const instantText = (at: string | null | undefined) =>
  at?.replace(/Z$/, '').replace(/\.000$/, '') ?? ''

export function readName(text: string): Reading<string> {
  return text.trim() === '' ? { problem: 'Write a name.' } : given(text)
}
