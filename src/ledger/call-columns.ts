import type { Nanos } from '../kernel/money.ts'
import type { CallState, Surface } from '../kernel/vocabulary.ts'

/**
 * The columns of a call. The types of openings, closings and records, the thread messages, the validation of spooled
 * closings and the statements are all derived from this list. CONTRIBUTING.md shows how to add a column.
 */

/** The kind of value; `?`: may be null. A `count` is a number, `nanos` a bigint. */
type ColumnKind = 'text' | 'text?' | 'count' | 'count?' | 'flag' | 'nanos' | 'nanos?'

interface CallColumn {
  readonly column: string
  readonly kind: ColumnKind
  /** The command that sets the value; `store`: the store computes it. */
  readonly from: 'opening' | 'closing' | 'store'
  /** A late column is null while a call is in flight, and if it was never sent. */
  readonly late?: boolean
}

/** The columns by their names in records and commands. */
export const CALL_COLUMNS = {
  requestId: { column: 'id', kind: 'text', from: 'opening' },
  accountId: { column: 'account_id', kind: 'text', from: 'store' },
  keyId: { column: 'key_id', kind: 'text', from: 'store' },
  state: { column: 'state', kind: 'text', from: 'store' },
  objectId: { column: 'object_id', kind: 'text?', from: 'store' },
  /** The call that created the batch, of which this record is one model's part. */
  parentId: { column: 'parent_id', kind: 'text?', from: 'store' },
  /** For a call that created a batch: the number of its parts and their total cost. */
  children: { column: 'children', kind: 'count?', from: 'store' },
  childrenNanos: { column: 'children_nanos', kind: 'nanos?', from: 'store' },
  /** Request id of the WebSocket handshake, on the handshake's own record and on its turns. */
  socketId: { column: 'socket_id', kind: 'text?', from: 'opening' },
  startedAtMs: { column: 'started_at_ms', kind: 'count', from: 'store' },
  endedAtMs: { column: 'ended_at_ms', kind: 'count?', from: 'store' },
  method: { column: 'method', kind: 'text', from: 'opening' },
  path: { column: 'path', kind: 'text', from: 'opening' },
  surface: { column: 'surface', kind: 'text', from: 'opening' },
  modelAsked: { column: 'model_asked', kind: 'text?', from: 'opening' },
  modelServed: { column: 'model_served', kind: 'text?', from: 'closing' },
  status: { column: 'status', kind: 'count?', from: 'closing' },
  stopReason: { column: 'stop_reason', kind: 'text?', from: 'closing' },
  streamed: { column: 'streamed', kind: 'flag', from: 'closing' },
  estimated: { column: 'estimated', kind: 'flag', from: 'closing' },
  unpriced: { column: 'unpriced', kind: 'flag', from: 'closing' },
  overrun: { column: 'overrun', kind: 'flag', from: 'store' },
  pricedAsRequested: { column: 'priced_as_requested', kind: 'flag', from: 'closing' },
  /** The rated usage, as JSON; null if there was none. */
  usage: { column: 'usage', kind: 'text?', from: 'closing' },
  costNanos: { column: 'cost_nanos', kind: 'nanos', from: 'closing', late: true },
  listNanos: { column: 'list_nanos', kind: 'nanos', from: 'closing', late: true },
  lostListNanos: { column: 'lost_list_nanos', kind: 'nanos', from: 'store' },
  holdNanos: { column: 'hold_nanos', kind: 'nanos', from: 'store' },
  holdListNanos: { column: 'hold_list_nanos', kind: 'nanos', from: 'store' },
  balanceNanos: { column: 'balance_nanos', kind: 'nanos?', from: 'store' },
  upstreamMs: { column: 'upstream_ms', kind: 'count?', from: 'closing' },
  overheadMs: { column: 'overhead_ms', kind: 'count', from: 'closing', late: true },
  priceVersion: { column: 'price_version', kind: 'text', from: 'opening', late: true },
  /** The inputs of rating other than usage, stored so that any bill can be recomputed. */
  rating: { column: 'rating', kind: 'text', from: 'opening' },
  upstreamRequestId: { column: 'upstream_request_id', kind: 'text?', from: 'closing' },
  clientIp: { column: 'client_ip', kind: 'text', from: 'opening' },
  userAgent: { column: 'user_agent', kind: 'text?', from: 'opening' },
  bytesIn: { column: 'bytes_in', kind: 'count', from: 'closing' },
  bytesOut: { column: 'bytes_out', kind: 'count', from: 'closing' },
  credited: { column: 'credited', kind: 'flag', from: 'store' },
} as const satisfies Readonly<Record<string, CallColumn>>

/** Tokens are one member of a closing or record, and one column each. */
export const TOKEN_COLUMNS = {
  input: 'input_tokens',
  output: 'output_tokens',
  cacheRead: 'cache_read_tokens',
  cacheWrite: 'cache_write_tokens',
} as const

/** The four token counts of usage reports, each summed over all units of its kind. */
export type TokenCounts = Readonly<Record<keyof typeof TOKEN_COLUMNS, number>>

type Columns = typeof CALL_COLUMNS
type Name = keyof Columns

interface Words {
  readonly surface: Surface
  /** In the database a deferred call is `in_flight` and has an object. */
  readonly state: CallState
}

interface Values {
  readonly text: string
  readonly count: number
  readonly flag: boolean
  readonly nanos: Nanos
}

type ValueOf<Kind extends ColumnKind> = Kind extends keyof Values
  ? Values[Kind]
  : Kind extends `${infer Base extends keyof Values}?`
    ? Values[Base] | null
    : never

type Value<Of extends Name> = Of extends keyof Words ? Words[Of] : ValueOf<Columns[Of]['kind']>

type NameFrom<From extends CallColumn['from']> = {
  [Of in Name]: Columns[Of]['from'] extends From ? Of : never
}[Name]

export type OpeningColumns = { readonly [Of in NameFrom<'opening'>]: Value<Of> }
export type ClosingColumns = { readonly [Of in NameFrom<'closing'>]: Value<Of> }
export type RecordColumns = {
  readonly [Of in Name]: Value<Of> | (Columns[Of] extends { late: true } ? null : never)
}

/** A column, and how to read its value from the command that sets it. */
interface Brought<Command> {
  readonly column: string
  of(command: Command): string | number | bigint | boolean | null
}

const entries = Object.entries(CALL_COLUMNS) as [Name, CallColumn][]

function namesFrom<From extends CallColumn['from']>(from: From): readonly NameFrom<From>[] {
  return entries.filter(([, column]) => column.from === from).map(([name]) => name as NameFrom<From>)
}

export const OPENING_NAMES = namesFrom('opening')
export const CLOSING_NAMES = namesFrom('closing')

/** Amounts are text in JSON: numbers would become doubles. */
export const CLOSING_AMOUNTS = CLOSING_NAMES.filter((name) => CALL_COLUMNS[name].kind.startsWith('nanos'))

type Opening = OpeningColumns & { readonly endpoint: string }

export const OPENING_COLUMNS: readonly Brought<Opening>[] = [
  ...OPENING_NAMES.map((name) => ({ ...CALL_COLUMNS[name], of: (opening: Opening) => opening[name] })),
  { column: 'endpoint', of: ({ endpoint }) => endpoint },
]

type Closing = ClosingColumns & { readonly tokens: TokenCounts }

export const CLOSING_COLUMNS: readonly Brought<Closing>[] = [
  ...CLOSING_NAMES.map((name) => ({ ...CALL_COLUMNS[name], of: (closing: Closing) => closing[name] })),
  ...(Object.keys(TOKEN_COLUMNS) as (keyof TokenCounts)[]).map((name) => ({
    column: TOKEN_COLUMNS[name],
    of: ({ tokens }: Closing) => tokens[name],
  })),
]

const EMPTY = { text: '', count: 0, flag: false, nanos: 0n } as const
const NO_TOKENS: TokenCounts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

function emptyOf({ kind, late }: CallColumn): unknown {
  return late || kind.endsWith('?') ? null : EMPTY[kind as keyof typeof EMPTY]
}

export const NOTHING_USED = {
  ...Object.fromEntries(CLOSING_NAMES.map((name) => [name, emptyOf({ ...CALL_COLUMNS[name], late: false })])),
  tokens: NO_TOKENS,
} as Closing

export const NOTHING_RECORDED = {
  ...Object.fromEntries(entries.map(([name, column]) => [name, emptyOf(column)])),
  rating: '{}',
  tokens: NO_TOKENS,
  code: null,
} as RecordColumns & { readonly tokens: TokenCounts; readonly code: null }
