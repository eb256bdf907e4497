import { RecentEntries } from '../kernel/recent-entries.ts'

const ENTRIES_MIN = 10_000

const CONTAINER_MS = 20 * 60_000

/** The containers that calls of this node have paid lately: one fee for each and 20 minutes. */
export class ContainerFees {
  readonly #paidAtMs = new RecentEntries<number>(ENTRIES_MIN)

  /** Returns how many of the containers are to be paid now. */
  charge(ids: readonly string[], nowMs: number): number {
    let charged = 0
    for (const id of ids) {
      const sinceMs = this.#paidAtMs.get(id)
      if (sinceMs !== undefined && nowMs - sinceMs < CONTAINER_MS) continue
      this.#paidAtMs.set(id, nowMs)
      charged++
    }
    return charged
  }
}
