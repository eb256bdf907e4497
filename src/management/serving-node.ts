import type { PriceBook } from '../pricing/price-book.ts'

/** The process that serves, as its dashboard shows it. */
export interface ServingNode {
  /** How the other nodes call it. */
  readonly name: string
  readonly startedAtMs: number
  callsInFlight(): number
  callsWaiting(): number
  /** Settlements that the store has not taken yet. */
  settlementsWaiting(): number
  /** Whether it can serve: as `GET /readyz` says. */
  isReady(): Promise<boolean>
  canWrite(): Promise<boolean>
  /** Where the books are, without a password. */
  readonly booksPlace: string
  /** What was configured, without secrets, in the order of the documentation. */
  readonly configuration: readonly { readonly name: string; readonly value: unknown }[]
  /** The prices in force, and the file of the operator that changed some of them. */
  prices(): { readonly book: PriceBook; readonly shipped: PriceBook; readonly overlayFile: string | null }
  /** Begins to audit the books in a thread of its own. False: an audit is running, here or on another node. */
  startAudit(): Promise<boolean>
}
