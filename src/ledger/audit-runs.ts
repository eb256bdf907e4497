import type { AuditReport } from './audit.ts'

/** Audits of an installation: one at a time, whichever node runs it, and every node can tell how it goes. */

export interface AuditRun {
  readonly id: string
  /** The node that runs it. */
  readonly node: string
  readonly state: 'running' | 'done' | 'failed'
  readonly startedAtMs: number
  readonly endedAtMs: number | null
  readonly done: number
  readonly total: number
  /** What came of it, as JSON: an audit's report, or the reason why there is none. */
  readonly result: string | null
}

/** What the result of a run is as JSON. */
export type AuditResult = AuditReport | { readonly error: string }

/** Where the books are: in a file of SQLite, or in a database. */
export interface BooksToAudit {
  readonly file: string
  readonly databaseUrl: string | null
}

/** What the thread of an audit tells. */
export type AuditMessage =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number }
  | { readonly kind: 'report'; readonly report: AuditReport }

export interface AuditRunStore {
  /** False: another one is running, and was heard of within `silentMs`. */
  beginAudit(run: Pick<AuditRun, 'id' | 'node'>, atMs: number, silentMs: number): Promise<boolean>
  /** Tells how far it is. Nothing changes once it has ended. */
  advanceAudit(id: string, done: number, total: number, atMs: number): Promise<void>
  endAudit(id: string, state: 'done' | 'failed', result: string, atMs: number): Promise<void>
  /** The last one that was begun; null if there was none. */
  readAudit(): Promise<AuditRun | null>
}
