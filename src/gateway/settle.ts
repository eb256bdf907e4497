import { setTimeout as sleep } from 'node:timers/promises'
import { StoreGone, StoreRefused } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { CallClosing, Settled } from '../ledger/call.ts'
import type { LedgerStore } from '../ledger/ledger-store.ts'
import type { SettlementWatch } from '../ledger/settlement-watch.ts'

/**
 * Takes every settlement to the store, and does not give up: while the store cannot write (a full disk), they wait
 * here and are tried again until it can. A call is settled once, however often it is tried, because the store closes
 * a hold once.
 */
export interface Settler {
  /**
   * Null if the store could not take it within the time an answer may wait; it is still under way then. `onSettled`
   * is told when the store has it, sooner or later.
   */
  settle(closing: CallClosing, onSettled: () => void): Promise<Settled | null>
  /** Settlements that are under way or wait. */
  readonly waiting: number
}

const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000

export function createSettler(store: Pick<LedgerStore, 'settle'>, watch: SettlementWatch, log: Log): Settler {
  const underWay = new Set<Promise<Settled>>()

  async function settleOnce(closing: CallClosing, onSettled: () => void): Promise<Settled> {
    const settled = await store.settle(closing)
    watch.settled(closing.requestId)
    onSettled()
    return settled
  }

  async function settleAtLast(
    closing: CallClosing,
    onSettled: () => void,
    failure: unknown,
  ): Promise<Settled> {
    let cause = failure
    for (let waitMs = RETRY_FIRST_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)) {
      if (cause instanceof StoreGone || cause instanceof StoreRefused) throw cause
      log.error(
        { request: closing.requestId, cause: (cause as Error).message },
        'a settlement waits for the store',
      )
      await sleep(waitMs)
      try {
        return await settleOnce(closing, onSettled)
      } catch (error) {
        cause = error
      }
    }
  }

  return {
    get waiting() {
      return underWay.size
    },
    async settle(closing, onSettled) {
      const first = settleOnce(closing, onSettled)
      const settling = first.catch((error: unknown) => settleAtLast(closing, onSettled, error))
      underWay.add(settling)
      settling.then(
        () => underWay.delete(settling),
        () => underWay.delete(settling),
      )
      // The race, and its timer, only where the store has failed once.
      return await first.catch(() =>
        Promise.race([settling.catch(unlessRefused), sleep(limits.settleWaitMs, null, { ref: false })]),
      )
    },
  }
}

/** What the store refuses for good is a defect, and the caller's to deal with. */
function unlessRefused(error: unknown): null {
  if (error instanceof StoreRefused) throw error
  return null
}
