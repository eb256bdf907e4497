import type { Nanos } from '../kernel/money.ts'
import type { CallState, Surface } from '../kernel/vocabulary.ts'

/**
 * The columns of a call, each written once. The types of an opening, a closing and a record follow from this list, and so do
 * thread messages, the check of a spooled closing, and the statements. CONTRIBUTING.md shows what one more column takes.
 */

/** The kind of value in a column; with a question mark it may be null. A `count` is a number, `nanos` are bigint. */
type ColumnKind = 'text' | 'text?' | 'count' | 'count?' | 'flag' | 'nanos' | 'nanos?'

interface CallColumn {
  readonly column: string
  readonly kind: ColumnKind
  /** The command that brings the value; `store`: the store works it out. */
  readonly from: 'opening' | 'closing' | 'store'
  /** A late column is null in the record of a call that is in flight or was never sent. */
  readonly late?: boolean
}

/** The columns by their names in a record, and in the command that brings them. */
export const CALL_COLUMNS = {
  requestId: { column: 'id', kind: 'text', from: 'opening' },
  accountId: { column: 'account_id', kind: 'text', from: 'store' },
  keyId: { column: 'key_id', kind: 'text', from: 'store' },
  state: { column: 'state', kind: 'text', from: 'store' },
  objectId: { column: 'object_id', kind: 'text?', from: 'store' },
  /** The call that created the batch; this call is the part of one model. */
  parentId: { column: 'parent_id', kind: 'text?', from: 'store' },
  /** For a call that created a batch: the number of its parts and their total cost. */
  children: { column: 'children', kind: 'count?', from: 'store' },
  childrenNanos: { column: 'children_nanos', kind: 'nanos?', from: 'store' },
  /** The request id of the handshake, in the record of a WebSocket's turn; the handshake's record has its own id here. */
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
  /** The usage that was rated, as JSON, or null where there was none. */
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
  /** How the call will be rated, apart from its usage; stored so that any bill can be derived again. */
  rating: { column: 'rating', kind: 'text', from: 'opening' },
  upstreamRequestId: { column: 'upstream_request_id', kind: 'text?', from: 'closing' },
  clientIp: { column: 'client_ip', kind: 'text', from: 'opening' },
  userAgent: { column: 'user_agent', kind: 'text?', from: 'opening' },
  bytesIn: { column: 'bytes_in', kind: 'count', from: 'closing' },
  bytesOut: { column: 'bytes_out', kind: 'count', from: 'closing' },
  credited: { column: 'credited', kind: 'flag', from: 'store' },
} as const satisfies Readonly<Record<string, CallColumn>>

/** The tokens of a closing and a record are one member, and a column each. */
export const TOKEN_COLUMNS = {
  input: 'input_tokens',
  output: 'output_tokens',
  cacheRead: 'cache_read_tokens',
  cacheWrite: 'cache_write_tokens',
} as const

/** The four counts that usage reports show, over all units of their kind. */
export type TokenCounts = Readonly<Record<keyof typeof TOKEN_COLUMNS, number>>

type Columns = typeof CALL_COLUMNS
type Name = keyof Columns

interface Words {
  readonly surface: Surface
  /** In the tables a deferred call is in flight and has an object. */
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

/** A column, and how its value is read from the command that brings it. */
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

/** Amounts are text in JSON: as numbers they would pass through doubles. */
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
