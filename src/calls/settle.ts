import { setTimeout as sleep } from 'node:timers/promises'
import { StoreGone, StoreRefused } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
import type { CallClosing, Settled } from '../ledger/call.ts'
import { NOTHING_USED } from '../ledger/call-columns.ts'
import type { SettlementSpool } from '../ledger/settlement-spool.ts'
import type { Store } from '../store/store.ts'

/** How many spooled settlements of an earlier process are sent to the store at once. */
export const SETTLEMENTS_REPLAYED_AT_ONCE = 200

/** How long an answer waits for a settlement that the store cannot accept. It is then sent without figures. */
export const SETTLE_WAIT_MS = 2_000

export type Settler = ReturnType<typeof createSettler>

type OnSettled = (settled: Settled) => void

interface SettlerDependencies {
  readonly store: Pick<Store, 'settle'>
  readonly watch: SettlementWatch
  /** Null if the database is on the same disk: when this disk is full, a spool does not help. */
  readonly spool: SettlementSpool | null
  readonly log: Log
  readonly waitMs?: number
}

const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000

interface RetriedSettlement {
  /** Resolves when the settlement is in the spool, or does not need it. Never rejects. */
  readonly spooled: Promise<void>
  /** Rejects only if the store refused the settlement or is closed. A spooled settlement is not lost then. */
  readonly written: Promise<Settled>
}

/** Sends every settlement to the store and retries until it is written. The store closes a hold only once. */
export function createSettler(dependencies: SettlerDependencies) {
  const { store, watch, spool, log, waitMs: waitMsMax = SETTLE_WAIT_MS } = dependencies
  const pending = new Map<string, Promise<Settled | RetriedSettlement>>()
  let replaysLeft = 0

  function startSettling(closing: CallClosing, onSettled: OnSettled): Promise<Settled | RetriedSettlement> {
    const running = pending.get(closing.requestId)
    // The first closing of a call counts: a release must not overtake a bill that is being retried.
    if (running !== undefined) return running
    const first = trySettle(closing, onSettled)
    pending.set(closing.requestId, first)
    return first
  }

  async function trySettle(closing: CallClosing, onSettled: OnSettled): Promise<Settled | RetriedSettlement> {
    try {
      return notify(closing, onSettled, await store.settle(closing))
    } catch (error) {
      return settleLater(closing, onSettled, error)
    }
  }

  function notify({ requestId: request }: CallClosing, onSettled: OnSettled, settled: Settled): Settled {
    spool?.remove(request)
    watch.settled(request)
    pending.delete(request)
    try {
      onSettled(settled)
    } catch (err) {
      // The settlement is stored. Do not let this error escape, or the settlement would be retried forever.
      log.error({ request, err }, 'unexpected error')
    }
    return settled
  }

  function settleLater(closing: CallClosing, onSettled: OnSettled, failure: unknown): RetriedSettlement {
    const isRefused = failure instanceof StoreRefused
    const spooled = isRefused || spool === null ? Promise.resolve() : spool.append(closing)
    const written = spooled
      .then(() => retryUntilWritten(closing, onSettled, failure))
      .finally(() => pending.delete(closing.requestId))
    // Without this, a rejection that nobody awaits would end the process. Callers that await it still get the error.
    written.catch(() => {})
    return { spooled, written }
  }

  async function retryUntilWritten(closing: CallClosing, onSettled: OnSettled, failure: unknown) {
    const request = closing.requestId
    let cause = failure
    for (let waitMs = RETRY_FIRST_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)) {
      if (cause instanceof StoreRefused) {
        // Without a spool this log line is the only trace of the bill.
        const details = { request, costNanos: String(closing.costNanos), cause: cause.message }
        log.error(details, 'the database refused a settlement')
        await spool?.refuse(closing, cause.message)
        // Close the hold: the caller may be gone, and the hold would stay until the next start. A call that does not
        // exist has no hold.
        const lost = { ...NOTHING_USED, requestId: request, state: 'interrupted' } as const
        await store.settle({ ...lost, atMs: closing.atMs }).catch(() => {})
      }
      if (cause instanceof StoreGone || cause instanceof StoreRefused) throw cause
      // Log each settlement once: thousands may be waiting, each retried many times.
      if (waitMs === RETRY_FIRST_MS) {
        log.error({ request, cause: (cause as Error).message }, 'a settlement waits for the database')
      }
      await sleep(waitMs)
      try {
        return notify(closing, onSettled, await store.settle(closing))
      } catch (error) {
        cause = error
      }
    }
  }

  function waitFor({ spooled, written }: RetriedSettlement): Promise<Settled | null> {
    const timeout = sleep(waitMsMax, null, { ref: false })
    return Promise.race([written.catch(rethrowRefusal), Promise.all([spooled, timeout]).then(() => null)])
  }

  return {
    get waiting(): number {
      return pending.size + replaysLeft
    },
    /** Whether settlements would survive a crash. If not, no new call may be admitted. */
    get isDurable(): boolean {
      return spool?.isDurable ?? true
    },
    /** Null if the store did not accept it in time. It is then retried, and `onSettled` is called later. */
    async settle(closing: CallClosing, onSettled: OnSettled): Promise<Settled | null> {
      const first = await startSettling(closing, onSettled)
      return 'written' in first ? await waitFor(first) : first
    },
    /** Replays the spool of an earlier process. Calls `onApplied` for each settlement that was new. Never rejects. */
    async replay(closings: readonly CallClosing[], onApplied: (closing: CallClosing) => void): Promise<void> {
      const remaining = closings.values()
      replaysLeft = closings.length
      if (replaysLeft > 0)
        log.warn({ settlements: replaysLeft }, 'settlements of the previous run are sent to the database')
      let gone = false
      async function replayRemaining(): Promise<void> {
        for (const closing of remaining) {
          replaysLeft -= 1
          let isRetried = false
          const first = await startSettling(closing, ({ applied }) => {
            // If the answer to the first attempt was lost, that attempt may have applied it.
            if (applied || isRetried) onApplied(closing)
          })
          if ('written' in first) {
            isRetried = true
            await first.written.catch((error: unknown) => {
              gone ||= error instanceof StoreGone
            })
          }
          if (gone) return
        }
      }
      await Promise.all(Array.from({ length: SETTLEMENTS_REPLAYED_AT_ONCE }, replayRemaining))
      // The store is closed: the next process replays the rest.
      replaysLeft = 0
    },
  }
}

/** Rethrows a refusal of the database, which is a defect. Other errors become null. */
function rethrowRefusal(error: unknown): null {
  if (error instanceof StoreRefused) throw error
  return null
}

type SettlementWatch = ReturnType<typeof createSettlementWatch>

/** Wakes requests that wait for a call to be settled on this node. */
export function createSettlementWatch() {
  const waiting = new Map<string, Set<() => void>>()
  return {
    settled(requestId: string): void {
      for (const wake of waiting.get(requestId) ?? []) wake()
    },
    /** `done` resolves when the call is settled here or the time is over. */
    wait(requestId: string, forMs: number) {
      const { promise: done, resolve } = Promise.withResolvers<void>()
      const wakers = waiting.get(requestId) ?? new Set()
      const timer = setTimeout(stop, forMs)
      wakers.add(stop)
      waiting.set(requestId, wakers)
      function stop(): void {
        clearTimeout(timer)
        wakers.delete(stop)
        if (wakers.size === 0) waiting.delete(requestId)
        resolve()
      }
      return { done, stop }
    },
  }
}
