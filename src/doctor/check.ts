import type { Environment } from '../config.ts'
import type { Clock } from '../kernel/clock.ts'

/** The environment that the doctor is to look at, and how long a check may take. */
export interface DoctorContext {
  readonly environment: Environment
  readonly workingDir: string
  readonly clock: Clock
  readonly offline: boolean
  readonly deadlines: Deadlines
  /** The progress of the integrity check, the one check that may take long. */
  readonly progress: { show(done: number, total: number): void; end(): void }
}

export interface Deadlines {
  readonly checkMs: number
  /** The deadline of the integrity check, the one check whose time grows with the database. */
  readonly integrityMs: number
}

/**
 * A check: its name, its state, what was found and, where the operator has to act, what to do. A `skipped` check could not
 * or should not be made this time: that is neither good nor bad.
 */
export type Check = { readonly name: CheckName; readonly found: string } & (
  | { readonly state: 'ok' | 'skipped'; readonly todo: null }
  | { readonly state: 'warning' | 'problem'; readonly todo: string }
)

/** The names of the checks, in the order in which the doctor shows them. Scripts read these names. */
export type CheckName =
  | 'runtime'
  | 'open_files'
  | 'configuration'
  | 'certificate'
  | 'surfaces'
  | 'data_directory'
  | 'pepper'
  | 'admin_key'
  | 'refused_settlements'
  | 'disk_space'
  | 'disk_speed'
  | 'database'
  | 'serving'
  | 'integrity'
  | 'database_writes'
  | 'durability'
  | 'round_trip'
  | 'database_clock'
  | 'pooler'
  | 'nodes'
  | 'call_months'
  | 'upstream_messages'
  | 'upstream_chat'
  | 'clock'
  | 'prices'

/** The verdicts of one check: `const { ok, problem } = verdicts('disk_space')`. */
export function verdicts(name: CheckName) {
  return {
    ok: (found: string): Check => ({ name, state: 'ok', found, todo: null }),
    skipped: (found: string): Check => ({ name, state: 'skipped', found, todo: null }),
    warning: (found: string, todo: string): Check => ({ name, state: 'warning', found, todo }),
    problem: (found: string, todo: string): Check => ({ name, state: 'problem', found, todo }),
  }
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const

export function inBytes(bytes: number): string {
  let amount = bytes
  let at = 0
  while (amount >= 1_000 && at < UNITS.length - 1) {
    amount /= 1_000
    at += 1
  }
  return `${at === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[at]}`
}

export function inMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

export function inTime(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
