/** The marks that a string of a body can be. They are bits, so that one number gathers the marks of a whole body. */
export const MARKS = {
  /**
   * Content that costs tokens beyond the bytes of the body: content that the body names and does not carry, and
   * documents, images and audio that it carries, whose pages, pixels and seconds count.
   */
  elsewhere: 1,
  /** A tool that is defined inside of the conversation. */
  tool: 2,
  /** These two together may be audio of an earlier answer, named by its id. */
  audio: 4,
  id: 8,
} as const

/** The marks of a string that cannot be read: it may be any. */
export const EVERY_MARK = MARKS.elsewhere | MARKS.tool | MARKS.audio | MARKS.id

interface Mark {
  readonly bytes: Buffer
  readonly bit: number
}

/** Names of members, or values that say what kind of thing a member is. */
const STRINGS: readonly Mark[] = [
  ...['file_id', 'url', 'container', 'mcp_servers', 'base64', 'file_data', 'input_audio'].map((text) => ({
    bytes: Buffer.from(text),
    bit: MARKS.elsewhere,
  })),
  { bytes: Buffer.from('tool_definition'), bit: MARKS.tool },
  { bytes: Buffer.from('audio'), bit: MARKS.audio },
  { bytes: Buffer.from('id'), bit: MARKS.id },
]
/** A name that ends like this marks content elsewhere as well: `image_url`. */
const ENDING = Buffer.from('_url')

const LONGEST_BYTES = Math.max(...STRINGS.map(({ bytes }) => bytes.length))

/** How many of a string's last bytes are kept: one more than a mark has, so that a longer string is seen as such. */
const TAIL_BYTES = LONGEST_BYTES + 1

/** 1 for every byte that a mark ends with: all other strings need no more than one look. */
export const MARK_ENDS = new Uint8Array(256)
for (const { bytes } of [...STRINGS, { bytes: ENDING }]) MARK_ENDS[bytes[bytes.length - 1] ?? 0] = 1

const BY_LENGTH: readonly (readonly Mark[])[] = Array.from({ length: LONGEST_BYTES + 1 }, (_, length) =>
  STRINGS.filter(({ bytes }) => bytes.length === length),
)

/** The mark that the string between `from` and `to` is; 0 for nearly every string. */
export function markOf(chunk: Uint8Array, from: number, to: number): number {
  if (to - from <= LONGEST_BYTES)
    for (const { bytes, bit } of BY_LENGTH[to - from] ?? []) if (endsWith(chunk, from, to, bytes)) return bit
  return endsWith(chunk, from, to, ENDING) ? MARKS.elsewhere : 0
}

function endsWith(chunk: Uint8Array, from: number, to: number, end: Uint8Array): boolean {
  const start = to - end.length
  if (start < from) return false
  for (let i = 0; i < end.length; i++) if (chunk[start + i] !== end[i]) return false
  return true
}

/** Whether a string is a mark, for strings that do not end in the chunk they began in, or that have escapes. */
export class MarkWatch {
  /** The string's last bytes in earlier chunks. */
  #tail: Uint8Array = NOTHING
  #from = 0

  /** The string's first byte is at `i` of the current chunk. */
  open(i: number): void {
    this.#tail = NOTHING
    this.#from = i
  }

  /** The chunk ends, the string does not. */
  endChunk(chunk: Uint8Array): void {
    this.#tail = this.#lastBytes(chunk, chunk.length)
    this.#from = 0
  }

  /** The string's closing quote is at `i`. */
  close(chunk: Uint8Array, i: number): number {
    if (this.#tail.length === 0) return markOf(chunk, this.#from, i)
    const last = this.#lastBytes(chunk, i)
    return markOf(last, 0, last.length)
  }

  /** A copy of the string's last bytes, up to `to` of the current chunk. */
  #lastBytes(chunk: Uint8Array, to: number): Uint8Array {
    const start = Math.max(this.#from, to - TAIL_BYTES)
    return Buffer.concat([this.#tail, chunk.subarray(start, to)]).subarray(-TAIL_BYTES)
  }
}

const NOTHING = new Uint8Array()
