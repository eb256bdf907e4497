import { Readable } from 'node:stream'
import { discardRest, type Exchange } from '../http/exchange.ts'
import { BodyPace, type BodyTimes } from '../http/incoming-request.ts'
import {
  firstValue,
  hasHeader,
  isHopByHop,
  NameMemo,
  nominatedIn,
  type RawHeaders,
} from '../http/raw-headers.ts'
import type { UpstreamBody } from '../http/send-request.ts'
import { codingOf } from '../metering/decode-copy.ts'
import type { RequestFacts } from '../metering/request-reader.ts'
import { applySplice, askForUsage, type Splice } from '../providers/chat-usage.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { CLIENT_ACCOUNT_HEADERS, CREDENTIAL_HEADERS, isJsonType, READERS } from '../providers/surfaces.ts'
import type { RequestBody } from './read.ts'

/** Headers that describe the path of a request. They are removed: upstream sees the gateway as its client. */
const PATH_TRACES = /^(?:x-forwarded-.*|forwarded|via|x-real-ip|cf-connecting-ip)$/

/** Headers that make some servers apply another method than the one checked here. */
const METHOD_OVERRIDES = /^x-(?:http-method(?:-override)?|method-override)$/

interface UpstreamHeaders {
  readonly credential: readonly [name: string, value: string] | null
  readonly host: string
  readonly contentLength: number | null
  readonly ownPrefix: string
  /** The body was changed, so headers that depend on its exact bytes would be wrong. */
  readonly bodyEdited: boolean
  readonly plainReply: boolean
  /** Rewrites the subprotocols of a handshake, which may contain a credential; null for other requests. */
  readonly protocols: ((value: string) => string | null) | null
  /** Prefix for `Idempotency-Key`, so that accounts on one credential do not collide. Empty: the header passes unchanged. */
  readonly idempotencyPrefix: string
}

interface RequestLine {
  readonly lower: string
  /** Whether the line is removed for its name alone. The first credential is replaced by the provider's. */
  readonly fate: 'goes' | 'stays' | 'credential' | 'protocols'
}

const requestLines = new NameMemo((lower): RequestLine => ({ lower, fate: requestFate(lower) }))

function requestFate(lower: string): RequestLine['fate'] {
  if (CREDENTIAL_HEADERS.has(lower)) return 'credential'
  if (lower === 'sec-websocket-protocol') return 'protocols'
  // Framing is rewritten for the hop, and the gateway itself answered `expect`.
  if (lower === 'host' || lower === 'content-length' || lower === 'expect') return 'stays'
  // Frames are read as they pass, so they must not be compressed.
  if (lower === 'sec-websocket-extensions') return 'stays'
  if (PATH_TRACES.test(lower) || METHOD_OVERRIDES.test(lower)) return 'stays'
  return CLIENT_ACCOUNT_HEADERS.has(lower) || isHopByHop(lower) ? 'stays' : 'goes'
}

/** The client's header lines with the permitted changes: case, order, duplicates and the credential's position stay. */
export function toUpstreamHeaders(headers: RawHeaders, upstream: UpstreamHeaders): string[] {
  const { ownPrefix, bodyEdited } = upstream
  let plainReply = upstream.plainReply
  const nominated = nominatedIn(headers)
  const out: string[] = ['host', upstream.host]
  let credential = upstream.credential
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const { lower, fate } = requestLines.get(name)
    if (fate === 'goes') {
      const value = headers[i + 1] ?? ''
      if (lower.startsWith(ownPrefix) || nominated.has(lower)) continue
      if (bodyEdited && isOutdated(lower, value)) continue
      if (upstream.plainReply && lower === 'accept-encoding') {
        if (plainReply) out.push(name, 'identity')
        plainReply = false
      } else out.push(name, lower === 'idempotency-key' ? upstream.idempotencyPrefix + value : value)
    } else if (fate === 'credential' && credential !== null) {
      out.push(credential[0], credential[1])
      credential = null
    } else if (fate === 'protocols') {
      const protocols = upstream.protocols?.(headers[i + 1] ?? '') ?? null
      if (protocols !== null) out.push(name, protocols)
    }
  }
  if (credential !== null) out.push(credential[0], credential[1])
  if (plainReply) out.push('accept-encoding', 'identity')
  if (upstream.contentLength !== null) out.push('content-length', String(upstream.contentLength))
  return out
}

interface ReplyFraming {
  /** HTTP/1.1 client and a reply with a body: the only case with chunked coding and trailers. */
  readonly chunkable: boolean
  readonly ownPrefix: string
}

interface ReplyLine {
  readonly lower: string
  /** Whether the line is removed for its name alone. A framing line is, unless the reply is chunked. */
  readonly fate: 'goes' | 'stays' | 'frames'
}

const replyLines = new NameMemo((lower): ReplyLine => ({ lower, fate: replyFate(lower) }))

function replyFate(lower: string): ReplyLine['fate'] {
  if (lower === 'transfer-encoding' || lower === 'trailer') return 'frames'
  return isHopByHop(lower) ? 'stays' : 'goes'
}

/**
 * Upstream's header lines for the client. Case, order and duplicates stay; hop-by-hop lines and lines with our prefix
 * are removed.
 */
export function toReplyHeaders(headers: RawHeaders, framing: ReplyFraming): string[] {
  const { chunkable, ownPrefix } = framing
  const nominated = nominatedIn(headers)
  const chunked = chunkable && !hasHeader(headers, 'content-length')
  const out: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const { lower, fate } = replyLines.get(name)
    const goes =
      fate === 'goes' ? !lower.startsWith(ownPrefix) && !nominated.has(lower) : fate === 'frames' && chunked
    if (!goes) continue
    const value = headers[i + 1] ?? ''
    const isLastCoding = lower === 'transfer-encoding' && !hasHeader(headers.slice(i + 2), lower)
    const sent = isLastCoding ? codingSent(value) : value
    if (sent !== null) out.push(name, sent)
  }
  return out
}

/** A body that upstream delimits by closing the connection is re-sent chunked, so `chunked` becomes its last coding. */
function codingSent(value: string): string | null {
  if (/\bchunked\s*$/i.test(value)) return value
  return /^\s*identity\s*$/i.test(value) ? null : `${value}, chunked`
}

/** Headers and trailers that are wrong once a byte of the body has changed, with the reason. */
const OUTDATED_HEADERS: Readonly<Record<string, string>> = {
  'content-length': 'the length is another, and of a stream not known before its end',
  'content-md5': 'a digest of the bytes as they were (RFC 1864)',
  digest: 'a digest of the bytes as they were (RFC 3230)',
  'content-digest': 'a digest of the bytes as they were (RFC 9530)',
  etag: 'a strong entity tag promises these very bytes; a weak one promises their meaning, and stays',
  'repr-digest': 'a digest of the bytes as they were (RFC 9530)',
}

export function isOutdated(name: string, value: string): boolean {
  return name === 'etag' ? !/^\s*W\//.test(value) : Object.hasOwn(OUTDATED_HEADERS, name)
}

export function withoutOutdated(headers: RawHeaders): string[] {
  const kept: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const value = headers[i + 1] ?? ''
    if (!isOutdated(name.toLowerCase(), value)) kept.push(name, value)
  }
  return kept
}

const BATCH_LIST_BYTES_MAX = 4 * 1024 ** 2

export interface PreparedBody {
  readonly content: UpstreamBody
  readonly lengthBytes: number | null
  /** The gateway asked for usage on the client's behalf, so the added usage is removed from the reply. */
  readonly usageAdded: boolean
}

/** Adds `include_usage` to a chat stream that lacks it. No other body is changed, and never a compressed one. */
export function prepareBody(
  exchange: Exchange,
  body: RequestBody,
  facts: RequestFacts,
  endpoint: Endpoint | null,
  settings: {
    readonly injectUsage: boolean
    readonly times: BodyTimes
    look(chunk: Buffer): void
  },
): PreparedBody {
  const splice = settings.injectUsage ? usageSplice(exchange, facts, endpoint) : null
  const pieces = splice === null || body.kind !== 'held' ? null : body.held.pieces()
  if (splice === null || body.kind !== 'held' || pieces === null) {
    const lengthBytes = body.kind === 'none' ? null : body.lengthBytes
    return {
      content: bodyForUpstream(exchange, body, settings.times, settings.look),
      lengthBytes,
      usageAdded: false,
    }
  }
  const changed = applySplice(Buffer.isBuffer(pieces) ? [pieces] : pieces, splice)
  if (body.lengthBytes === null)
    return { content: Readable.from(changed), lengthBytes: null, usageAdded: true }
  const lengthBytes = body.lengthBytes + splice.insert.length - splice.deleteBytes
  return { content: changed, lengthBytes, usageAdded: true }
}

function usageSplice({ headers }: Exchange, facts: RequestFacts, endpoint: Endpoint | null): Splice | null {
  if (facts.kind !== 'json' || endpoint?.billing !== 'metered') return null
  if (READERS[endpoint.usage]?.usageOnRequest !== true) return null
  if (codingOf(firstValue(headers, 'content-encoding')) !== 'identity') return null
  const ask = askForUsage(facts)
  return ask.kind === 'edit' ? ask.splice : null
}

function bodyForUpstream(
  exchange: Exchange,
  body: RequestBody,
  times: BodyTimes,
  look: (chunk: Buffer) => void,
): UpstreamBody {
  switch (body.kind) {
    case 'none':
      return null
    case 'held':
      return (body.lengthBytes === null ? null : body.held.pieces()) ?? body.held.stream()
    case 'flowing':
      return bridge(exchange, times, look)
  }
}

/** The client stalled or was too slow while its body was streamed upstream. The message is for the client. */
export class BodyIdle extends Error {
  readonly code = 'TOLLGATE_BODY_IDLE'
}

/** A separate stream for the request body, which can be destroyed while the request survives to be answered. */
function bridge({ req, res }: Exchange, times: BodyTimes, look: (chunk: Buffer) => void): Readable {
  const pace = new BodyPace(times, (message) => out.destroy(new BodyIdle(message)))
  pace.watchSilence()
  const out = new Readable({
    highWaterMark: 64 * 1024,
    read() {
      pace.resumed()
      req.resume()
    },
    destroy(error, done) {
      pace.stop()
      res.whenClosed.remove(onLeft)
      discardRest(req)
      done(error)
    },
  })
  // Without a listener an error would crash the process, and if upstream is unreachable there is no other listener.
  out.on('error', () => {})
  function onData(chunk: Buffer): boolean {
    if (!pace.arrived(chunk.length)) return true
    look(chunk)
    if (out.push(Buffer.from(chunk))) return true
    pace.paused()
    return false
  }
  function onEnd(): void {
    pace.stop()
    out.push(null)
  }
  // The client left in mid-upload: upstream must not see a body that looks complete.
  function onLeft(): void {
    if (!req.complete) out.destroy(new Error('the client left'))
  }
  res.whenClosed.add(onLeft)
  req.receive({ data: onData, end: onEnd })
  return out
}

export function originFor(
  exchange: Exchange,
  isSecure: ((exchange: Exchange) => boolean) | null,
): string | null {
  const host = isSecure === null ? undefined : firstValue(exchange.headers, 'host')
  return host === undefined ? null : `${isSecure?.(exchange) ? 'https' : 'http'}://${host}`
}

const SHOWS_BATCHES = /^\/v1\/messages\/batches(?:\/\{[^/]+\}(?:\/cancel)?)?$/

export function showsBatches(template: string): boolean {
  return SHOWS_BATCHES.test(template)
}

/** Points `results_url` of Message batches at this gateway, because SDKs fetch it unchanged. Null for every other reply. */
export function createUrlRewriter(
  { template, origin }: { readonly template: string; readonly origin: string | null },
  status: number,
  headers: RawHeaders,
): ResultsUrls | null {
  if (origin === null || status !== 200 || !showsBatches(template)) return null
  if (!isJsonType(firstValue(headers, 'content-type') ?? '')) return null
  return codingOf(firstValue(headers, 'content-encoding')) === 'identity' ? new ResultsUrls(origin) : null
}

/** Some servers write a slash as `\/`. */
const RESULTS_URL =
  /("results_url"\s*:\s*")(?:[^"\\]|\\\/)*?((?:\\?\/)v1\\?\/messages\\?\/batches\\?\/[\w-]+\\?\/results")/g

export class ResultsUrls {
  readonly #origin: string
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor(origin: string) {
    this.#origin = origin
  }

  write(chunk: Buffer): Buffer | null {
    this.#bytes += chunk.length
    this.#chunks.push(Buffer.from(chunk))
    return this.#bytes > BATCH_LIST_BYTES_MAX ? this.#take() : null
  }

  end(): Buffer {
    if (this.#bytes > BATCH_LIST_BYTES_MAX) return this.#take()
    // Latin-1 preserves every byte, whatever surrounds the URLs.
    const text = this.#take().toString('latin1')
    // A host may contain `$`, which is special in a replacement string.
    const replace = (_all: string, before: string, path: string) => `${before}${this.#origin}${path}`
    return Buffer.from(text.replace(RESULTS_URL, replace), 'latin1')
  }

  #take(): Buffer {
    return Buffer.concat(this.#chunks.splice(0))
  }
}
