import { createCallCheck } from './audit-call.ts'
import { createCreditCheck } from './audit-credit.ts'
import { type AccountSums, checkAccount, checkDay, checkMonth, type SumsRow } from './audit-sums.ts'
import type { AuditedCall, AuditedCredit, Difference, RateAgain } from './audited.ts'

/** How much there is to check. */
export interface AuditCounts {
  readonly calls: number
  readonly keys: number
  readonly months: number
  readonly days: number
  readonly credits: number
}

/** The books as they stood at one instant. Nothing that is booked meanwhile is seen. */
export interface BooksReader {
  counts(): AuditCounts
  /** In the order of their ids. */
  calls(): Iterable<AuditedCall>
  /** Those about calls come call by call, in the order in which they were booked. */
  credits(): Iterable<AuditedCredit>
  /** Adds up all calls and credits anew. Must be done before the three below are asked. */
  addUp(onCalls: (count: number) => void): void
  /** Each of these gives the rows whose sums differ, and may give others too. */
  months(): Iterable<SumsRow>
  days(): Iterable<SumsRow>
  accounts(): Iterable<AccountSums>
}

export interface AuditReport {
  readonly counts: AuditCounts
  readonly difference: Difference | null
}

/** Calls between two reports of progress. */
const STRIDE = 1_000

/**
 * Derives everything that is kept as a sum or a price from the records it was made of, and says where the two
 * differ first: single calls and credits before the sums over them, so that what is named is the cause and not its
 * consequence.
 */
export function runAudit(
  books: BooksReader,
  rateAgain: RateAgain,
  onProgress: (done: number, total: number) => void,
): AuditReport {
  const counts = books.counts()
  // Every call is read twice: alone, and as part of the sums.
  const total = counts.calls * 2
  let done = 0
  const advance = (count: number): void => {
    done += count
    onProgress(Math.min(done, total), total)
  }
  const difference =
    firstOf(withProgress(books.calls(), advance), createCallCheck(rateAgain)) ??
    firstOf(books.credits(), createCreditCheck(rateAgain)) ??
    checkSums(books, advance)
  return { counts, difference }
}

function checkSums(books: BooksReader, advance: (count: number) => void): Difference | null {
  books.addUp(advance)
  return (
    firstOf(books.months(), checkMonth) ??
    firstOf(books.days(), checkDay) ??
    firstOf(books.accounts(), checkAccount)
  )
}

function firstOf<T>(items: Iterable<T>, check: (item: T) => Difference | null): Difference | null {
  for (const item of items) {
    const difference = check(item)
    if (difference !== null) return difference
  }
  return null
}

function* withProgress<T>(items: Iterable<T>, advance: (count: number) => void): Iterable<T> {
  let unreported = 0
  for (const item of items) {
    yield item
    unreported += 1
    if (unreported < STRIDE) continue
    advance(unreported)
    unreported = 0
  }
  advance(unreported)
}
