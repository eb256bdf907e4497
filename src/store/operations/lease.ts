import { currentTime, type Operation } from './operation.ts'
import { sql } from './sql.ts'

/** How long a node may take for a portion of the work before another one takes over. */
const LEASE_MS = 60_000

const instant = (ms: number) => String(Math.trunc(ms)).padStart(13, '0')

/**
 * One node does the work with this name at a time: a setting has the end of the lease in 13 digits, a space,
 * and the node.
 */
export function* takeLease(name: string, node: string, atMs: number): Operation<boolean> {
  const nowMs = yield* currentTime(atMs)
  const taken = yield sql`
    INSERT INTO setting (name, value) VALUES (${name}, ${`${instant(nowMs + LEASE_MS)} ${node}`})
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    WHERE substr(setting.value, 15) = ${node}
      OR substr(setting.value, 1, 13) < ${instant(nowMs)}
    RETURNING name`
  return taken.length > 0
}
