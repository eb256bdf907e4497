/**
 * Strings that mark content which costs tokens beyond the bytes of a body: what the body names and does not carry, and
 * documents and images it carries, whose pages and pixels count. They are names of members, or values that say what
 * kind of thing a member is.
 */
const MARKS: readonly Buffer[] = ['file_id', 'url', 'container', 'mcp_servers', 'base64', 'file_data'].map(
  (text) => Buffer.from(text),
)
/** A name that ends like this marks it as well: `image_url`. */
const ENDING = Buffer.from('_url')

/** No more of a string than its last bytes need be known: one more than the longest has, so that it is seen to be longer. */
const TAIL_BYTES = Math.max(ENDING.length, ...MARKS.map((mark) => mark.length)) + 1

/** 1 for every byte that one of them ends with: for all other strings one look is enough. */
export const MARK_ENDS = new Uint8Array(256)
for (const mark of [...MARKS, ENDING]) MARK_ENDS[mark[mark.length - 1] ?? 0] = 1

/** Whether the string whose bytes these are is one of them. */
export function isMark(chunk: Uint8Array, from: number, to: number): boolean {
  if (endsWith(chunk, from, to, ENDING)) return true
  for (const mark of MARKS) if (mark.length === to - from && endsWith(chunk, from, to, mark)) return true
  return false
}

function endsWith(chunk: Uint8Array, from: number, to: number, end: Uint8Array): boolean {
  const start = to - end.length
  if (start < from) return false
  for (let i = 0; i < end.length; i++) if (chunk[start + i] !== end[i]) return false
  return true
}

/** Watches a string that does not end where it began, or that has escapes, for being one of them. */
export class MarkWatch {
  /** Its last bytes, as far as they are behind us. */
  #tail: Uint8Array = NOTHING
  #from = 0

  /** Its first byte is at `i` of the chunk at hand. */
  open(i: number): void {
    this.#tail = NOTHING
    this.#from = i
  }

  /** The chunk ends, the string does not. */
  endChunk(chunk: Uint8Array): void {
    this.#tail = this.#lastBytes(chunk, chunk.length)
    this.#from = 0
  }

  /** Its closing quote is at `i`. */
  close(chunk: Uint8Array, i: number): boolean {
    if (this.#tail.length === 0) return isMark(chunk, this.#from, i)
    const last = this.#lastBytes(chunk, i)
    return isMark(last, 0, last.length)
  }

  /** A copy, as far as `to` of the chunk at hand. */
  #lastBytes(chunk: Uint8Array, to: number): Uint8Array {
    const start = Math.max(this.#from, to - TAIL_BYTES)
    const all = Buffer.concat([this.#tail, chunk.subarray(start, to)])
    return all.subarray(Math.max(0, all.length - TAIL_BYTES))
  }
}

const NOTHING = new Uint8Array(0)
