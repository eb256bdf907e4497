import assert from 'node:assert/strict'
import * as f from '../../dashboard/src/format.ts'
import { test } from '../support/suite.ts'

const table = <Args extends readonly unknown[]>(
  format: (...args: Args) => string,
  rows: readonly (readonly [...Args, string])[],
) => {
  for (const row of rows) {
    const args = row.slice(0, -1) as unknown as Args
    assert.equal(format(...args), row.at(-1), `${format.name}(${args.join(', ')})`)
  }
}

test('amounts are rounded to cents, and small ones keep two significant digits', () => {
  table<[number]>(
    (usd) => f.money(usd),
    [
      [0, '$0.00'],
      [1234.5, '$1,234.50'],
      [-12.5, '−$12.50'],
      [0.0012345, '$0.0012'],
      [-1e-12, '$0.00'],
      [0.005, '$0.005'],
    ],
  )
  table(f.exactMoney, [
    [1234.5, '$1,234.50'],
    [0.000000001, '$0.000000001'],
    [-20.2, '−$20.20'],
  ])
})

test('counts, sizes and durations have the unit that fits', () => {
  table<[number]>(
    (n) => f.shortCount(n),
    [
      [9_999, '9,999'],
      [12_400, '12.4k'],
      [3_100_000, '3.1M'],
    ],
  )
  table(f.bytes, [
    [0, '0 B'],
    [999, '999 B'],
    [1_500, '1.5 kB'],
    [2_000_000, '2 MB'],
  ])
  table(f.duration, [
    [0.4, '0 ms'],
    [999, '999 ms'],
    [1_500, '1.50 s'],
    [59_949, '59.9 s'],
    [59_999, '1 min 0 s'],
    [119_999, '2 min 0 s'],
    [3_599_900, '1 h 0 min'],
    [7_199_000, '2 h 0 min'],
    [2 * 86_400_000, '2 days'],
  ])
})

test('times are relative to now, and days are in words', () => {
  const now = Date.parse('2026-11-19T12:00:00Z')
  table(
    (agoMs: number) => f.relativeTime(now - agoMs, now),
    [
      [4_000, 'now'],
      [59_000, '59 s ago'],
      [4 * 60_000, '4 min ago'],
      [-3 * 86_400_000, 'in 3 days'],
      [400 * 86_400_000, '1 year ago'],
    ],
  )
  table(f.daysInWords, [
    ['2026-11-01', '2026-11-01', '1 Nov'],
    ['2026-11-01', '2026-11-19', '1 – 19 Nov'],
    ['2026-10-28', '2026-11-03', '28 Oct – 3 Nov'],
  ])
  table(f.isoTime, [['2026-11-19T12:34:56.789Z', '2026-11-19 12:34:56']])
})

test('a share is rounded down, so that 99.9 % is never shown as spent', () => {
  table(f.percent, [
    [0, 0, '–'],
    [1, 3, '33%'],
    [99.99, 100, '99%'],
    [1, 30, '3.3%'],
    [0, 5, '0%'],
  ])
})
