import { Readable } from 'node:stream'
import type { Exchange } from '../http/exchange.ts'
import type { BodyTimes } from '../http/incoming-request.ts'
import {
  codingOf,
  firstValue,
  hasHeader,
  headerActions,
  isHopByHop,
  nominatedIn,
  type RawHeaders,
} from '../http/raw-headers.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import type { ReadingPace } from '../metering/reading-pace.ts'
import { applySplice, requestUsage, type Splice } from '../providers/chat-usage.ts'
import { CLIENT_ACCOUNT_HEADERS, CREDENTIAL_HEADERS } from '../providers/credentials.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import type { RequestFacts } from '../providers/request-facts.ts'
import { REPLY_READERS } from '../providers/surfaces.ts'
import type { RequestBody } from './read.ts'

/** Headers that proxies add. They are removed, because the gateway is upstream's client. */
const PATH_TRACES = /^(?:x-forwarded-.*|forwarded|via|x-real-ip|cf-connecting-ip)$/

/** Headers that make some servers use another method than that of the request line, which was checked. */
const METHOD_OVERRIDES = /^x-(?:http-method(?:-override)?|method-override)$/

interface UpstreamHeaderOptions {
  readonly credential: readonly [name: string, value: string] | null
  readonly ownPrefix: string
  /** The body was changed, so headers that depend on its exact bytes would be wrong. */
  readonly bodyEdited: boolean
  readonly plainReply: boolean
  /** Rewrites the subprotocols of a handshake, which may contain a credential; null for other requests. */
  readonly protocols: ((value: string) => string | null) | null
  /** Lines that replace the client's lines of the same names. */
  readonly fixedHeaders: RawHeaders
  /** Prefix for `Idempotency-Key`, which keeps accounts on one credential apart. Empty: the header is unchanged. */
  readonly idempotencyPrefix: string
}

/** The first `credential` line is replaced by the provider's credential. */
const requestLine = headerActions((lower): 'forward' | 'drop' | 'credential' | 'protocols' => {
  if (CREDENTIAL_HEADERS.has(lower)) return 'credential'
  if (lower === 'sec-websocket-protocol') return 'protocols'
  // Framing is rewritten for the hop, and the gateway itself answered `expect`.
  if (lower === 'host' || lower === 'content-length' || lower === 'expect') return 'drop'
  // Frames are read as they pass, so they must not be compressed.
  if (lower === 'sec-websocket-extensions') return 'drop'
  if (PATH_TRACES.test(lower) || METHOD_OVERRIDES.test(lower)) return 'drop'
  return CLIENT_ACCOUNT_HEADERS.has(lower) || isHopByHop(lower) ? 'drop' : 'forward'
})

/** Preserves the case, order and duplicates of headers, and the position of the credential. */
export function toUpstreamHeaders(headers: RawHeaders, upstream: UpstreamHeaderOptions): string[] {
  const { ownPrefix, bodyEdited, fixedHeaders } = upstream
  let plainReply = upstream.plainReply
  const nominated = nominatedIn(headers)
  const out: string[] = []
  let credential = upstream.credential
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const { lower, action } = requestLine(name)
    if (action === 'forward') {
      const value = headers[i + 1] ?? ''
      if (lower.startsWith(ownPrefix) || nominated.has(lower)) continue
      if (fixedHeaders.length > 0 && hasHeader(fixedHeaders, lower)) continue
      if (bodyEdited && isOutdated(lower, value)) continue
      if (upstream.plainReply && lower === 'accept-encoding') {
        if (plainReply) out.push(name, 'identity')
        plainReply = false
      } else out.push(name, lower === 'idempotency-key' ? upstream.idempotencyPrefix + value : value)
    } else if (action === 'credential' && credential !== null) {
      out.push(credential[0], credential[1])
      credential = null
    } else if (action === 'protocols') {
      const protocols = upstream.protocols?.(headers[i + 1] ?? '') ?? null
      if (protocols !== null) out.push(name, protocols)
    }
  }
  if (credential !== null) out.push(credential[0], credential[1])
  if (plainReply) out.push('accept-encoding', 'identity')
  out.push(...fixedHeaders)
  return out
}

/** `framing` lines are dropped, unless the reply is chunked. */
const replyLine = headerActions((lower): 'forward' | 'drop' | 'framing' => {
  if (lower === 'transfer-encoding' || lower === 'trailer') return 'framing'
  return isHopByHop(lower) ? 'drop' : 'forward'
})

/**
 * Preserves case, order and duplicates. Hop-by-hop lines and lines with our prefix are removed. `chunkable`: the client uses
 * HTTP/1.1 and the reply has a body. Only then are chunked coding and trailers possible.
 */
export function toReplyHeaders(headers: RawHeaders, ownPrefix: string, chunkable: boolean): string[] {
  const nominated = nominatedIn(headers)
  const chunked = chunkable && !hasHeader(headers, 'content-length')
  const out: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const { lower, action } = replyLine(name)
    const isForwarded =
      action === 'forward'
        ? !lower.startsWith(ownPrefix) && !nominated.has(lower)
        : action === 'framing' && chunked
    if (!isForwarded) continue
    const value = headers[i + 1] ?? ''
    const isLastCoding = lower === 'transfer-encoding' && !hasHeader(headers.slice(i + 2), lower)
    const sent = isLastCoding ? codingForClient(value) : value
    if (sent !== null) out.push(name, sent)
  }
  return out
}

/** A body that upstream delimits by closing the connection is re-sent chunked, so `chunked` becomes its last coding. */
function codingForClient(value: string): string | null {
  if (/\bchunked\s*$/i.test(value)) return value
  return /^\s*identity\s*$/i.test(value) ? null : `${value}, chunked`
}

/** Headers and trailers that are wrong after a change of the body: its length, and digests of its bytes. */
const OUTDATED = /^(?:content-length|content-md5|digest|content-digest|repr-digest)$/

/** Whether a header is wrong after a change of the body. A weak entity tag only promises the meaning, so it stays. */
export function isOutdated(name: string, value: string): boolean {
  return name === 'etag' ? !/^\s*W\//.test(value) : OUTDATED.test(name)
}

export function withoutOutdated(headers: RawHeaders): string[] {
  return filterLines(headers, (name, value) => !isOutdated(name, value))
}

export function withoutOwnHeaders(headers: RawHeaders, prefix: string): string[] {
  return filterLines(headers, (name) => !name.startsWith(prefix))
}

function filterLines(headers: RawHeaders, isKept: (lowerName: string, value: string) => boolean): string[] {
  const lines: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const value = headers[i + 1] ?? ''
    if (isKept(name.toLowerCase(), value)) lines.push(name, value)
  }
  return lines
}

/** A reason phrase with characters other than tabs and printable ASCII is not sent. */
export function printable(reason: string): string {
  return /^[\t\x20-\x7e]*$/.test(reason) ? reason : ''
}

export interface Figures {
  readonly costNanos: Nanos
  readonly listNanos: Nanos
  readonly balanceNanos: Nanos | null
}

export function figureLines(
  names: HeaderNames,
  figures: Figures | null,
  upstreamMs: number | null,
): string[] {
  const lines: string[] = []
  if (figures !== null) {
    lines.push(names.costUsd, formatUsd(figures.costNanos), names.listCostUsd, formatUsd(figures.listNanos))
  }
  if (upstreamMs !== null) lines.push(names.upstreamMs, String(upstreamMs))
  if (names.balanceUsd !== null && figures !== null && figures.balanceNanos !== null) {
    lines.push(names.balanceUsd, formatUsd(figures.balanceNanos))
  }
  return lines
}

export function announcedTrailers(names: HeaderNames): string {
  const { costUsd, listCostUsd, upstreamMs, balanceUsd } = names
  return [costUsd, listCostUsd, upstreamMs, ...(balanceUsd === null ? [] : [balanceUsd])].join(', ')
}

/** `usageAdded`: the gateway asked for usage on the client's behalf, so the added usage is removed from the reply. */
export type PreparedBody = ReturnType<typeof prepareBody>

interface StreamSettings {
  readonly times: BodyTimes
  readonly pace: ReadingPace
  onChunk(chunk: Buffer): void
}

/** Adds `include_usage` to a chat stream that lacks it. Other bodies, and all compressed ones, are unchanged. */
export function prepareBody(
  exchange: Exchange,
  body: RequestBody,
  facts: RequestFacts,
  endpoint: Endpoint | null,
  settings: StreamSettings & { readonly injectUsage: boolean },
) {
  if (body.kind === 'none') return { content: null, lengthBytes: null, usageAdded: false }
  const { lengthBytes } = body
  if (body.kind === 'flowing') {
    return { content: streamBody(exchange, settings), lengthBytes, usageAdded: false }
  }
  const splice = settings.injectUsage ? usageSplice(exchange, facts, endpoint) : null
  const held = body.held.pieces()
  const pieces = splice === null ? held : applySplice(held, splice)
  // A chunked body stays chunked.
  const content = lengthBytes === null ? Readable.from(pieces, { objectMode: false }) : pieces
  return { content, lengthBytes, usageAdded: splice !== null }
}

function usageSplice({ headers }: Exchange, facts: RequestFacts, endpoint: Endpoint | null): Splice | null {
  if (facts.kind !== 'json' || endpoint?.billing !== 'metered') return null
  if (REPLY_READERS[endpoint.usage]?.usageOnRequest !== true) return null
  if (codingOf(firstValue(headers, 'content-encoding')) !== 'identity') return null
  return requestUsage(facts)
}

/** The client was too slow while its body was streamed upstream. The message is for the client. */
export class BodyTooSlow extends Error {}

/** A stream that can be destroyed while the request stays open for an answer. Joins chunks, which may be tiny. */
function streamBody({ req }: Exchange, { times, pace, onChunk }: StreamSettings): Readable {
  let chunks: Buffer[] = []
  let bytes = 0
  const pushChunks = () => {
    if (bytes > 0 && !out.destroyed) out.push(Buffer.concat(chunks))
    chunks = []
    bytes = 0
  }
  const out = new Readable({
    highWaterMark: 64 * 1024,
    // In the next iteration of the event loop: a fast upload of a batch file would otherwise stop all other connections.
    async read() {
      await pace.pause()
      setImmediate(() => req.resume())
    },
    destroy(error, done) {
      req.discard()
      done(error)
    },
  })
  // An error without a listener would end the process, and if upstream is unreachable there is no other listener.
  out.on('error', () => {})
  req.receive(
    {
      data(chunk) {
        onChunk(chunk)
        if (bytes === 0) queueMicrotask(pushChunks)
        chunks.push(Buffer.from(chunk))
        bytes += chunk.length
        return out.readableLength + bytes < out.readableHighWaterMark
      },
      end() {
        pushChunks()
        out.push(null)
      },
      // If the client left during the upload, upstream must not see a body that looks complete.
      broken: (tooSlow) =>
        out.destroy(tooSlow === null ? new Error('the client left') : new BodyTooSlow(tooSlow)),
    },
    times,
  )
  return out
}

const RETURNS_BATCHES = /^\/v1\/messages\/batches(?:\/\{[^/]+\}(?:\/cancel)?)?$/

export function returnsBatches(template: string): boolean {
  return RETURNS_BATCHES.test(template)
}

/** The gateway's origin as the client sees it, if URLs in the reply are rewritten; else null. */
export function originFor(
  exchange: Exchange,
  template: string,
  isSecure: ((exchange: Exchange) => boolean) | null,
): string | null {
  if (isSecure === null || !returnsBatches(template)) return null
  const host = firstValue(exchange.headers, 'host')
  return host === undefined ? null : `${isSecure(exchange) ? 'https' : 'http'}://${host}`
}

/** Some servers write a slash as `\/`. */
const RESULTS_URL =
  /("results_url"\s*:\s*")(?:[^"\\]|\\\/)*?((?:\\?\/)v1\\?\/messages\\?\/batches\\?\/[\w-]+\\?\/results")/g

/** Points `results_url` of Message batches at this gateway, because SDKs fetch it unchanged. */
export function rewriteResultsUrls(body: Buffer, origin: string): Buffer {
  // A host may contain `$`, which is special in a replacement string.
  const replace = (_all: string, before: string, path: string) => `${before}${origin}${path}`
  // Latin-1 preserves every byte, whatever surrounds the URLs.
  return Buffer.from(body.toString('latin1').replace(RESULTS_URL, replace), 'latin1')
}
