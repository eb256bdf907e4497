import type { Config } from '../config.ts'
import type { Snapshot } from '../store/operations/operation.ts'

/** The names of the checks, in order. Scripts depend on them. */
export type CheckName =
  | 'configuration'
  | 'data_directory'
  | 'pepper'
  | 'store'
  | 'disk_space'
  | 'certificate'
  | 'upstream_keys'
  | 'prices'

/** The result of a check: what was found and, for a warning or a problem, what to do. */
export interface Finding {
  readonly name: CheckName
  readonly state: 'ok' | 'warning' | 'problem' | 'skipped'
  readonly found: string
  readonly todo: string | null
}

export interface CheckContext {
  readonly config: Config
  readonly nowMs: number
  /** A snapshot of the database; null if there is none yet. Rejects if it cannot be opened. */
  readonly snapshot: Promise<Snapshot | null>
}

export type Check = (context: CheckContext) => Promise<readonly Finding[]>

/** The results of one check: `const { ok, problem } = findings('disk_space')`. */
export function findings(name: CheckName) {
  return {
    ok: (found: string): Finding => ({ name, state: 'ok', found, todo: null }),
    skipped: (found: string): Finding => ({ name, state: 'skipped', found, todo: null }),
    warning: (found: string, todo: string): Finding => ({ name, state: 'warning', found, todo }),
    problem: (found: string, todo: string): Finding => ({ name, state: 'problem', found, todo }),
  }
}
