import { createHash } from 'node:crypto'
import type { z } from 'zod'
import type { Exchange, StreamedReply, WholeReply } from '../http/exchange.ts'
import type { Listeners } from '../http/outgoing-reply.ts'
import { type RawHeaders, tokensOf } from '../http/raw-headers.ts'
import type { Clock } from '../kernel/clock.ts'
import { type ErrorCode, type Refusal, refuse } from '../kernel/errors.ts'
import type { Idempotency } from '../kernel/idempotency.ts'
import type { IdSource } from '../kernel/ids.ts'
import type { Caller } from '../keys/credential.ts'
import type { DigestKey } from '../keys/key-digest.ts'
import type { KeyStore, SessionStore } from '../keys/key-store.ts'
import type { SecretSealer } from '../keys/sealed-secret.ts'
import type { LedgerStore } from '../ledger/ledger-store.ts'
import type { RequestLogStore, SettlementWatch } from '../ledger/request-log.ts'
import type { RefusedCalls, WaitingCalls } from '../ledger/unsent-calls.ts'
import type { OverviewStore, UsageStore } from '../ledger/usage-report.ts'
import type { PriceBook } from '../pricing/price-book.ts'
import type { EndpointRules } from '../webhooks/endpoint-address.ts'
import type { WebhookStore } from '../webhooks/webhook-store.ts'

/** The parts that the endpoints of the service itself work with. */
export interface Management {
  readonly clock: Clock
  readonly nextUlid: IdSource
  readonly digestKey: DigestKey
  readonly servicePrefix: string
  readonly store: KeyStore &
    SessionStore &
    LedgerStore &
    UsageStore &
    RequestLogStore &
    OverviewStore &
    WebhookStore
  readonly settlements: SettlementWatch
  /** The calls that wait in this process. */
  readonly waitingCalls: Pick<WaitingCalls, 'find' | 'list' | 'countOf'>
  /** Records of refused calls that are on their way to the store. */
  readonly refusedCalls: Pick<RefusedCalls, 'written'>
  /** The process that serves. Null: this process is a command, and serves nothing. */
  readonly node: ServingNode | null
  /** Everything that /metrics shows, made for this answer. */
  scrapeMetrics(): Promise<{ readonly contentType: string; readonly text: string }>
  /** A limit was changed or money was added: calls that wait for room are to be decided again. */
  limitsMoved(): void
  readonly webhooks: {
    /** The sealer of the secrets that messages are signed with. */
    readonly sealer: SecretSealer
    readonly rules: EndpointRules
    /** A command was carried out, and there may be an event to tell. */
    wake(): void
  }
}

/** The part of an exchange that an endpoint may see. A command on the host reaches an endpoint without a connection. */
export interface OwnExchange extends Pick<Exchange, 'headers' | 'names'> {
  /** The client speaks TLS, with us or with a proxy that we believe. */
  readonly isSecure: boolean
  readonly res: {
    /** The client has left. */
    readonly destroyed: boolean
    readonly whenClosed: Pick<Listeners, 'add' | 'remove'>
  }
}

/** A session that the request came with. */
export interface Session {
  /** The digest by which the store knows the session. */
  readonly digest: Buffer
  readonly csrfToken: string
  readonly expiresAtMs: number
}

export interface OwnRequest<Query = unknown, Body = unknown> {
  readonly exchange: OwnExchange
  readonly caller: Caller
  /** The session of the caller; null where the request came with a key. */
  readonly session: Session | null
  /** The values of the template's `{…}` segments, in order. */
  readonly params: readonly string[]
  /** Query and body are checked against the schemas of the route before it sees them. */
  readonly query: Query
  readonly body: Body
  /** The idempotency of a request with an `Idempotency-Key`, where the route is repeatable; else null. */
  readonly idempotency: Idempotency | null
}

export interface Refused {
  readonly kind: 'refused'
  readonly refusal: Refusal
}

export type OwnReply =
  | { readonly kind: 'reply'; readonly reply: WholeReply }
  /** For an answer that may be too large to be held as a whole. */
  | { readonly kind: 'stream'; readonly reply: StreamedReply }
  | Refused

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export interface RouteParts<Query, Body> {
  readonly method: Method
  readonly template: string
  /**
   * The keys that may call the route: `any_key` are API keys and admin keys. With `sign_in` the admin key is in the body, and
   * no other credential is looked at.
   */
  readonly access: 'admin' | 'any_key' | 'sign_in'
  /** For the document at /gateway/openapi.json: a name for generated clients, a line, and more where it helps. */
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  /** Parameters that are not in the schema are refused; null takes none. */
  readonly query: z.ZodType<Query> | null
  /** Null: a body that comes is ignored. */
  readonly body: z.ZodType<Body> | null
  /** Whether an `Idempotency-Key` names the command. Where it does not, the header is not looked at. */
  readonly repeatable: boolean
  readonly success: {
    readonly status: 200 | 201 | 202 | 204
    /** The schema of the answer as JSON; null where the answer has no such form, or no body. */
    readonly schema: z.ZodType | null
    /** Other media types that the answer can be asked for in, each with its description. */
    readonly alsoAs?: Readonly<Record<string, string>>
  }
  /** The errors of this route besides those of every route of its kind. */
  readonly errors: readonly ErrorCode[]
  handle(request: OwnRequest<Query, Body>, management: Management): Promise<OwnReply>
}

/** One endpoint, in the file of its resource. */
export type Route = RouteParts<unknown, unknown>

type Defaulted = 'access' | 'query' | 'body' | 'repeatable' | 'errors'
type Definition<Query, Body> = Omit<RouteParts<Query, Body>, Defaulted | 'method' | 'template'> &
  Partial<Pick<RouteParts<Query, Body>, Defaulted>> & {
    /** Method and template of the path. */
    readonly endpoint: `${Method} /${string}`
  }

/**
 * In its file a route knows the types of its query and body; outside, the schemas vouch for them. By default a route is
 * for admin keys, takes no query and no body, and is not repeatable.
 */
export function defineRoute<Query, Body>({ endpoint, ...parts }: Definition<Query, Body>): Route {
  const [method, template] = endpoint.split(' ')
  const defaults = { access: 'admin', query: null, body: null, repeatable: false, errors: [] }
  return { ...defaults, method, template, ...parts } as unknown as Route
}

/** The header of answers that no cache between us and the client may keep. */
export const UNSTORED = ['cache-control', 'no-store'] as const

export function replyJson(status: number, value: unknown, headers: readonly string[] = UNSTORED): OwnReply {
  return replyWhole(status, 'application/json', JSON.stringify(value), headers)
}

/** `replyJson` for answers that are polled: a client that has this answer already gets 304 without a body. */
export function replyTagged(headers: RawHeaders, value: unknown): OwnReply {
  const text = JSON.stringify(value)
  const etag = entityTag(text)
  const lines = [...UNSTORED, 'etag', etag]
  if (!hasTagged(headers, etag)) return replyWhole(200, 'application/json', text, lines)
  return { kind: 'reply', reply: { status: 304, headers: lines, body: Buffer.alloc(0) } }
}

export function replyWhole(
  status: number,
  contentType: string,
  text: string,
  headers: readonly string[],
): OwnReply & { readonly kind: 'reply' } {
  const body = Buffer.from(text)
  const described = ['content-type', contentType, 'content-length', String(body.length), ...headers]
  return { kind: 'reply', reply: { status, headers: described, body } }
}

/** The answer to a command that was carried out, now or by an earlier request with the same `Idempotency-Key`. */
export function replyOnce(
  result: { readonly kind: 'done' | 'repeated' },
  value: unknown,
  status = 201,
): OwnReply {
  const headers = result.kind === 'repeated' ? [...UNSTORED, 'idempotent-replayed', 'true'] : UNSTORED
  return replyJson(status, value, headers)
}

export function replyEmpty(): OwnReply {
  return { kind: 'reply', reply: { status: 204, headers: UNSTORED, body: Buffer.alloc(0) } }
}

export function refused(code: ErrorCode, message: string, param?: string): Refused {
  return { kind: 'refused', refusal: refuse(code, message, param === undefined ? {} : { param }) }
}

export const ONCE_HEADER = 'Idempotency-Key'

export function refusedOtherCommand(): Refused {
  return refused('conflict', `This ${ONCE_HEADER} was used for another request.`, ONCE_HEADER)
}

/** A strong entity tag of this content. The suffix `behind` tells its codings apart. */
export function entityTag(content: string | Uint8Array, behind = ''): string {
  return `"${createHash('sha256').update(content).digest('hex').slice(0, 32)}${behind}"`
}

/** Whether the client has the content of this tag already. Our tags have no capital letters. */
export function hasTagged(headers: RawHeaders, tag: string): boolean {
  const known = tokensOf(headers, 'if-none-match').map((token) => token.replace(/^w\//, ''))
  return known.includes('*') || known.includes(tag)
}

/** The process that serves, as its dashboard shows it. */
export interface ServingNode {
  readonly storeKind: 'sqlite' | 'postgres'
  callsInFlight(): number
  callsWaiting(): number
  /** The current prices, and the file of the operator that changed some of them. */
  prices(): { readonly book: PriceBook; readonly shipped: PriceBook; readonly overlayFile: string | null }
}
