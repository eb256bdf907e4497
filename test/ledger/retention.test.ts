import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import { FIRST_PORTION } from '../../src/kernel/portions.ts'
import type { RemoveCalls, RemovedCalls } from '../../src/ledger/request-log.ts'
import { RETENTION_FIRST_MS, startRetention } from '../../src/ledger/retention.ts'
import { test } from '../support/suite.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const NOW = Date.UTC(2026, 10, 15)

test('after the start, expired and excess records are deleted in steps, then the calls of old months', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const asked: unknown[][] = []
  const over = Promise.withResolvers<void>()
  /** Two steps, then nothing is left. */
  const steps = (name: string) => {
    let left = 2
    return async (...args: number[]) => {
      asked.push([name, ...args])
      left -= 1
      return left < 0 ? 0 : 1
    }
  }
  const removeCalls = async ({ beforeMs, after, limit }: RemoveCalls): Promise<RemovedCalls> => {
    asked.push(['calls', beforeMs, after, limit])
    over.resolve()
    return { kind: 'removed', calls: 1, next: null }
  }
  const store = {
    ...{ deleteBodies: steps('old'), trimBodies: steps('beyond'), deleteRefused: steps('refused') },
    ...{ pruneFiles: steps('files'), removeCalls },
  }
  const clock = { ...systemClock, nowMs: () => NOW, monotonicMs: () => 0 }
  const retention = startRetention(
    store,
    clock,
    { retentionDays: 7, bodiesBytesMax: 99, keepMonths: 3, databaseUrl: null },
    createLog('silent'),
  )
  mock.timers.tick(RETENTION_FIRST_MS)
  await over.promise
  // No time passes, so each portion is twice as large as the one before.
  const thrice = (call: unknown[]) => [1, 2, 4].map((times) => [...call, times * FIRST_PORTION])
  assert.deepEqual(asked, [
    ...thrice(['old', NOW - 7 * DAY_MS]),
    ...thrice(['beyond', 99]),
    ...thrice(['refused', NOW - 30 * DAY_MS, 100_000]),
    ...thrice(['files', NOW - 90 * DAY_MS]),
    ['calls', Date.UTC(2026, 7), '', FIRST_PORTION],
  ])
  retention.stop()
  mock.timers.reset()
})
