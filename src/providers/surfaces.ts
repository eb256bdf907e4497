import type { WholeReply } from '../http/exchange.ts'
import type { Target } from '../http/validate-head.ts'
import { ERRORS, type ErrorCode, type ErrorRow, type Refusal } from '../kernel/errors.ts'
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

/** Every kind of reply; each belongs to one surface. */
export const REPLY_READERS: Readonly<Partial<Record<UsageReader, ReaderSpec>>> = Object.assign(
  {},
  ...Object.values(SURFACES).map(({ readers }) => readers),
)

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

/** Whether the request may upload the file of a batch. */
export function uploadsBatches(endpoint: Endpoint | null): boolean {
  return endpoint?.method === 'POST' && SURFACES[endpoint.surface].batchUpload === endpoint.template
}
