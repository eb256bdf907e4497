import type { AuditReport } from './audit.ts'

/** Audits of an installation: one at a time, whichever node runs it, and every node can tell how it goes. */

export interface AuditRun {
  readonly id: string
  /** The node that runs the audit. */
  readonly node: string
  readonly state: 'running' | 'done' | 'failed'
  readonly startedAtMs: number
  readonly endedAtMs: number | null
  readonly done: number
  readonly total: number
  /** The outcome as JSON: an audit's report, or the reason why there is none. */
  readonly result: string | null
}

/** The result of a run before it is written as JSON. */
export type AuditResult = AuditReport | { readonly error: string }

/** The place of the books: a file of SQLite, or a database. */
export interface BooksToAudit {
  readonly file: string
  readonly databaseUrl: string | null
}

/** The messages that the thread of an audit sends. */
export type AuditMessage =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number }
  | { readonly kind: 'report'; readonly report: AuditReport }

export interface AuditRunStore {
  /** False: another audit is running, and has told its progress within `silentMs`. */
  beginAudit(run: Pick<AuditRun, 'id' | 'node'>, atMs: number, silentMs: number): Promise<boolean>
  /** Records the progress of an audit. Nothing changes once the audit has ended. */
  advanceAudit(id: string, done: number, total: number, atMs: number): Promise<void>
  endAudit(id: string, state: 'done' | 'failed', result: string, atMs: number): Promise<void>
  /** The audit that was begun last; null if there was none. */
  readAudit(): Promise<AuditRun | null>
}
