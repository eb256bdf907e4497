import { createWorkLoop } from '../../kernel/clock.ts'
import { StoreRefused } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import type { Log } from '../../kernel/log.ts'
import type { CallClosing, CallOpening, Settled } from '../../ledger/call.ts'
import { NOTHING_USED } from '../../ledger/call-columns.ts'

interface OrphanDependencies {
  readonly node: { raiseEpoch(): Promise<void> }
  settle(closing: CallClosing): Promise<Settled>
  readonly log: Log
}

/** The pause without orphans, unless `add` ends it, and the pause after a failure. */
const IDLE_MS = 60_000
const RETRY_MS = 500

/** Releases admissions whose answer was lost: the hold may exist, but the caller got an error and sent nothing. */
export function createOrphanedAdmissions({ node, settle, log }: OrphanDependencies) {
  const orphans = new Map<string, CallOpening>()
  const stopping = new AbortController()
  /** One log line per outage, not one per try. */
  let isLogged = false

  async function release(): Promise<number> {
    const openings = [...orphans.values()]
    if (openings.length === 0) return IDLE_MS
    // Raise the epoch first, so that no admission can take effect after its release.
    await node.raiseEpoch()
    const outcomes = await Promise.allSettled(
      openings.map(({ requestId, atMs }) => settle({ ...NOTHING_USED, requestId, state: 'released', atMs })),
    )
    for (const [i, outcome] of outcomes.entries()) {
      // The store refuses to release an admission that never took effect, because its call does not exist.
      if (outcome.status === 'rejected' && !(outcome.reason instanceof StoreRefused)) throw outcome.reason
      orphans.delete(openings[i]?.requestId ?? '')
    }
    isLogged = false
    return 0
  }

  const loop = createWorkLoop({
    poll: release,
    onFailure(error) {
      const about = { calls: orphans.size, cause: (error as Error).message }
      if (!isLogged) log.warn(about, 'admissions whose outcome is unknown wait for the database')
      isLogged = true
      return RETRY_MS
    },
    stopping: stopping.signal,
  })
  loop.start()

  return {
    add(openings: readonly CallOpening[]): void {
      for (const opening of openings) {
        if (orphans.size < limits.storeQueueMax) orphans.set(opening.requestId, opening)
        else
          log.error(
            { request: opening.requestId },
            'an admission whose outcome is unknown keeps its reservation until this node stops',
          )
      }
      if (openings.length > 0) loop.wake()
    },
    /** Remaining orphans are closed as interrupted when another node fences this one. */
    async close(): Promise<void> {
      stopping.abort()
      await loop.ended()
      // The pause after a failure may have ended early: try once more, while the store may answer again.
      await release().catch(() => {})
    },
  }
}
