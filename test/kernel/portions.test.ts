import assert from 'node:assert/strict'
import { systemClock } from '../../src/kernel/clock.ts'
import { FIRST_PORTION, Portions } from '../../src/kernel/portions.ts'
import { test } from '../support/suite.ts'

test('a portion is as large as the time of the last one allows, and at most twice as large', async () => {
  let atMs = 0
  const portions = new Portions({ ...systemClock, monotonicMs: () => atMs }, { ms: 10, rowsMax: 50, rest: 0 })
  const asked: number[] = []
  for (const tookMs of [0, 0, 10, 0, 0, 0, 0, 800, 20, 8])
    await portions.next(async (rows) => {
      asked.push(rows)
      atMs += tookMs
    })
  assert.deepEqual(asked, [FIRST_PORTION, 2, 4, 4, 8, 16, 32, 50, 1, 1])
})

test('after a portion, nothing is done for a multiple of its time, but not for more than a second', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let atMs = 0
  const pace = { ms: 10, rowsMax: 50, rest: 3 }
  const portions = new Portions({ ...systemClock, monotonicMs: () => atMs }, pace)
  const turns = () => new Promise((resolve) => setImmediate(resolve))
  for (const [tookMs, restMs] of [
    [7, 21],
    [3_600_000, 1_000],
  ] as const) {
    let isRested = false
    const next = portions
      .next(async () => {
        atMs += tookMs
      })
      .then(() => {
        isRested = true
      })
    await turns()
    t.mock.timers.tick(restMs - 1)
    await turns()
    assert.equal(isRested, false)
    t.mock.timers.tick(1)
    await next
  }
})
