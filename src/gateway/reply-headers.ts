import { isHopByHop, nominatedIn } from '../http/hop-by-hop.ts'
import { NameMemo } from '../http/name-memo.ts'
import { hasHeader, type RawHeaders } from '../http/raw-headers.ts'

export interface ReplyFraming {
  /** The client speaks HTTP/1.1 and this reply has a body: only then is there chunked coding, and a trailer. */
  readonly chunkable: boolean
  readonly ownPrefix: string
}

interface ReplyLine {
  readonly lower: string
  /** Whether the line stays there for its name alone; one that frames does unless the client reads chunks. */
  readonly fate: 'goes' | 'stays' | 'frames'
}

const replyLines = new NameMemo((lower): ReplyLine => ({ lower, fate: fateOf(lower) }))

function fateOf(lower: string): ReplyLine['fate'] {
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
    const sent = lower === 'transfer-encoding' ? codingSent(value) : value
    if (sent !== null) out.push(name, sent)
  }
  return out
}

/** What upstream ended with its connection, we send in chunks, and say so. */
function codingSent(value: string): string | null {
  if (/\bchunked\s*$/i.test(value)) return value
  return /^\s*identity\s*$/i.test(value) ? null : `${value}, chunked`
}
