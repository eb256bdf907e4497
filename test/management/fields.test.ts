import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { formatUsd } from '../../src/kernel/money.ts'
import { parseInstant, parseOwnJson, usdField } from '../../src/management/fields.ts'

const daysIn = (year: number, month: number): number => {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
}

test('an instant is read if and only if the calendar and the clock have it', () => {
  const parts = fc.record({
    year: fc.integer({ min: 1, max: 9999 }),
    month: fc.integer({ min: 0, max: 13 }),
    day: fc.oneof(fc.integer({ min: 0, max: 32 }), fc.constantFrom(28, 29, 30, 31)),
    hour: fc.integer({ min: 0, max: 25 }),
    minute: fc.integer({ min: 0, max: 61 }),
    second: fc.integer({ min: 0, max: 61 }),
    fraction: fc.option(fc.stringMatching(/^[0-9]{1,9}$/), { nil: '' }),
  })
  fc.assert(
    fc.property(parts, ({ year, month, day, hour, minute, second, fraction }) => {
      const two = (value: number) => String(value).padStart(2, '0')
      const date = `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`
      const text = `${date}T${two(hour)}:${two(minute)}:${two(second)}${fraction === '' ? '' : `.${fraction}`}Z`
      const real =
        month >= 1 &&
        month <= 12 &&
        day >= 1 &&
        day <= daysIn(year, month) &&
        hour <= 23 &&
        minute <= 59 &&
        second <= 59
      const expected = new Date(0)
      expected.setUTCFullYear(year, month - 1, day)
      const ms = Number(fraction.slice(0, 3).padEnd(3, '0'))
      expected.setUTCHours(hour, minute, second, ms)
      assert.equal(parseInstant(text), real ? expected.getTime() : null, text)
    }),
  )
})

test('money is read to the nanodollar, however its number is written', () => {
  const max = 1_000_000_000_000_000_000n
  const schema = z.strictObject({ a_usd: usdField('a_usd', { min: -max, max }) })
  const read = (number: string) => schema.safeParse(parseOwnJson(`{"a_usd":${number}}`)).data?.a_usd
  fc.assert(
    fc.property(fc.bigInt({ min: -max, max }), fc.integer({ min: -20, max: 20 }), (nanos, shift) => {
      assert.equal(read(formatUsd(nanos)), nanos)
      assert.equal(read(`${nanos}e-9`), nanos)
      // The same digits with the point elsewhere, and an exponent that moves the point back.
      const size = String(nanos < 0n ? -nanos : nanos)
      // JSON has no 00.
      const zeros = '0'.repeat(nanos === 0n ? 0 : Math.max(shift, 0))
      const sign = nanos < 0n ? '-' : ''
      assert.equal(read(`${sign}${size}${zeros}e${-9 - zeros.length}`), nanos)
      assert.equal(read(`${sign}0.${size.padStart(20, '0')}E+11`), nanos)
    }),
  )
})

test('a fraction of a nanodollar is refused, however its number is written', () => {
  const schema = z.strictObject({ a_usd: usdField('a_usd', { min: 0n, max: 10n ** 18n }) })
  for (const number of ['0.0000000001', '1e-10', '1.0000000001', '10000000001e-10', '1e-999']) {
    assert.equal(schema.safeParse(parseOwnJson(`{"a_usd":${number}}`)).success, false, number)
  }
  for (const number of ['0.1000000000', '1.0e0', '100e-2', '0e-999']) {
    assert.equal(schema.safeParse(parseOwnJson(`{"a_usd":${number}}`)).success, true, number)
  }
})
