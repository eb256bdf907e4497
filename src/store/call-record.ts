import { type CallRecord, HOLD_METHOD, unsentCall } from '../ledger/call.ts'
import { CALL_COLUMNS, type ColumnKind, NOTHING_RECORDED, TOKEN_COLUMNS } from '../ledger/call-columns.ts'

/** A row of either store: integers are bigint or numbers, and flags are booleans or 0 and 1. */
type CallRow = Readonly<Record<string, unknown>>

const columns = Object.entries(CALL_COLUMNS)

/** A row of `call`. */
export function callRecord(row: CallRow): CallRecord {
  const members: Record<string, unknown> = { ...NOTHING_RECORDED }
  for (const [name, { column, kind }] of columns) members[name] = readValue(row[column], kind, column)
  if (members['state'] === 'in_flight' && members['objectId'] !== null) members['state'] = 'deferred'
  if (members['method'] === HOLD_METHOD) members['method'] = 'WS'
  const count = (name: keyof typeof TOKEN_COLUMNS) => Number(row[TOKEN_COLUMNS[name]])
  members['tokens'] = {
    ...{ input: count('input'), output: count('output') },
    ...{ cacheRead: count('cacheRead'), cacheWrite: count('cacheWrite') },
  }
  return members as unknown as CallRecord
}

function readValue(value: unknown, kind: ColumnKind, column: string): unknown {
  if (value === null) return null
  switch (kind) {
    case 'flag':
      return value === true || value === 1n
    case 'count':
    case 'count?':
      return Number(value)
    case 'nanos':
    case 'nanos?':
      if (typeof value !== 'bigint') throw new Error(`${column} is not an integer`)
      return value
    default:
      return String(value)
  }
}

/** A row of `refused_call`. */
export function refusedRecord(row: CallRow): CallRecord {
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
    socketId: textOrNull('socket_id'),
    code: text('code'),
  })
}
