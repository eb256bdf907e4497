import { KEY_LIMITS } from '../../keys/key-store.ts'
import { CALL_COLUMNS, type ColumnKind, TOKEN_COLUMNS, UNSHOWN_COLUMNS } from '../../ledger/call-columns.ts'
import { lastUsedInSqlite } from '../operations/keys.ts'

/**
 * The tables that the two stores have in common. The columns are those of PostgreSQL; where SQLite has none of the name,
 * `from` is the expression that is read instead.
 */

/** How a value of SQLite is written for PostgreSQL. `upper` is the text as our own runtime puts it into capitals. */
export type MovedKind = 'text' | 'upper' | 'integer' | 'flag' | 'bytes' | 'json'

export interface MovedColumn {
  readonly name: string
  readonly kind: MovedKind
  readonly from: string
}

export interface MovedTable {
  readonly name: string
  /** For people, in the plural. */
  readonly noun: string
  readonly columns: readonly MovedColumn[]
  /** The order in which its rows are read, where that matters. */
  readonly orderBy: string | null
  /** The table of SQLite that has the rows. */
  readonly source: string
  /** The condition of the rows that are moved. */
  readonly where: string
}

type Columns = Readonly<Record<string, MovedKind>>

function table(
  name: string,
  noun: string,
  columns: Columns,
  more: Partial<Pick<MovedTable, 'source' | 'where' | 'orderBy'>> & {
    readonly from?: Readonly<Record<string, string>>
  } = {},
): MovedTable {
  const { from = {}, source = name, where = 'true', orderBy = null } = more
  return {
    ...{ name, noun, source, where, orderBy },
    columns: Object.entries(columns).map(([column, kind]) => ({
      name: column,
      kind,
      from: from[column] ?? column,
    })),
  }
}

const text = 'text'
const integer = 'integer'
const flag = 'flag'
const bytes = 'bytes'
const json = 'json'

/** How the limits of keys are moved. */
const LIMIT_AS = { 'nanos?': integer, 'count?': integer, 'names?': json, flag } as const

/** Settings about a move, which are not moved themselves. */
export const STORE_MOVE = 'store_move'
export const MOVED_TO = 'moved_to'

/** The node of calls from before the move, in PostgreSQL. Calls that are open are deferred, and those belong to no node. */
const FORMER_NODE = "iif(state = 'in_flight', '', 'sqlite')"

const MOVED_AS: Readonly<Record<ColumnKind, MovedKind>> = {
  ...{ text, 'text?': text, count: integer, 'count?': integer, flag, nanos: integer, 'nanos?': integer },
}

const CALL: Columns = {
  node_id: text,
  ...Object.fromEntries(Object.values(CALL_COLUMNS).map(({ column, kind }) => [column, MOVED_AS[kind]])),
  ...Object.fromEntries(Object.values(TOKEN_COLUMNS).map((column) => [column, integer])),
  ...Object.fromEntries(Object.entries(UNSHOWN_COLUMNS).map(([column, kind]) => [column, MOVED_AS[kind]])),
}

/** Tables in the order in which they are moved: a table that others refer to comes first. */
export const MOVED_TABLES: readonly MovedTable[] = [
  table('account', 'accounts', {
    ...{ id: text, created_at_ms: integer, credited_nanos: integer, charged_nanos: integer },
    ...{ held_nanos: integer, credit_enforced: flag },
  }),
  table('price_version', 'price versions', { id: text, json: text }),
  // Keys in the order in which they were made: a key refers to the key that it was rotated from, and clocks may step back.
  table(
    'api_key',
    'keys',
    {
      ...{ id: text, account_id: text, name: text, name_upper: 'upper', digest: bytes, prefix: text },
      ...{ last4: text, created_at_ms: integer, revoked_at_ms: integer, last_used_at_ms: integer },
      ...{ rotated_from: text },
      ...Object.fromEntries(KEY_LIMITS.map(({ column, kind }) => [column, LIMIT_AS[kind]])),
    },
    { orderBy: 'rowid', from: { name_upper: 'name', last_used_at_ms: lastUsedInSqlite('api_key') } },
  ),
  table('admin_key', 'admin keys', {
    ...{ id: text, account_id: text, name: text, digest: bytes, prefix: text, last4: text },
    ...{ created_at_ms: integer, revoked_at_ms: integer, bootstrap: flag },
  }),
  table('key_month', 'key months', {
    ...{ key_id: text, month: text, spent_nanos: integer, held_nanos: integer, lost_nanos: integer },
    ...{ has_floors: flag },
  }),
  table('hold_floor', 'learned holds', {
    ...{ key_id: text, month: text, endpoint: text, model: text, nanos: integer, list_nanos: integer },
  }),
  table('rollup', 'daily rollups', {
    ...{ account_id: text, day: text, model: text, key_id: text, requests: integer },
    ...{ input_tokens: integer, output_tokens: integer, cache_read_tokens: integer },
    ...{ cache_write_tokens: integer, cost_nanos: integer, list_nanos: integer, credited_nanos: integer },
    ...{ unpriced_requests: integer, estimated_requests: integer },
  }),
  table('credit', 'credits', {
    ...{ id: text, account_id: text, kind: text, amount_nanos: integer, reason: text, call_id: text },
    ...{ once: text, at_ms: integer },
  }),
  table('idempotency', 'idempotency names', {
    ...{ account_id: text, name: text, fingerprint: bytes, subject: text, at_ms: integer },
  }),
  table('batch_file', 'batch files', {
    ...{ account_id: text, key_id: text, file_id: text, models: json, bound: text, at_ms: integer },
  }),
  table('call', 'calls', CALL, { from: { node_id: FORMER_NODE } }),
  table('deferred_object', 'objects of deferred calls', {
    ...{ surface: text, object_id: text, call_id: text, month: text, kind: text, path: text },
    ...{ polls: integer, due_at_ms: integer },
  }),
  table('refused_call', 'refused calls', {
    ...{ id: text, account_id: text, key_id: text, started_at_ms: integer, ended_at_ms: integer },
    ...{ method: text, path: text, surface: text, model_asked: text, status: integer, code: text },
    ...{ client_ip: text, user_agent: text, socket_id: text },
  }),
  table(
    'call_body',
    'logged bodies',
    {
      ...{ call_id: text, at_ms: integer, request: bytes, request_type: text, request_bytes: integer },
      ...{ request_truncated: flag, response: bytes, response_type: text, response_bytes: integer },
      ...{ response_truncated: flag },
    },
    { source: 'bodies.call_body' },
  ),
  table('webhook', 'webhooks', {
    ...{
      id: text,
      account_id: text,
      url: text,
      events: json,
      description: text,
      format: text,
      enabled: flag,
    },
    ...{ disabled_reason: text, created_at_ms: integer, since_ms: integer, failing_since_ms: integer },
    ...{ last_delivery_at_ms: integer, last_status: integer, secret: bytes, former_secret: bytes },
    ...{ former_until_ms: integer, older_secret: bytes, older_until_ms: integer },
  }),
  // PostgreSQL numbers the events of the outbox anew, in the same order.
  table(
    'webhook_outbox',
    'events to be told',
    { account_id: text, type: text, key_id: text, at_ms: integer, facts: json },
    { orderBy: 'sequence' },
  ),
  table('webhook_event', 'webhook events', {
    ...{ id: text, account_id: text, type: text, payload: text, created_at_ms: integer },
  }),
  table('webhook_delivery', 'webhook deliveries', {
    ...{ id: text, webhook_id: text, event_id: text, event_type: text, status: text, attempts: integer },
    ...{ response_status: integer, error: text, last_attempt_at_ms: integer, next_attempt_at_ms: integer },
    ...{ created_at_ms: integer },
  }),
  table('webhook_mark', 'marks of webhook events', { name: text, until_ms: integer }),
  table('setting', 'settings', { name: text, value: text }, { where: `name <> '${MOVED_TO}'` }),
]
