import type { Bound } from './bound.ts'

/**
 * Whose clock says what time it is when a key is looked at. In production it is the database's, of which there is one:
 * nodes whose clocks differ agree on which keys are in force. Tests move the caller's.
 */
export type StoreClock = 'database' | 'caller'

/** The present instant, as an expression. The database's is read where the expression stands: after a lock, say. */
export function nowSql(clock: StoreClock, bound: Bound, atMs: number): string {
  return clock === 'database' ? 'now_ms()' : bound.integer(atMs)
}
