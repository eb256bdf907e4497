import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import { BODIES_DELETED_AT_ONCE, RETENTION_FIRST_MS, startRetention } from '../../src/ledger/retention.ts'
import { test } from '../support/suite.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const NOW = Date.UTC(2026, 10, 15)

test('after the start and every hour, expired and excess records are deleted in steps', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const asked: unknown[][] = []
  const over = Promise.withResolvers<void>()
  /** Two steps, then nothing is left. */
  const steps = (name: string) => {
    let left = 2
    return async (...args: number[]) => {
      asked.push([name, ...args])
      left -= 1
      if (name === 'refused' && left < 0) over.resolve()
      return left < 0 ? 0 : 1
    }
  }
  const store = { deleteBodies: steps('old'), trimBodies: steps('beyond'), deleteRefused: steps('refused') }
  const clock = { ...systemClock, nowMs: () => NOW }
  const retention = startRetention(
    store,
    clock,
    { retentionDays: 7, bodiesBytesMax: 99 },
    createLog('silent'),
  )
  mock.timers.tick(RETENTION_FIRST_MS)
  await over.promise
  const step = BODIES_DELETED_AT_ONCE
  const thrice = (call: unknown[]) => [call, call, call]
  assert.deepEqual(asked, [
    ...thrice(['old', NOW - 7 * DAY_MS, step]),
    ...thrice(['beyond', 99, step]),
    ...thrice(['refused', NOW - 30 * DAY_MS, 100_000, step]),
  ])
  retention.stop()
  mock.timers.reset()
})
