import type { Admission, CallClosing, CallOpening, Settled } from '../ledger/call.ts'
import type { StoreLoad } from '../ledger/store-facts.ts'
import type { BODIES, BRIEF, READS, REFUSED } from './operations/cold-operations.ts'
import type { Methods } from './operations/operation.ts'

/**
 * The store: a method for each operation, each one transaction. Types of the methods are those of the operations. Ids are
 * looked up within the account: ids of other accounts are not found. This file has types alone, so every room may import it.
 */
export interface Store extends Methods<typeof BRIEF & typeof REFUSED & typeof READS & typeof BODIES> {
  /**
   * Is the key active, are the models allowed, can the call be rated, is there room under the cap and the credit?
   * Then the hold is placed, durably, before a byte goes upstream.
   */
  admit(opening: CallOpening): Promise<Admission>
  /** Closes the call's hold and adds its cost to the key's month, the balance and the day's rollup. Once. */
  settle(closing: CallClosing): Promise<Settled>
  /** After a crash: closes every open call of the process that died as interrupted. Returns how many there were. */
  interruptOpenCalls(atMs: number): Promise<number>
  readonly load: StoreLoad
  close(): Promise<void>
}
