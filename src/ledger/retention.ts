import type { Clock } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { Store } from '../store/store.ts'

const RETENTION_EVERY_MS = 60 * 60 * 1000

export const RETENTION_FIRST_MS = 60_000
export const BODIES_DELETED_AT_ONCE = 200

const DAY_MS = 24 * 60 * 60 * 1000

/** Deletes bodies and refused calls in small steps, soon after the start, then hourly. Calls are never deleted. */
export function startRetention(
  store: Pick<Store, 'deleteBodies' | 'trimBodies' | 'deleteRefused'>,
  clock: Clock,
  { retentionDays, bodiesBytesMax }: { readonly retentionDays: number; readonly bodiesBytesMax: number },
  log: Log,
): { stop(): void } {
  let stopped = false
  let timer = setTimeout(run, RETENTION_FIRST_MS).unref()

  async function repeatUntilDone(deleteSome: (limit: number) => Promise<number>): Promise<number> {
    for (let deleted = 0; ; ) {
      const deletedNow = stopped ? 0 : await deleteSome(BODIES_DELETED_AT_ONCE)
      if (deletedNow === 0) return deleted
      deleted += deletedNow
    }
  }

  async function run(): Promise<void> {
    const nowMs = clock.nowMs()
    try {
      const expiredMs = nowMs - retentionDays * DAY_MS
      const expired = await repeatUntilDone((limit) => store.deleteBodies(expiredMs, limit))
      if (expired > 0) log.info({ deleted: expired }, 'deleted expired logged bodies')
      const excess = await repeatUntilDone((limit) => store.trimBodies(bodiesBytesMax, limit))
      if (excess > 0)
        log.info({ deleted: excess }, 'deleted the oldest logged bodies: their size limit was reached')
      const { refusedCallsMs, refusedCallsMax } = limits
      await repeatUntilDone((limit) => store.deleteRefused(nowMs - refusedCallsMs, refusedCallsMax, limit))
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
