import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import type { RemoveCalls, RemovedCalls } from '../../src/ledger/request-log.ts'
import {
  BODIES_DELETED_AT_ONCE,
  FIRST_PORTION,
  portionAfter,
  RETENTION_FIRST_MS,
  startRetention,
} from '../../src/ledger/retention.ts'
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
  const clock = { ...systemClock, nowMs: () => NOW }
  const retention = startRetention(
    store,
    clock,
    { retentionDays: 7, bodiesBytesMax: 99, keepMonths: 3, databaseUrl: null },
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
    ...thrice(['files', NOW - 90 * DAY_MS, step]),
    ['calls', Date.UTC(2026, 7), '', FIRST_PORTION],
  ])
  retention.stop()
  mock.timers.reset()
})

test('a portion of removed calls is as large as the time of the last one allows', () => {
  assert.deepEqual(
    [
      portionAfter(20, 80),
      portionAfter(20, 1),
      portionAfter(20, 0.2),
      portionAfter(1, 900),
      portionAfter(500, 0),
    ],
    [1, 20, 40, 1, 500],
  )
})
