import { type ReplyDocument, type Shape, SKIM_LIMITS, type Skimmed } from './json-shape.ts'
import { JsonSkim, skimWhole } from './json-skim.ts'
import { oddNames } from './parse-slice.ts'

/** Documents up to this size are parsed whole; larger ones are skimmed for the members that a reader names. */
const PARSED_BYTES_MAX = 256 * 1024
/**
 * A text that arrives in pieces is buffered up to this size, then skimmed: larger copies cost 500 µs of garbage
 * collection per MB.
 */
const HELD_BYTES_MAX = 32 * 1024

const BYTE_ORDER_MARK = '\ufeff'

/** Reads a complete JSON text; null if it is not JSON. */
export function readJson(shape: Shape, text: Buffer): ReplyDocument | null {
  const parsed = text.length > PARSED_BYTES_MAX ? null : parse(text.toString())
  // Some servers write control characters into strings unescaped. The skim accepts them in strings that it does not
  // read.
  return parsed ?? documentOf(skimWhole(text, shape, SKIM_LIMITS.replyDepthMax))
}

/** Reads a JSON text that arrives in pieces. */
export class ReplyJson {
  readonly #shape: Shape
  #pieces: Buffer[] = []
  #bytes = 0
  /** Reads the text when it becomes too long to buffer. */
  #skim: JsonSkim | null = null

  constructor(shape: Shape) {
    this.#shape = shape
  }

  write(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#skim === null && this.#bytes <= HELD_BYTES_MAX) this.#pieces.push(Buffer.from(piece))
    else {
      if (this.#skim === null) {
        this.#skim = new JsonSkim(this.#shape, null, SKIM_LIMITS.replyDepthMax)
        for (const held of this.#pieces) this.#skim.write(held)
        this.#pieces = []
      }
      this.#skim.write(piece)
    }
  }

  end(): ReplyDocument | null {
    if (this.#skim !== null) return documentOf(this.#skim.end())
    const pieces = this.#pieces
    this.#pieces = []
    return readJson(this.#shape, pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces))
  }
}

/** Only documents with usage are checked for duplicate names. */
function parse(written: string): ReplyDocument | null {
  const text = written.startsWith(BYTE_ORDER_MARK) ? written.slice(1) : written
  try {
    const value: unknown = JSON.parse(text)
    return { value, isWhole: true, overflow: false, repeatsNames: () => oddNames(text).size > 0 }
  } catch {
    return null
  }
}

function documentOf(skimmed: Skimmed): ReplyDocument | null {
  if (skimmed.kind === 'unreadable') return null
  const { value, duplicates, twiceInside, overflow } = skimmed
  return { value, isWhole: false, overflow, repeatsNames: () => duplicates.length + twiceInside.length > 0 }
}
