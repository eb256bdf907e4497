/** Formats figures, times and sizes. Money arrives as numbers with at most nine decimals. */

/** The language of numbers and dates. */
export const LOCALE = 'en-GB'

/** An amount rounded to cents. An amount below a cent has two significant digits. */
export function money(usd: number, decimals = 2): string {
  return figure(usd, decimals).replace(/^−?/, '$&$$')
}

/** `money` without the dollar sign, for columns whose header names the unit. */
export function figure(usd: number, decimals = 2): string {
  const size = Number(Math.abs(usd).toFixed(9))
  const isSmall = size > 0 && size < 10 ** -decimals
  const digits = isSmall
    ? { maximumSignificantDigits: 2 }
    : { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  return `${usd < 0 && size > 0 ? '−' : ''}${size.toLocaleString(LOCALE, digits)}`
}

/** Decimals in the cost of one call. */
export const CALL_DECIMALS = 6

/** An amount with all its digits, and at least two decimals. */
export function exactMoney(usd: number): string {
  const [whole = '0', part = ''] = Math.abs(usd).toFixed(9).split('.')
  const digits = part.replace(/0+$/, '').padEnd(2, '0')
  return `${usd < 0 ? '−' : ''}$${Number(whole).toLocaleString(LOCALE)}.${digits}`
}

export function count(n: number): string {
  return n.toLocaleString(LOCALE)
}

/** Abbreviates large counts: 12.4k, 3.1M. */
export function shortCount(n: number, decimals = 1): string {
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: 1 }
  return n < 10_000
    ? count(n)
    : n
        .toLocaleString(LOCALE, { notation: 'compact', ...digits })
        .replace('m', 'M')
        .replace('bn', 'B')
}

export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const step = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(n) / 3))
  const value = n / 1000 ** step
  return `${value.toLocaleString(LOCALE, { maximumFractionDigits: value < 10 && step > 0 ? 1 : 0 })} ${units[step]}`
}

const DAY_MS = 86_400_000

export function duration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(ms < 9_995 ? 2 : 1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(ms / 60_000)
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  return plural(Math.round(ms / DAY_MS), 'day')
}

const SPANS = [
  [60, 's', 1],
  [3_600, 'min', 60],
  [86_400, 'h', 3_600],
  [30 * 86_400, 'day', 86_400],
  [365 * 86_400, 'month', 30 * 86_400],
] as const

/** "4 min ago", "in 3 days". */
export function relativeTime(atMs: number, nowMs: number): string {
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

/** The format of tables: ISO 8601 in UTC, to the second. */
export function isoTime(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 19)}`
}

export const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

export function plural(n: number, word: string, many = `${word}s`): string {
  return `${count(n)} ${n === 1 ? word : many}`
}

/** A share in whole percent, rounded down as in the API. Below 10 %, it has one decimal. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return '–'
  const share = (part / whole) * 100
  return `${share < 10 && share > 0 ? (Math.floor(share * 10) / 10).toFixed(1) : Math.floor(share + 1e-9)}%`
}

/** A discount in percent, with all its digits. */
export function fractionInPercent(fraction: number): string {
  return `${(fraction * 100).toLocaleString(LOCALE, { maximumFractionDigits: 6 })}%`
}

/** Days are UTC dates such as `2026-11-16`, as in the API. */
export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10)
}

export function addDays(day: string, days: number): string {
  return dayOf(Date.parse(day) + days * DAY_MS)
}

export function daysBetween(start: string, end: string): string[] {
  const days = Math.round((Date.parse(end) - Date.parse(start)) / DAY_MS)
  return Array.from({ length: Math.max(0, days) + 1 }, (_, i) => addDays(start, i))
}

const formatter = (options: Intl.DateTimeFormatOptions) => {
  const format = new Intl.DateTimeFormat(LOCALE, { ...options, timeZone: 'UTC' })
  return (day: string) => format.format(new Date(day))
}

export const weekday = formatter({ weekday: 'short' })
export const dayAndMonth = formatter({ day: 'numeric', month: 'short' })
export const monthShort = formatter({ month: 'short' })
export const monthInWords = formatter({ month: 'long', year: 'numeric' })
/** The day of a time: "Today, 2026-11-16", "Sun 2026-11-15". */
export function dayInWords(at: string): string {
  const day = at.slice(0, 10)
  const today = dayOf(Date.now())
  return `${day === today ? 'Today,' : day === addDays(today, -1) ? 'Yesterday,' : weekday(day)} ${day}`
}

/** "1 Nov", "1 – 19 Nov", "28 Oct – 3 Nov". */
export function daysInWords(start: string, end: string): string {
  const isOneMonth = start.slice(0, 7) === end.slice(0, 7)
  const first = isOneMonth ? String(Number(start.slice(8))) : dayAndMonth(start)
  return start === end ? dayAndMonth(start) : `${first} – ${dayAndMonth(end)}`
}
