import { hopByHopOf } from '../http/hop-by-hop.ts'
import type { RawHeaders } from '../http/raw-headers.ts'
import { isOutdated } from '../providers/chat-usage/outdated-headers.ts'
import { CLIENT_ACCOUNT_HEADERS, CREDENTIAL_HEADERS } from '../providers/credentials.ts'

/** What tells about the path a request took. Upstream sees the gateway as its client. */
const PATH_TRACES = /^(?:x-forwarded-.*|forwarded|via|x-real-ip|cf-connecting-ip)$/

export interface UpstreamHeaders {
  /** The line that pays upstream, or null where nothing is to be sent as credential. */
  readonly credential: readonly [name: string, value: string] | null
  /** The host and port upstream is known by. */
  readonly host: string
  /** Known length of the body, or null for a chunked one or none. */
  readonly contentLength: number | null
  /** The beginning of our own header names. */
  readonly ownPrefix: string
  /** The body is not the client's to the byte: lines that vouch for its bytes would lie. */
  readonly bodyEdited: boolean
}

/**
 * The client's header lines with the permitted changes and no other: case, order and duplicates stay. The
 * provider's credential takes the place of the first credential the client sent.
 */
export function toUpstreamHeaders(headers: RawHeaders, upstream: UpstreamHeaders): string[] {
  const staysHere = hopByHopOf(headers)
  const out: string[] = ['host', upstream.host]
  let credential = upstream.credential
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const lower = name.toLowerCase()
    if (CLIENT_ACCOUNT_HEADERS.has(lower)) {
      if (credential !== null && CREDENTIAL_HEADERS.has(lower)) {
        out.push(...credential)
        credential = null
      }
      continue
    }
    // Framing is written anew for the hop; an expectation was answered by us.
    if (lower === 'host' || lower === 'content-length' || lower === 'expect') continue
    if (staysHere(lower) || PATH_TRACES.test(lower) || lower.startsWith(upstream.ownPrefix)) continue
    const value = headers[i + 1] ?? ''
    if (upstream.bodyEdited && isOutdated(lower, value)) continue
    out.push(name, value)
  }
  if (credential !== null) out.push(...credential)
  if (upstream.contentLength !== null) out.push('content-length', String(upstream.contentLength))
  return out
}
