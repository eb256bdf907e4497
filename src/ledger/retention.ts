import type { Clock } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { RequestLogStore } from './request-log.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Deletes logged bodies when their time is over: soon after the start, and then every hour. A bit at a time, so that
 * bodies of calls that run now do not wait behind it. Metadata stays for as long as the ledger.
 */
export function startRetention(
  store: Pick<RequestLogStore, 'deleteBodies'>,
  clock: Clock,
  retentionDays: number,
  log: Log,
): { stop(): void } {
  let stopped = false
  let timer = setTimeout(run, limits.retentionFirstMs)
  timer.unref()

  function run(): void {
    deleteOldBodies(store, clock.nowMs() - retentionDays * DAY_MS, () => stopped)
      .then((deleted) => {
        if (deleted > 0) log.info({ deleted }, 'deleted logged bodies that are older than they may be')
      })
      .catch((error: unknown) => {
        log.error({ cause: (error as Error).message }, 'logged bodies could not be deleted; in an hour again')
      })
      .finally(() => {
        if (stopped) return
        timer = setTimeout(run, limits.retentionEveryMs)
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

/** How many were deleted. */
export async function deleteOldBodies(
  store: Pick<RequestLogStore, 'deleteBodies'>,
  beforeMs: number,
  isStopped: () => boolean = () => false,
): Promise<number> {
  let deleted = 0
  for (;;) {
    const some = isStopped() ? 0 : await store.deleteBodies(beforeMs, limits.bodiesDeletedAtOnce)
    if (some === 0) return deleted
    deleted += some
  }
}
