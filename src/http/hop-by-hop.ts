import { type RawHeaders, tokensOf } from './raw-headers.ts'

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

/** Tells which lines of this message stay on this hop, its `Connection` nominations included. */
export function hopByHopOf(headers: RawHeaders): (lowerName: string) => boolean {
  const nominated = tokensOf(headers, 'connection').filter((name) => !END_TO_END.test(name))
  if (nominated.length === 0) return (name) => HOP_BY_HOP.has(name)
  const all = new Set([...HOP_BY_HOP, ...nominated])
  return (name) => all.has(name)
}
