/** How figures, times and sizes are written. Money arrives as decimal numbers with at most nine decimals. */

/** Decimals that leave three significant digits of a small amount, and cents of a large one. */
export function decimalsFor(usd: number): number {
  const size = Math.abs(usd)
  if (size === 0 || size >= 1) return 2
  return Math.min(9, Math.max(2, 2 - Math.floor(Math.log10(size))))
}

/** One number of decimals for a whole column, so that its points stand below each other: by the largest amount. */
export function columnDecimals(amounts: readonly number[]): number {
  return Math.min(6, decimalsFor(Math.max(0, ...amounts.map(Math.abs))))
}

/** An amount below a header that names the unit. An amount that would round to zero is written as `<` and the least amount. */
export function figure(usd: number, decimals: number): string {
  const least = 10 ** -decimals
  if (usd !== 0 && Math.abs(usd) < least / 2) return `<${least.toFixed(decimals)}`
  return money(usd, decimals).replace('$', '')
}

export function money(usd: number, decimals = decimalsFor(usd)): string {
  const text = Math.abs(usd).toLocaleString('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  })
  return `${usd < 0 ? '−' : ''}$${text}`
}

/** An amount with all of its digits, at least to the cent. */
export function exactMoney(usd: number): string {
  const [whole = '0', part = ''] = Math.abs(usd).toFixed(9).split('.')
  const digits = part.replace(/0+$/, '').padEnd(2, '0')
  return `${usd < 0 ? '−' : ''}$${Number(whole).toLocaleString('en-US')}.${digits}`
}

/** What `AMOUNT` admits, as a number of dollars; null if it is empty. */
export function amountOf(text: string): number | null {
  const digits = text.replace(/[$,\s]/g, '')
  return digits === '' || digits === '.' ? null : Number(digits)
}

/** The pattern of an amount that is typed: 50, $50, 1,000.50. */
export const AMOUNT = '\\s*\\$?\\s*[0-9,]*\\.?[0-9]{0,9}\\s*'

export function count(n: number): string {
  return n.toLocaleString('en-US')
}

/** Large counts in short: 12.4k, 3.1M. */
export function shortCount(n: number, decimals = 1): string {
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: 1 }
  return n < 10_000
    ? count(n)
    : n.toLocaleString('en-US', { notation: 'compact', ...digits }).replace('K', 'k')
}

export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const step = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(n) / 3))
  const value = n / 1000 ** step
  return `${value.toLocaleString('en-US', { maximumFractionDigits: value < 10 && step > 0 ? 1 : 0 })} ${units[step]}`
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`
  return plural(Math.round(ms / 86_400_000), 'day')
}

const SPANS = [
  [60, 's', 1],
  [3_600, 'min', 60],
  [86_400, 'h', 3_600],
  [30 * 86_400, 'day', 86_400],
  [365 * 86_400, 'month', 30 * 86_400],
] as const

/** "4 min ago", "in 3 days". */
export function inWords(atMs: number, nowMs: number): string {
  const seconds = Math.round((nowMs - atMs) / 1_000)
  const size = Math.abs(seconds)
  if (size < 5) return 'now'
  const [, unit, length] = SPANS.find(([below]) => size < below) ?? [0, 'year', 365 * 86_400]
  const n = Math.floor(size / length)
  const words = unit.length < 4 && unit !== 'day' ? `${n} ${unit}` : plural(n, unit)
  return seconds > 0 ? `${words} ago` : `in ${words}`
}

export function exactTime(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 23).replace('Z', '')} UTC`
}

export function plural(n: number, word: string): string {
  return `${count(n)} ${word}${n === 1 ? '' : 's'}`
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return '–'
  const share = (part / whole) * 100
  return `${share < 10 && share > 0 ? share.toFixed(1) : Math.round(share)} %`
}

const DAY_MS = 86_400_000

/** Days are UTC dates as `2026-11-16`, as in the API. */
export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10)
}

export function addDays(day: string, days: number): string {
  return dayOf(Date.parse(day) + days * DAY_MS)
}

/** All days of a range, both ends included. */
export function daysBetween(start: string, end: string): string[] {
  const days = Math.round((Date.parse(end) - Date.parse(start)) / DAY_MS)
  return Array.from({ length: Math.max(0, days) + 1 }, (_, i) => addDays(start, i))
}

export function dayInWords(day: string): string {
  return new Date(day).toLocaleDateString('en-GB', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  })
}

export function monthInWords(day: string): string {
  return new Date(day).toLocaleDateString('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })
}
