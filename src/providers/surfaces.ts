import type { WholeReply } from '../http/exchange.ts'
import { hasHeader, type RawHeaders, valuesOf } from '../http/raw-headers.ts'
import type { Target } from '../http/validate-head.ts'
import { ERRORS, type ErrorCode, type ErrorRow, type Refusal } from '../kernel/errors.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import {
  BodyMeter,
  type CutEvent,
  EventMeter,
  type Meter,
  nothingDelivered,
  SilentMeter,
  StreamMeter,
} from '../metering/meter.ts'
import { chat } from './chat/surface.ts'
import type { Endpoint, UsageReader } from './endpoint.ts'
import { messages } from './messages/surface.ts'
import type { ReaderSpec, SurfaceSpec } from './surface.ts'

export const SURFACES: Readonly<Record<Surface, SurfaceSpec>> = { messages, chat }

const specs = Object.values(SURFACES)

/** Every kind of reply; each belongs to one surface. */
export const REPLY_READERS: Readonly<Partial<Record<UsageReader, ReaderSpec>>> = Object.assign(
  {},
  ...specs.map((surface) => surface.readers),
)

/** Headers in which clients send a key. All are read on both surfaces. */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'api-key'])

export function carriesCredential(headers: RawHeaders): boolean {
  for (const name of CREDENTIAL_HEADERS) if (hasHeader(headers, name)) return true
  return false
}

/** The client's credentials, and selectors of another organisation, project or workspace. */
export const CLIENT_ACCOUNT_HEADERS: ReadonlySet<string> = new Set([
  ...CREDENTIAL_HEADERS,
  'proxy-authorization',
  'cookie',
  ...specs.flatMap((surface) => surface.upstream.accountHeaders),
])

export function providerCredential(surface: Surface, key: Secret): readonly [name: string, value: string] {
  return SURFACES[surface].upstream.credential(key.reveal())
}

/** The key in a credential header; null if the header has something else (`Basic …`, nothing). */
export function keyInHeader(lowerName: string, value: string): string | null {
  const text = value.trim()
  if (lowerName !== 'authorization') return text === '' ? null : text
  const bearer = /^bearer[ \t]+(\S.*)$/i.exec(text)
  return bearer?.[1]?.trim() ?? null
}

/** The upstream target: the client's target, unchanged, after the configured path. */
export function upstreamTarget(surface: Surface, base: URL, target: Target): string {
  const basePath = base.pathname.endsWith('/') ? base.pathname.slice(0, -1) : base.pathname
  const path = SURFACES[surface].upstream.path(basePath, target.path)
  return (path === '' ? '/' : path) + target.query
}

/** Who reads the error: a surface's client, or a client of our own endpoints. */
export type Audience = Surface | 'own'

/** Shapes a refusal for the client's SDK. Our own endpoints use OpenAI's form plus `request_id`. */
export function shapeError(audience: Audience, refusal: Refusal, requestId: string): WholeReply {
  const row: ErrorRow = ERRORS[refusal.code]
  const { requestIdHeader, body: shape } = SURFACES[formOf(audience)].errors
  const json = shape(errorType(audience, refusal.code), refusal, requestId)
  const body = Buffer.from(JSON.stringify(audience === 'own' ? { ...json, request_id: requestId } : json))
  const headers = ['content-type', 'application/json', 'content-length', String(body.length)]
  headers.push(requestIdHeader, requestId)
  // By default caches may store some errors, such as a 404.
  if (audience === 'own') headers.push('cache-control', 'no-store')
  if (row.retryAfterSeconds !== null) headers.push('retry-after', String(row.retryAfterSeconds))
  // SDKs retry only some statuses, but coding agents retry all: a revoked key for three minutes.
  if (row.retry === 'never') headers.push('x-should-retry', 'false')
  if (refusal.headers !== undefined) headers.push(...refusal.headers)
  return { status: statusOf(audience, refusal.code), headers, body }
}

export function statusOf(audience: Audience, code: ErrorCode): number {
  return SURFACES[formOf(audience)].errors.statuses[code] ?? ERRORS[code].status
}

export function errorType(audience: Audience, code: ErrorCode): string {
  return SURFACES[formOf(audience)].errors.type(code, statusOf(audience, code))
}

function formOf(audience: Audience): Surface {
  return audience === 'own' ? 'chat' : audience
}

/** The meter for a reply without an error, by its content type: a stream may be answered with JSON, and vice versa. */
export function createMeter(usage: UsageReader, contentType: string, cut: CutEvent | null = null): Meter {
  const spec = REPLY_READERS[usage]
  if (spec === undefined) return new SilentMeter()
  const isEvents = isEventStream(contentType)
  if (!isEvents && !isJsonType(contentType)) return spec.other?.() ?? new SilentMeter()
  const output = nothingDelivered()
  const reader = spec.create(output)
  return isEvents ? new StreamMeter(reader, output, cut) : new BodyMeter(reader, output)
}

export function createEventMeter(usage: UsageReader): EventMeter | null {
  const output = nothingDelivered()
  const reader = REPLY_READERS[usage]?.create(output)
  return reader === undefined ? null : new EventMeter(reader, output)
}

const EVENTS = /^\s*text\/event-stream\s*(?:;|$)/i
const JSON_TYPE = /^\s*(?:(?:application|text)\/json|[^;,\s]*\+json)(?:[;,\s]|$)/i

export function isEventStream(contentType: string): boolean {
  return EVENTS.test(contentType)
}

export function isJsonType(contentType: string): boolean {
  return JSON_TYPE.test(contentType)
}

/** The header in which browsers send their credential, because browser WebSockets cannot set others. */
const PROTOCOLS = 'sec-websocket-protocol'
const KEY = /^openai-insecure-api-key\.(.*)$/i
const ACCOUNT = /^openai-(?:organization|project)\./i

function protocolsIn(value: string): string[] {
  return value.split(',').map((protocol) => protocol.trim())
}

/** The keys among the client's subprotocols. */
export function keysInProtocols(headers: RawHeaders): string[] {
  return valuesOf(headers, PROTOCOLS)
    .flatMap(protocolsIn)
    .flatMap((protocol) => KEY.exec(protocol)?.[1] ?? [])
}

/** Whether the request may upload the file of a batch. */
export function uploadsBatches(endpoint: Endpoint | null): boolean {
  return endpoint?.method === 'POST' && SURFACES[endpoint.surface].batchUpload === endpoint.template
}

/** The provider's key replaces the client's, account selectors are removed. Null: none are left. */
export function protocolsForUpstream(value: string, key: string | null): string | null {
  const offered = protocolsIn(value)
  const forwarded = offered
    .filter((protocol) => !ACCOUNT.test(protocol) && (key !== null || !KEY.test(protocol)))
    .map((protocol) => (KEY.test(protocol) ? `openai-insecure-api-key.${key}` : protocol))
  if (forwarded.length === 0) return null
  // A value without a credential stays unchanged.
  return forwarded.length === offered.length && !forwarded.some((protocol) => KEY.test(protocol))
    ? value
    : forwarded.join(', ')
}

/** Upstream's header lines. If upstream chose the subprotocol with the key, the client gets the one it offered. */
export function protocolsForClient(headers: readonly string[], offered: RawHeaders): string[] {
  return headers.map((text, i) => {
    if (i % 2 === 0 || headers[i - 1]?.toLowerCase() !== PROTOCOLS) return text
    const own = valuesOf(offered, PROTOCOLS)
      .flatMap(protocolsIn)
      .find((protocol) => KEY.test(protocol))
    return protocolsIn(text)
      .map((protocol) => (KEY.test(protocol) ? (own ?? '') : protocol))
      .join(', ')
  })
}
