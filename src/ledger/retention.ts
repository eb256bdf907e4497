import { randomUUID } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import { BESIDE_CALLS, Portions } from '../kernel/portions.ts'
import type { Store } from '../store/store.ts'
import { dayOf, startOfMonthMs } from './calendar.ts'
import type { RemoveCalls, RemovedCalls } from './request-log.ts'

const RETENTION_EVERY_MS = 60 * 60 * 1000

export const RETENTION_FIRST_MS = 60_000
export const BODIES_DELETED_AT_ONCE = 200

const DAY_MS = 24 * 60 * 60 * 1000

/** Longer than a provider keeps the file of a batch. The record of a file is only needed until its batch is sent. */
const FILES_KEPT_MS = 90 * DAY_MS

/**
 * On PostgreSQL nothing waits for old calls. Without rests, portions of 500 calls removed 6,000 a second, and these 9,900,
 * because they add more calls to one sum.
 */
const PACES = { sqlite: BESIDE_CALLS, postgres: { ms: 500, rowsMax: 10_000, rest: 3 } } as const

export interface RetentionOptions {
  readonly retentionDays: number
  readonly bodiesBytesMax: number
  /** Full months of calls that are kept besides the current one. Null: all. */
  readonly keepMonths: number | null
  /** Null: SQLite. */
  readonly databaseUrl: unknown
}

type RetentionStore = Pick<
  Store,
  'deleteBodies' | 'trimBodies' | 'deleteRefused' | 'removeCalls' | 'pruneFiles'
>

/** Deletes old records in small steps, soon after the start. Then bodies and refused calls hourly, and the rest daily. */
export function startRetention(
  store: RetentionStore,
  clock: Clock,
  { retentionDays, bodiesBytesMax, keepMonths, databaseUrl }: RetentionOptions,
  log: Log,
): { stop(): void } {
  let stopped = false
  let nextDailyMs = -Infinity
  let timer = setTimeout(run, RETENTION_FIRST_MS).unref()

  async function repeatUntilDone(deleteSome: (limit: number) => Promise<number>): Promise<number> {
    const portions = new Portions(clock)
    for (let deleted = 0; ; ) {
      const deletedNow = stopped ? 0 : await portions.next(deleteSome)
      if (deletedNow === 0) return deleted
      deleted += deletedNow
    }
  }

  async function deleteBodies(nowMs: number): Promise<void> {
    const keptMs = keepMonths === null ? -Infinity : startOfMonthMs(nowMs, keepMonths)
    const expiredMs = Math.max(nowMs - retentionDays * DAY_MS, keptMs)
    const expired = await repeatUntilDone((limit) => store.deleteBodies(expiredMs, limit))
    if (expired > 0) log.info({ deleted: expired }, 'deleted expired logged bodies')
    const excess = await repeatUntilDone((limit) => store.trimBodies(bodiesBytesMax, limit))
    if (excess > 0)
      log.info({ deleted: excess }, 'deleted the oldest logged bodies: their size limit was reached')
  }

  async function removeCalls(nowMs: number): Promise<void> {
    if (keepMonths === null) return
    const beforeMs = startOfMonthMs(nowMs, keepMonths)
    const kind = databaseUrl === null ? 'sqlite' : 'postgres'
    const calls = await removeOldCalls({ store, clock, kind, beforeMs, isStopped: () => stopped })
    if (calls > 0)
      log.info({ calls, before: dayOf(beforeMs) }, 'removed the calls of old months; their sums stay')
  }

  async function run(): Promise<void> {
    const nowMs = clock.nowMs()
    try {
      await deleteBodies(nowMs)
      const { refusedCallsMs, refusedCallsMax } = limits
      await repeatUntilDone((limit) => store.deleteRefused(nowMs - refusedCallsMs, refusedCallsMax, limit))
      if (nowMs >= nextDailyMs) {
        await repeatUntilDone((limit) => store.pruneFiles(nowMs - FILES_KEPT_MS, limit))
        await removeCalls(nowMs)
        nextDailyMs = nowMs + DAY_MS
      }
    } catch (error) {
      const about = { cause: (error as Error).message }
      log.error(about, 'expired log records could not be deleted; retry in an hour')
    }
    if (!stopped) timer = setTimeout(run, RETENTION_EVERY_MS).unref()
  }

  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

export interface OldCalls {
  readonly store: Pick<Store, 'removeCalls'>
  readonly kind: keyof typeof PACES
  readonly clock: Clock
  readonly beforeMs: number
  isStopped(): boolean
}

/** Returns the number of removed calls. */
export async function removeOldCalls({ store, clock, kind, beforeMs, isStopped }: OldCalls): Promise<number> {
  const node = randomUUID()
  const portions = new Portions(clock, PACES[kind])
  let calls = 0
  for (let after: string | null = ''; after !== null && !isStopped(); ) {
    const portion: Omit<RemoveCalls, 'limit'> = { beforeMs, after, node, atMs: clock.nowMs() }
    const removed: RemovedCalls = await portions.next((limit) => store.removeCalls({ ...portion, limit }))
    if (removed.kind === 'other_node') break
    calls += removed.calls
    after = removed.next
  }
  return calls
}
