import { setTimeout as sleep } from 'node:timers/promises'
import { StoreRefused } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import type { Log } from '../../kernel/log.ts'
import type { CallClosing, CallOpening, Settled } from '../../ledger/call.ts'
import { NOTHING_USED } from '../../ledger/call-columns.ts'
import type { Node } from './node.ts'

/**
 * Admissions whose answer was lost or came too late. The caller got an error and sent nothing upstream, but the hold
 * may exist, and no call would ever settle it. These holds are released once the database answers again.
 */
export interface OrphanedAdmissions {
  add(openings: readonly CallOpening[]): void
  /** Remaining orphans are closed as interrupted when another node fences this one. */
  close(): Promise<void>
}

export interface OrphanParts {
  readonly node: Pick<Node, 'raiseEpoch'>
  settle(closing: CallClosing): Promise<Settled>
  readonly log: Log
}

const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000

export function createOrphanedAdmissions({ node, settle, log }: OrphanParts): OrphanedAdmissions {
  const open = new Map<string, CallOpening>()
  const closing = new AbortController()
  let working: Promise<void> | null = null

  async function releaseAll(): Promise<void> {
    for (let waitMs = RETRY_FIRST_MS; open.size > 0; waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)) {
      try {
        await releaseOnce()
        waitMs = RETRY_FIRST_MS
      } catch (error) {
        if (closing.signal.aborted) return
        log.warn(
          { calls: open.size, cause: (error as Error).message },
          'admissions with an unknown outcome wait for the store',
        )
        await sleep(waitMs, undefined, { signal: closing.signal }).catch(() => {})
      }
    }
  }

  async function releaseOnce(): Promise<void> {
    const openings = [...open.values()]
    // Raise the epoch first, so that no such admission can take effect after its release was tried.
    await node.raiseEpoch()
    const outcomes = await Promise.allSettled(openings.map((opening) => settle(releaseOf(opening))))
    for (const [i, outcome] of outcomes.entries()) {
      // The store refuses to release an admission that never took effect: there is no such call.
      if (outcome.status === 'rejected' && !(outcome.reason instanceof StoreRefused)) throw outcome.reason
      open.delete(openings[i]?.requestId ?? '')
    }
  }

  return {
    add(openings) {
      if (closing.signal.aborted) return
      for (const opening of openings) {
        if (open.size < limits.storeQueueMax) open.set(opening.requestId, opening)
        else
          log.error(
            { request: opening.requestId },
            'an admission with an unknown outcome holds until this node ends',
          )
      }
      working ??= releaseAll().finally(() => {
        working = null
      })
    },
    async close() {
      closing.abort()
      await working
    },
  }
}

function releaseOf({ requestId, atMs }: CallOpening): CallClosing {
  return { ...NOTHING_USED, requestId, state: 'released', atMs }
}
