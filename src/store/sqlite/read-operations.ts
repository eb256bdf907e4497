import type { KeyQuery, KeyRecord, Page } from '../../keys/key-store.ts'
import type { CallCursor, CallFilter, CallPage } from '../../ledger/request-log.ts'
import type { UsageQuery, UsageReport } from '../../ledger/usage-report.ts'

/**
 * What the reading thread can be asked: all that may look at many rows, so that no admission waits for it. A new one
 * gets its line here, its statements in a file of its own, and its place in `prepare-read-operations.ts`.
 */
export type ReadOperations = {
  listKeys(query: KeyQuery): Page<KeyRecord>
  listCalls(filter: CallFilter, after: CallCursor | null, limit: number): CallPage
  readUsage(query: UsageQuery): UsageReport
}

export type ReadName = keyof ReadOperations
export type ReadCommand = {
  [Name in ReadName]: readonly [Name, ...Parameters<ReadOperations[Name]>]
}[ReadName]

/** What the reading thread is started with. */
export interface ReaderParts {
  readonly file: string
}
