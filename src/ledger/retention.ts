import type { Clock } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { Store } from '../store/store.ts'

const RETENTION_EVERY_MS = 60 * 60 * 1000

export const RETENTION_FIRST_MS = 60_000
export const BODIES_DELETED_AT_ONCE = 200

const DAY_MS = 24 * 60 * 60 * 1000

type Kept = Pick<Store, 'deleteBodies' | 'trimBodies' | 'deleteRefused'>

export interface RetentionLimits {
  readonly retentionDays: number
  readonly bodiesBytesMax: number
}

/**
 * Deletes logged bodies and records of refused calls that are too old or too many: soon after the start, then hourly.
 * It deletes in small steps, so that calls do not wait for it. Records of other calls are never deleted.
 */
export function startRetention(
  store: Kept,
  clock: Clock,
  { retentionDays, bodiesBytesMax }: RetentionLimits,
  log: Log,
): { stop(): void } {
  let stopped = false
  let timer = setTimeout(run, RETENTION_FIRST_MS)
  timer.unref()
  const isStopped = () => stopped

  async function deleteAll(): Promise<void> {
    const nowMs = clock.nowMs()
    const old = await deleteOldBodies(store, nowMs - retentionDays * DAY_MS, isStopped)
    if (old > 0) log.info({ deleted: old }, 'deleted expired logged bodies')
    const beyond = await inSteps((limit) => store.trimBodies(bodiesBytesMax, limit), isStopped)
    if (beyond > 0)
      log.info({ deleted: beyond }, 'deleted the oldest logged bodies: their size limit was reached')
    const refusedBeforeMs = nowMs - limits.refusedCallsMs
    const { refusedCallsMax } = limits
    await inSteps((limit) => store.deleteRefused(refusedBeforeMs, refusedCallsMax, limit), isStopped)
  }

  function run(): void {
    deleteAll()
      .catch((error: unknown) => {
        log.error(
          { cause: (error as Error).message },
          'expired log records could not be deleted; retry in an hour',
        )
      })
      .finally(() => {
        if (stopped) return
        timer = setTimeout(run, RETENTION_EVERY_MS)
        timer.unref()
      })
  }

  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

export async function deleteOldBodies(
  store: Pick<Store, 'deleteBodies'>,
  beforeMs: number,
  isStopped: () => boolean = () => false,
): Promise<number> {
  return await inSteps((limit) => store.deleteBodies(beforeMs, limit), isStopped)
}

async function inSteps(
  deleteSome: (limit: number) => Promise<number>,
  isStopped: () => boolean,
): Promise<number> {
  let deleted = 0
  for (;;) {
    const some = isStopped() ? 0 : await deleteSome(BODIES_DELETED_AT_ONCE)
    if (some === 0) return deleted
    deleted += some
  }
}
