import { createCallCheck } from './audit-call.ts'
import { createCreditCheck } from './audit-credit.ts'
import {
  type AccountSums,
  checkAccount,
  checkDay,
  checkFloor,
  checkMonth,
  type SumsRow,
} from './audit-sums.ts'
import type { AuditedCall, AuditedCredit, Difference, RateAgain } from './audited.ts'

/** How much there is to check. */
export interface AuditCounts {
  readonly calls: number
  readonly keys: number
  readonly months: number
  readonly days: number
  readonly credits: number
}

/**
 * The books as they stood at one instant. Nothing that is booked meanwhile is seen. What is read comes in batches:
 * to wait for each row by itself would cost more than to check it.
 */
export interface BooksReader {
  /** Such as "2025-01": its calls were put away by the operator, and what is known of them is taken as it stands. */
  readonly monthsAway: readonly string[]
  counts(): Promise<AuditCounts>
  /** In the order of their ids. */
  calls(): Batches<AuditedCall>
  /** Those about calls come call by call, in the order in which they were booked. */
  credits(): Batches<AuditedCredit>
  /** Adds up all calls and credits anew. Must be done before those below are asked. */
  addUp(onCalls: (count: number) => void): Promise<void>
  /** Each of these gives the rows whose sums differ, and may give others too. */
  months(): Batches<SumsRow>
  days(): Batches<SumsRow>
  accounts(): Batches<AccountSums>
  /** None in books from before there were floors. */
  floors(): Batches<SumsRow>
}

export type Batches<T> = AsyncIterable<readonly T[]>

export interface OpenBooks extends BooksReader {
  close(): Promise<void>
}

export interface AuditReport {
  readonly counts: AuditCounts
  readonly monthsAway: readonly string[]
  readonly difference: Difference | null
}

/**
 * Derives everything that is kept as a sum or a price from the records it was made of, and says where the two
 * differ first: single calls and credits before the sums over them, so that what is named is the cause and not its
 * consequence.
 */
export async function runAudit(
  books: BooksReader,
  rateAgain: RateAgain,
  onProgress: (done: number, total: number) => void,
): Promise<AuditReport> {
  const counts = await books.counts()
  // Every call is read twice: alone, and as part of the sums.
  const total = counts.calls * 2
  let done = 0
  const advance = (count: number): void => {
    done += count
    onProgress(Math.min(done, total), total)
  }
  const difference =
    (await firstOf(books.calls(), createCallCheck(rateAgain), advance)) ??
    (await firstOf(books.credits(), createCreditCheck(rateAgain))) ??
    (await checkSums(books, advance))
  return { counts, monthsAway: books.monthsAway, difference }
}

async function checkSums(books: BooksReader, advance: (count: number) => void): Promise<Difference | null> {
  await books.addUp(advance)
  return (
    (await firstOf(books.months(), checkMonth)) ??
    (await firstOf(books.days(), checkDay)) ??
    (await firstOf(books.accounts(), checkAccount)) ??
    (await firstOf(books.floors(), checkFloor))
  )
}

async function firstOf<T>(
  batches: Batches<T>,
  check: (item: T) => Difference | null,
  advance: (count: number) => void = () => {},
): Promise<Difference | null> {
  for await (const batch of batches) {
    for (const item of batch) {
      const difference = check(item)
      if (difference !== null) return difference
    }
    advance(batch.length)
  }
  return null
}
