import { hasHeader, isHopByHop, NameMemo, nominatedIn, type RawHeaders } from '../http/raw-headers.ts'
import { CLIENT_ACCOUNT_HEADERS, CREDENTIAL_HEADERS } from '../providers/surfaces.ts'

/** Headers that describe the path of a request. They are removed: upstream sees the gateway as its client. */
const PATH_TRACES = /^(?:x-forwarded-.*|forwarded|via|x-real-ip|cf-connecting-ip)$/

/** Headers that make some servers take a request for one of another method than the one that was judged here. */
const METHOD_OVERRIDES = /^x-(?:http-method(?:-override)?|method-override)$/

interface UpstreamHeaders {
  readonly credential: readonly [name: string, value: string] | null
  readonly host: string
  readonly contentLength: number | null
  readonly ownPrefix: string
  /** The body is not the client's to the byte: header lines that vouch for its bytes would be wrong. */
  readonly bodyEdited: boolean
  readonly plainReply: boolean
  /** Rewrites the subprotocols of a handshake, which may have a credential among them; null for other requests. */
  readonly protocols: ((value: string) => string | null) | null
  /** Is put before an `Idempotency-Key`: accounts on one credential must not meet in it. Empty: it passes unchanged. */
  readonly idempotencyPrefix: string
}

interface RequestLine {
  readonly lower: string
  /** Whether the line is kept from upstream for its name alone; a credential is, and gives its place to the provider's. */
  readonly fate: 'goes' | 'stays' | 'credential' | 'protocols'
}

const requestLines = new NameMemo((lower): RequestLine => ({ lower, fate: requestFate(lower) }))

function requestFate(lower: string): RequestLine['fate'] {
  if (CREDENTIAL_HEADERS.has(lower)) return 'credential'
  if (lower === 'sec-websocket-protocol') return 'protocols'
  // Framing is written anew for the hop; an expectation was answered by us.
  if (lower === 'host' || lower === 'content-length' || lower === 'expect') return 'stays'
  // Frames are read as they pass, so that none may be compressed.
  if (lower === 'sec-websocket-extensions') return 'stays'
  if (PATH_TRACES.test(lower) || METHOD_OVERRIDES.test(lower)) return 'stays'
  return CLIENT_ACCOUNT_HEADERS.has(lower) || isHopByHop(lower) ? 'stays' : 'goes'
}

/**
 * The client's header lines with the permitted changes and no other: case, order and duplicates stay. The
 * provider's credential takes the place of the first credential the client sent.
 */
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
  /** The client speaks HTTP/1.1 and this reply has a body: only then is there chunked coding, and a trailer. */
  readonly chunkable: boolean
  readonly ownPrefix: string
}

interface ReplyLine {
  readonly lower: string
  /** Whether the line is kept from the client for its name alone; a line that frames is, unless the reply goes in chunks. */
  readonly fate: 'goes' | 'stays' | 'frames'
}

const replyLines = new NameMemo((lower): ReplyLine => ({ lower, fate: replyFate(lower) }))

function replyFate(lower: string): ReplyLine['fate'] {
  if (lower === 'transfer-encoding' || lower === 'trailer') return 'frames'
  return isHopByHop(lower) ? 'stays' : 'goes'
}

/**
 * Upstream's header lines as the client gets them: case, order and duplicates stay, lines that belong to
 * upstream's connection go. `Transfer-Encoding` keeps its place where the client can read it; it would
 * otherwise be appended at the end. Lines with our own prefix are dropped: only we say those.
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

/** A body that upstream ended with its connection is sent in chunks, and its last coding says so. */
function codingSent(value: string): string | null {
  if (/\bchunked\s*$/i.test(value)) return value
  return /^\s*identity\s*$/i.test(value) ? null : `${value}, chunked`
}

/**
 * Headers that state something about the bytes of a body, and are wrong once a byte of it was changed, with the reason.
 * They go from the request when it was edited and from the reply when usage is cut out of it, trailers included.
 */
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
