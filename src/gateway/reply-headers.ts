import { hopByHopOf } from '../http/hop-by-hop.ts'
import type { RawHeaders } from '../http/raw-headers.ts'

export interface ReplyFraming {
  /** The client speaks HTTP/1.1 and this reply has a body: only then is there chunked coding, and a trailer. */
  readonly chunkable: boolean
  readonly ownPrefix: string
}

/**
 * Upstream's header lines as the client gets them: case, order and duplicates stay, lines that belong to
 * upstream's connection go. `Transfer-Encoding` keeps its place where the client can read it, because Node would
 * otherwise append one at the end. Lines with our own prefix are dropped: only we say those.
 */
export function toReplyHeaders(headers: RawHeaders, framing: ReplyFraming): string[] {
  const staysThere = hopByHopOf(headers)
  const chunked =
    framing.chunkable && !headers.some((name, i) => i % 2 === 0 && /^content-length$/i.test(name))
  const out: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const lower = name.toLowerCase()
    const framed = lower === 'transfer-encoding' || lower === 'trailer'
    if (framed ? !chunked : staysThere(lower) || lower.startsWith(framing.ownPrefix)) continue
    out.push(name, headers[i + 1] ?? '')
  }
  return out
}
