import { readChunkMembers } from './chunk-members.ts'
import { dataLinesOf, dataStart, JoinedData } from './data-lines.ts'
import { loneNullCut, usageCuts } from './usage-cuts.ts'

/** What becomes of an event. `cuts` are the bytes to take out of it: start, end, start, end … in order. */
export type Verdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'remove' }
  | { readonly kind: 'cut'; readonly cuts: readonly number[] }

export const PASS: Verdict = { kind: 'pass' }
export const REMOVE: Verdict = { kind: 'remove' }

/** Of an event that is the one line bytes[start..end), as all are that chat servers are known to send. */
export function judgeLine(bytes: Buffer, start: number, end: number): Verdict {
  const from = dataStart(bytes, start, end)
  return from < 0 ? PASS : judgeChunk(bytes, from, end)
}

/** Of an event whose lines are bytes[start..end). */
export function judgeEvent(bytes: Buffer, start: number, end: number): Verdict {
  const lines = dataLinesOf(bytes, start, end)
  const [only] = lines
  if (only === undefined) return PASS
  if (lines.length === 1) return judgeChunk(bytes, only.start, only.end)
  const data = new JoinedData(bytes, lines)
  const verdict = judgeChunk(data.bytes, 0, data.bytes.length)
  return verdict.kind === 'cut' ? { kind: 'cut', cuts: data.toEvent(verdict.cuts) } : verdict
}

/** The chunk that reports usage and nothing else goes as a whole, any other loses the member; no JSON, no change. */
function judgeChunk(bytes: Buffer, from: number, to: number): Verdict {
  // As single-byte characters: JSON means something only by bytes below 0x80, and offsets stay those of the bytes.
  const text = bytes.toString('latin1', from, to)
  const chunk = parseObject(text)
  if (chunk === null || !Object.hasOwn(chunk, 'usage')) return PASS
  if (Array.isArray(chunk.choices) && chunk.choices.length === 0 && chunk.usage !== null) return REMOVE
  const cut = chunk.usage === null ? loneNullCut(text) : null
  if (cut !== null) return { kind: 'cut', cuts: [from + cut[0], from + cut[1]] }
  const object = readChunkMembers(bytes, from, to)
  return object === null ? PASS : { kind: 'cut', cuts: usageCuts(object) }
}

interface Chunk {
  readonly choices?: unknown
  readonly usage?: unknown
}

function parseObject(text: string): Chunk | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
