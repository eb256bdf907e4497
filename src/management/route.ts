import type { z } from 'zod'
import type { Exchange, StreamedReply, WholeReply } from '../http/exchange.ts'
import type { Clock } from '../kernel/clock.ts'
import type { ErrorCode, Refusal } from '../kernel/errors.ts'
import type { IdSource } from '../kernel/ids.ts'
import type { Listeners } from '../kernel/listeners.ts'
import type { Once } from '../kernel/once.ts'
import type { Caller } from '../keys/identity.ts'
import type { DigestKey } from '../keys/key-digest.ts'
import type { KeyStore } from '../keys/key-store.ts'
import type { LedgerStore } from '../ledger/ledger-store.ts'
import type { RequestLogStore } from '../ledger/request-log.ts'
import type { SettlementWatch } from '../ledger/settlement-watch.ts'
import type { RefusedCalls, WaitingCalls } from '../ledger/unsent-calls.ts'
import type { UsageStore } from '../ledger/usage-report.ts'

/** What the endpoints of the service itself work with. */
export interface Management {
  readonly clock: Clock
  readonly nextUlid: IdSource
  readonly digestKey: DigestKey
  readonly servicePrefix: string
  readonly store: KeyStore & LedgerStore & UsageStore & RequestLogStore
  readonly settlements: SettlementWatch
  /** The calls that wait in this process. */
  readonly waitingCalls: Pick<WaitingCalls, 'find' | 'list' | 'countOf'>
  /** Records of refused calls that are on their way to the store. */
  readonly refusedCalls: Pick<RefusedCalls, 'written'>
  /** A limit was changed or money was added: calls that wait for room are to be decided again. */
  limitsMoved(): void
}

/** What an endpoint may know of how it was reached. A command on the host reaches it without a connection. */
export interface OwnExchange extends Pick<Exchange, 'headers' | 'names'> {
  readonly res: {
    /** Whoever asked has gone. */
    readonly destroyed: boolean
    readonly whenClosed: Pick<Listeners, 'add' | 'remove'>
  }
}

export interface OwnRequest<Query = unknown, Body = unknown> {
  readonly exchange: OwnExchange
  readonly caller: Caller
  /** The values of the template's `{…}` segments, in order. */
  readonly params: readonly string[]
  /** Checked against the schemas of the route before it sees them. */
  readonly query: Query
  readonly body: Body
  /** Of a request with an `Idempotency-Key`, where the route is repeatable. */
  readonly once: Once | null
}

export type OwnReply =
  | { readonly kind: 'reply'; readonly reply: WholeReply }
  /** For what may be too large to be held as a whole. */
  | { readonly kind: 'stream'; readonly reply: StreamedReply }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

export interface RouteParts<Query, Body> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly template: string
  /** Who may call it. What an API key may, an admin key may too. */
  readonly access: 'admin' | 'any_key'
  /** For the document at /gateway/openapi.json: a name for generated clients, a line, and more where it helps. */
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  /** Parameters that are not in the schema are refused; null takes none. */
  readonly query: z.ZodType<Query> | null
  /** Null: whatever body comes is ignored. */
  readonly body: z.ZodType<Body> | null
  /** Whether an `Idempotency-Key` names the command. Where it does not, the header is not looked at. */
  readonly repeatable: boolean
  readonly success: {
    readonly status: 200 | 201
    readonly schema: z.ZodType
    /** Other media types that the answer can be asked for in, each with what it is then. */
    readonly alsoAs?: Readonly<Record<string, string>>
  }
  /** What can go wrong here besides what can on every route. */
  readonly errors: readonly ErrorCode[]
  handle(request: OwnRequest<Query, Body>, management: Management): Promise<OwnReply>
}

/** One endpoint. Each has a file of its own. */
export type Route = RouteParts<unknown, unknown>

/** Inside its file a route knows the types of its query and body; outside, the schemas vouch for them. */
export function defineRoute<Query, Body>(parts: RouteParts<Query, Body>): Route {
  return parts as unknown as Route
}

export function replyJson(status: number, value: unknown, headers: readonly string[] = []): OwnReply {
  const body = Buffer.from(JSON.stringify(value))
  return {
    kind: 'reply',
    reply: {
      status,
      headers: ['content-type', 'application/json', 'content-length', String(body.length), ...headers],
      body,
    },
  }
}

export function replyRefused(refusal: Refusal): OwnReply {
  return { kind: 'refused', refusal }
}
