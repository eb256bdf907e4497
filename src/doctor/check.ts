import type { Config } from '../config/read-config.ts'
import type { Snapshot } from '../store/operations/operation.ts'

/** The finding of a check and, for a warning or a problem, the fix. */
export interface Result {
  readonly state: 'ok' | 'warning' | 'problem' | 'skipped'
  readonly found: string
  readonly todo: string | null
}

/** Scripts rely on the name of the check. */
export interface Finding extends Result {
  readonly name: string
}

export interface CheckContext {
  readonly config: Config
  readonly nowMs: number
  /** A snapshot of the database; null if there is none yet. Rejects if it cannot be opened. */
  readonly snapshot: Promise<Snapshot | null>
}

export type Check = (context: CheckContext) => Promise<Result | readonly Result[]>

export const ok = (found: string): Result => ({ state: 'ok', found, todo: null })
export const skipped = (found: string): Result => ({ state: 'skipped', found, todo: null })
export const warning = (found: string, todo: string): Result => ({ state: 'warning', found, todo })
export const problem = (found: string, todo: string | null): Result => ({ state: 'problem', found, todo })
