import { addTokens, isNamed, type RawHeaders } from './raw-headers.ts'

/** Headers that belong to one connection and not to the message. `te` and `trailer` count: trailers end at a hop. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])

/**
 * Headers that a `Connection` line cannot nominate away. A client that names `content-length` or its credential
 * there would otherwise have us drop what the request's meaning, or our own check, rests on.
 */
const END_TO_END =
  /^(?:host|date|age|vary|etag|range|cookie|set-cookie|origin|expect|user-agent|authorization|x-api-key|api-key|x-request-id|request-id|retry-after|cache-control|content-.*|accept.*|anthropic-.*|openai-.*|x-stainless-.*|x-ratelimit-.*|idempotency-key)$/

/** Whether lines of this name belong to the connection in every message. */
export function isHopByHop(lowerName: string): boolean {
  return HOP_BY_HOP.has(lowerName)
}

const NOTHING: ReadonlySet<string> = new Set()

/** What else a message's own `Connection` lines keep on this hop; mostly they say `keep-alive`, which adds nothing. */
export function nominatedIn(headers: RawHeaders): ReadonlySet<string> {
  let names: string[] | null = null
  for (let i = 0; i < headers.length; i += 2) {
    if (!isNamed(headers[i] ?? '', 'connection')) continue
    const value = headers[i + 1] ?? ''
    if (value === 'keep-alive') continue
    names ??= []
    addTokens(value, names)
  }
  if (names === null) return NOTHING
  const nominated = names.filter((name) => !HOP_BY_HOP.has(name) && !END_TO_END.test(name))
  return nominated.length === 0 ? NOTHING : new Set(nominated)
}
