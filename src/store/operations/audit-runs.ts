import type { AuditRun } from '../../ledger/audit-runs.ts'
import { number, numberOrNull, type Row, text, textOrNull } from '../rows.ts'
import { atomic, type Operation } from './operation.ts'
import { now, onPostgres, sql } from './sql.ts'

/** The number of past runs that are kept. */
const KEPT_MAX = 20

export const beginAudit = atomic(function* (
  { id, node }: Pick<AuditRun, 'id' | 'node'>,
  atMs: number,
  silentMs: number,
): Operation<boolean> {
  yield onPostgres(sql`SELECT pg_advisory_xact_lock(hashtextextended('tollgate audit', 0))`)
  yield sql`
    UPDATE audit_run SET state = 'failed', ended_at_ms = seen_at_ms, result = '{"error":"its node was gone"}'
    WHERE state = 'running' AND seen_at_ms < (SELECT ${now(atMs)} - ${silentMs})`
  const [running] = yield sql`SELECT id FROM audit_run WHERE state = 'running'`
  if (running !== undefined) return false
  yield sql`
    INSERT INTO audit_run (id, node, state, started_at_ms, seen_at_ms, done, total)
    VALUES (${id}, ${node}, 'running', ${now(atMs)}, ${now(atMs)}, 0, 0)`
  yield sql`DELETE FROM audit_run WHERE id NOT IN (SELECT id FROM audit_run ORDER BY id DESC LIMIT ${KEPT_MAX})`
  return true
})

export function* advanceAudit(id: string, done: number, total: number, atMs: number): Operation<void> {
  yield sql`
    UPDATE audit_run SET done = ${done}, total = ${total}, seen_at_ms = ${now(atMs)}
    WHERE id = ${id} AND state = 'running'`
}

export function* endAudit(
  id: string,
  state: 'done' | 'failed',
  result: string,
  atMs: number,
): Operation<void> {
  yield sql`
    UPDATE audit_run SET state = ${state}, result = ${result}, ended_at_ms = ${now(atMs)}
    WHERE id = ${id} AND state = 'running'`
}

export function* readAudit(): Operation<AuditRun | null> {
  const [row] = yield sql`SELECT * FROM audit_run ORDER BY id DESC LIMIT 1`
  return row === undefined ? null : auditRun(row)
}

function auditRun(row: Row): AuditRun {
  return {
    id: text(row, 'id'),
    node: text(row, 'node'),
    state: text(row, 'state') as AuditRun['state'],
    startedAtMs: number(row, 'started_at_ms'),
    endedAtMs: numberOrNull(row, 'ended_at_ms'),
    done: number(row, 'done'),
    total: number(row, 'total'),
    result: textOrNull(row, 'result'),
  }
}
