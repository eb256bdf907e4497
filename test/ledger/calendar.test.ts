import assert from 'node:assert/strict'
import fc from 'fast-check'
import { dayOf, monthOf, nextDayMs, nextMonthMs, startOfDayMs } from '../../src/ledger/calendar.ts'
import { test } from '../support/suite.ts'

test('days and months are in UTC, in any order of calls', () => {
  const [min, max] = [Date.UTC(2020, 0, 1), Date.UTC(2040, 0, 1)]
  const dayMs = 86_400_000
  const instant = fc.oneof(
    fc.integer({ min, max }),
    // The first and last milliseconds of a day.
    fc
      .tuple(fc.nat(7_000), fc.integer({ min: -2, max: 2 }))
      .map(([day, off]) => min + (day + 1) * dayMs + off),
  )
  fc.assert(
    fc.property(fc.array(instant, { minLength: 2 }), (instants) => {
      for (const atMs of instants) {
        const text = new Date(atMs).toISOString()
        const [day, month] = [text.slice(0, 10), text.slice(0, 7)]
        assert.deepEqual([dayOf(atMs), monthOf(atMs)], [day, month])
        const [startMs, nextMs] = [startOfDayMs(day), nextDayMs(atMs)]
        assert.deepEqual([startMs, nextMs], [Date.parse(day), Date.parse(day) + dayMs])
        // The next month begins on a first day, and the millisecond before belongs to this month.
        const nextMonth = nextMonthMs(atMs)
        assert.equal(new Date(nextMonth - 1).toISOString().slice(0, 7), month)
        assert.match(new Date(nextMonth).toISOString(), /-01T00:00:00.000Z$/)
        assert.notEqual(new Date(nextMonth).toISOString().slice(0, 7), month)
      }
    }),
  )
})
