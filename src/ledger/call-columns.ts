import type { Nanos } from '../kernel/money.ts'
import type { CallState, Surface } from '../kernel/vocabulary.ts'

/** The columns of the token counts, which are one member of a closing or record. */
export const TOKEN_COLUMNS = {
  input: 'input_tokens',
  output: 'output_tokens',
  cacheRead: 'cache_read_tokens',
  cacheWrite: 'cache_write_tokens',
} as const

export type TokenCounts = Readonly<Record<keyof typeof TOKEN_COLUMNS, number>>

const NO_TOKENS: TokenCounts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

type Text = string | null
type Count = number | null
type Amount = Nanos | null

/** Each member is a column; types, thread messages and statements derive from this list. See CONTRIBUTING.md. */
export const NOTHING_RECORDED = {
  requestId: '',
  accountId: '',
  keyId: '',
  /** Whose key it was; null: a service's. */
  personId: null as Text,
  state: 'in_flight' as CallState,
  /** The object that states the cost, or that a DELETE names. */
  objectId: null as Text,
  /** For the part of a batch that one model served: the call that created the batch. */
  parentId: null as Text,
  /** For a call that created a batch: the number of its parts and their total cost. */
  children: null as Count,
  childrenNanos: null as Amount,
  /** Request id of the WebSocket handshake, on the handshake's own record and on its turns. */
  socketId: null as Text,
  /** The client's own name of its session. It is only recorded. */
  sessionId: null as Text,
  startedAtMs: 0,
  endedAtMs: null as Count,
  method: '',
  path: '',
  surface: 'messages' as Surface,
  modelAsked: null as Text,
  modelServed: null as Text,
  status: null as Count,
  stopReason: null as Text,
  streamed: false as boolean,
  estimated: false as boolean,
  unpriced: false as boolean,
  overrun: false as boolean,
  pricedAsRequested: false as boolean,
  /** As JSON. */
  usage: null as Text,
  costNanos: null as Amount,
  listNanos: null as Amount,
  lostListNanos: 0n as Nanos,
  holdNanos: 0n as Nanos,
  holdListNanos: 0n as Nanos,
  balanceNanos: null as Amount,
  upstreamMs: null as Count,
  overheadMs: null as Count,
  priceVersion: null as Text,
  /** The inputs of rating other than usage, stored so that any bill can be recomputed. */
  rating: '{}',
  upstreamRequestId: null as Text,
  clientIp: '',
  userAgent: null as Text,
  bytesIn: 0,
  bytesOut: 0,
  credited: false as boolean,
  tokens: NO_TOKENS,
  code: null as Text,
}

/** A call as it is stored. Figures are null while it is in flight. */
export type CallRecord = Readonly<typeof NOTHING_RECORDED>

/** The members of a record that an opening sets, except key and hold. */
export const OPENING_NAMES = [
  ...([
    'requestId',
    'socketId',
    'sessionId',
    'method',
    'path',
    'surface',
    'modelAsked',
    'priceVersion',
    'rating',
    'objectId',
  ] as const),
  ...(['clientIp', 'userAgent'] as const),
]

/** Amounts are text in JSON: numbers would become doubles. */
export const CLOSING_AMOUNTS = ['costNanos', 'listNanos'] as const

/** The members of a record that a closing sets, except tokens. */
export const CLOSING_NAMES = [
  ...(['modelServed', 'status', 'stopReason', 'streamed', 'estimated', 'unpriced'] as const),
  ...(['pricedAsRequested', 'usage', ...CLOSING_AMOUNTS, 'upstreamMs', 'overheadMs'] as const),
  ...(['upstreamRequestId', 'bytesIn', 'bytesOut'] as const),
]

/** Members that are null in a record until the call ends, but never in the command that sets them. */
type Known<Name extends keyof CallRecord> = Name extends
  | 'costNanos'
  | 'listNanos'
  | 'overheadMs'
  | 'priceVersion'
  ? NonNullable<CallRecord[Name]>
  : CallRecord[Name]

export type OpeningColumns = { readonly [Name in (typeof OPENING_NAMES)[number]]: Known<Name> }
export type ClosingColumns = { readonly [Name in (typeof CLOSING_NAMES)[number]]: Known<Name> }

/** The column of a member: its name in snake case, except for the id. */
export function columnOf(name: string): string {
  return name === 'requestId' ? 'id' : name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

export const NOTHING_USED = {
  ...Object.fromEntries(CLOSING_NAMES.map((name) => [name, NOTHING_RECORDED[name]])),
  ...{ costNanos: 0n, listNanos: 0n, overheadMs: 0 },
  tokens: NO_TOKENS,
} as ClosingColumns & { readonly tokens: TokenCounts }
