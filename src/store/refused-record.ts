import type { CallRecord } from '../ledger/call.ts'
import { unsentCall } from '../ledger/unsent-call.ts'

/** A row of `refused_call`, in which the two stores differ by no more than how they tell a number. */
export function refusedRecord(row: Readonly<Record<string, unknown>>): CallRecord {
  const text = (column: string) => String(row[column])
  const textOrNull = (column: string) => (row[column] === null ? null : text(column))
  const startedAtMs = Number(row['started_at_ms'])
  const endedAtMs = Number(row['ended_at_ms'])
  return unsentCall({
    requestId: text('id'),
    accountId: text('account_id'),
    keyId: text('key_id'),
    state: 'refused',
    startedAtMs,
    endedAtMs,
    method: text('method'),
    path: text('path'),
    surface: text('surface') as CallRecord['surface'],
    modelAsked: textOrNull('model_asked'),
    status: Number(row['status']),
    costNanos: 0n,
    listNanos: 0n,
    overheadMs: endedAtMs - startedAtMs,
    clientIp: text('client_ip'),
    userAgent: textOrNull('user_agent'),
    code: text('code'),
  })
}
