import type { z } from 'zod'
import type { Written } from '../api/fields.ts'
import type { Exchange, StreamedReply, WholeReply } from '../http/exchange.ts'
import type { BodyTimes } from '../http/incoming-request.ts'
import type { Actor } from '../kernel/actor.ts'
import type { Clock } from '../kernel/clock.ts'
import { type ErrorCode, type Refusal, refuse } from '../kernel/errors.ts'
import type { Idempotency, IdempotentResult } from '../kernel/idempotency.ts'
import type { IdSource } from '../kernel/ids.ts'
import { limits } from '../kernel/limits.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { Caller } from '../keys/credential.ts'
import type { DigestKey, SecretSealer } from '../keys/secrets.ts'
import type { RefusedCalls, WaitingCalls } from '../ledger/unsent-calls.ts'
import type { PriceLayers } from '../pricing/build-book.ts'
import type { PriceBook } from '../pricing/price-book.ts'
import type { Store } from '../store/store.ts'
import type { EndpointRules } from '../webhooks/endpoint-address.ts'
import type { AccountRule, RequiredRole, Role } from './roles.ts'

export interface Management {
  readonly clock: Clock
  readonly nextUlid: IdSource
  readonly digestKey: DigestKey
  readonly servicePrefix: string
  readonly store: Store
  readonly bodyTimes: BodyTimes
  readonly metricsPublic: boolean
  /** Whether the client uses TLS, to the gateway or to a trusted proxy. */
  isSecure(exchange: Exchange): boolean
  readonly settlements: { wait(requestId: string, forMs: number): { done: Promise<void>; stop(): void } }
  readonly upstreamKeys: UpstreamKeys
  readonly waitingCalls: Pick<WaitingCalls, 'count' | 'find' | 'list' | 'countOf' | 'countOfAccount'>
  readonly refusedCalls: Pick<RefusedCalls, 'written'>
  readonly node: ServingNode
  /** Where people sign in. Null: no identity provider is configured. */
  readonly signInPath: string | null
  /** Where a person signs out at the identity provider too. Null: nowhere. */
  endSessionUrl(): Promise<string | null>
  scrapeMetrics(): Promise<{ readonly contentType: string; readonly text: string }>
  /** Decides waiting calls again. Called when a limit changed or credit was added. */
  recheckWaitingCalls(): void
  readonly webhooks: {
    readonly sealer: SecretSealer
    readonly rules: EndpointRules
    /** Wakes the delivery of events after a command. */
    wake(): void
  }
}

/** Encrypts the keys of accounts' own upstreams. Management cannot read them. */
export interface UpstreamKeys {
  /** The installation's URL of the surface, or the provider's own. */
  urlOf(surface: Surface): string
  /** Encrypts a key. Returns base64 text, bound to all arguments. */
  seal(key: string, accountId: string, surface: Surface, url: string): string
  /** Called when the upstreams of an account change: the simulator serves only while no account has its own. */
  changed(): Promise<void>
}

export interface ServingNode {
  readonly storeKind: 'sqlite' | 'postgres'
  readonly simulator: boolean
  /** Percentages of a cap at which an event is emitted. */
  readonly alertThresholds: readonly number[]
  callsInFlight(): number
  readonly prices: NodePrices
  /** The models that the installation's upstream lists. Null: not known. */
  offered(surface: Surface): ReadonlySet<string> | null
  /** The name of the overlay file; null without one. */
  readonly overlayFile: string | null
}

/** The prices of this node, and the way to change those of all nodes. */
export interface NodePrices {
  readonly book: PriceBook
  readonly layers: PriceLayers
  /** Reads the prices of the database again. */
  refresh(): Promise<void>
}

export interface OwnExchange extends Pick<Exchange, 'headers' | 'res' | 'clientIp'> {
  readonly isSecure: boolean
}

export interface OwnSession {
  readonly digest: Buffer
  readonly expiresAtMs: number
}

export interface OwnRequest<Query = unknown, Body = unknown> {
  readonly exchange: OwnExchange
  readonly caller: Caller
  readonly role: Role
  readonly actor: Actor
  readonly accountId: string
  /** False if an operator named no account, and `accountId` is the default. */
  readonly isAccountNamed: boolean
  /** The account whose records a list shows; null: all accounts. */
  readonly listedAccountId: string | null
  /** The person whose records alone the request may touch: a member's own. Null: no such wall. */
  readonly ownPersonId: string | null
  /** Null if the request came with a key. */
  readonly session: OwnSession | null
  /** The values of the template's `{…}` segments, in order. */
  readonly params: readonly string[]
  readonly id: string
  readonly atMs: number
  readonly query: Query
  readonly body: Body
  /** Set if the request has an `Idempotency-Key` and the route honours it. */
  readonly idempotency: Idempotency | null
}

export interface Refused {
  readonly kind: 'refused'
  readonly refusal: Refusal
}

export type OwnReply =
  | { readonly kind: 'reply'; readonly reply: WholeReply }
  /** For answers that may be too large for memory. */
  | { readonly kind: 'stream'; readonly reply: StreamedReply }
  | Refused

interface ApiObject {
  readonly object: string
}

/** The answer of a route. An API object is sent as JSON. Null: no record has the id in the path. */
export type Answer = OwnReply | ApiObject | null

export interface RouteParts<Query, Body> {
  readonly summary: string
  readonly description?: string
  /** The schema of the query; other parameters are refused. Null: no parameters are allowed. */
  readonly query: z.ZodType<Query> | null
  /** Null: a body is ignored. */
  readonly body: z.ZodType<Body> | null
  readonly repeatable: boolean
  readonly bodyBytesMax: number
  readonly status: 200 | 201 | 202 | 204
  readonly alsoAs: Readonly<Record<string, string>>
  /** Whether some callers get 204 instead. */
  readonly mayBeEmpty: boolean
  handle(request: OwnRequest<Query, Body>, management: Management): Promise<Answer>
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Route extends RouteParts<unknown, unknown> {
  readonly operationId: string
  readonly nouns: readonly string[]
  readonly isUnlimited: boolean
  readonly isForOwn: boolean
  readonly method: Method
  readonly template: string
  /** Null: the answer has no JSON body. */
  readonly answer: z.ZodType | null
  readonly requiredRole: RequiredRole
  readonly account: AccountRule
}

const DEFAULTS = {
  query: null,
  body: null,
  repeatable: false,
  bodyBytesMax: limits.ownBodyBytesMax,
  status: 200,
  alsoAs: {},
  mayBeEmpty: false,
} as const

type Definition<Query, Body> = Omit<RouteParts<Query, Body>, keyof typeof DEFAULTS> &
  Partial<RouteParts<Query, Body>>

/** Hides the types of query and body: the router handles all routes alike, after their schemas have checked both. */
export function defineRoute<Query, Body>(parts: Definition<Query, Body>): RouteParts<unknown, unknown> {
  return { ...DEFAULTS, ...parts }
}

export const NO_STORE = ['cache-control', 'no-store'] as const

export function replyJson(status: number, value: unknown, headers: readonly string[] = NO_STORE) {
  return replyWhole(status, 'application/json', JSON.stringify(value), headers)
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

export function replyFile(
  contentType: string,
  filename: string,
  chunks: AsyncGenerator<Buffer, void, undefined>,
): OwnReply {
  const disposition = `attachment; filename="${filename}"`
  const headers = ['content-type', contentType, 'content-disposition', disposition, ...NO_STORE]
  return { kind: 'stream', reply: { status: 200, headers, chunks } }
}

/** The answer to a request that was executed now, or earlier with the same `Idempotency-Key`. */
export function replyIdempotent<T>(
  result: IdempotentResult<T>,
  show: (value: T, isNew: boolean) => ApiObject,
): OwnReply {
  if (result.kind === 'conflict')
    return refused(
      'conflict',
      `This ${IDEMPOTENCY_HEADER} was used for another request. Choose a new one.`,
      IDEMPOTENCY_HEADER,
    )
  const isNew = result.kind === 'done'
  const headers = isNew ? NO_STORE : [...NO_STORE, 'idempotent-replayed', 'true']
  return replyJson(201, show(result.value, isNew), headers)
}

export function replyEmpty(headers: readonly string[] = NO_STORE): OwnReply {
  return { kind: 'reply', reply: { status: 204, headers, body: Buffer.alloc(0) } }
}

export function refuseMethod({ method }: Exchange, methods: readonly string[]): Refusal {
  const allowed = methods.join(', ')
  const message = `Use ${methods.join(' or ')} for this endpoint, not ${method}.`
  return refuse('method_not_allowed', message, { headers: ['allow', allowed] })
}

export function refused(code: ErrorCode, message: string, param?: string): Refused {
  return { kind: 'refused', refusal: refuse(code, message, param === undefined ? {} : { param }) }
}

/** Refuses a parameter, a field or a header. */
export function invalid(param: string, message: string): Refused {
  return refused('bad_request', message, param)
}

export const IDEMPOTENCY_HEADER = 'Idempotency-Key'

export { formatInstant, usd } from '../api/field-names.ts'

export function listObject<Row>(data: readonly Row[], next: string | null) {
  return { object: 'list', data, has_more: next !== null, next } as const
}

/** `next` is the id of the last row. */
export function pageObject<Row extends { readonly id: string }>(
  { rows, more }: { readonly rows: readonly Row[]; readonly more: boolean },
  show: (row: Row) => Written<object>,
) {
  return listObject(rows.map(show), more ? (rows.at(-1)?.id ?? null) : null)
}

/** The members that have a value: in a PATCH, an absent field stays unchanged. */
export function withoutUndefined<Fields extends object>(
  fields: Fields,
): { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> }
}
