import { nextStop, QUOTE } from './json-string.ts'
import type { OutputChannel } from './output-text.ts'

const BACKSLASH = 0x5c
/** As many digits as a number can have and be exact. */
const DIGITS_MAX = 15

/** What may differ from one event to the next: the text that is delivered, a string or a number that says nothing. */
export type Hole = 'text' | 'string' | 'digits'

/**
 * An event as it comes again and again in a stream, down to the byte, but for the inside of a few values. Most of a
 * stream are such events, a token each; to know one by its bytes costs a twentieth of what it takes to find its
 * lines, parse its JSON and look what it is.
 *
 * This is exact, not a guess: where every byte outside the holes is the same and each hole holds one whole value of
 * the same type, the event has the same members at the same places, whatever the text says.
 */
export class EventTemplate {
  readonly #literals: readonly Literal[]
  readonly #holes: readonly Hole[]
  readonly #channel: OutputChannel

  /** There is one more literal than there are holes, and one hole is the text. */
  constructor(literals: readonly Buffer[], holes: readonly Hole[], channel: OutputChannel) {
    this.#literals = literals.map(toLiteral)
    this.#holes = holes
    this.#channel = channel
  }

  /** Takes the text of the event that begins at `from` and answers the offset behind it; -1 if it is another one. */
  take(chunk: Buffer, words: DataView, from: number): number {
    const literals = this.#literals
    const holes = this.#holes
    const length = chunk.length
    let i = from
    let textFrom = 0
    let textTo = 0
    let isPlain = true
    for (let k = 0; k < literals.length; k++) {
      i = crossLiteral(literals[k] as Literal, chunk, words, i)
      if (i < 0) return -1
      if (k === holes.length) break
      const hole = holes[k]
      if (hole === 'digits') {
        const end = crossDigits(chunk, i)
        if (end === i) return -1
        i = end
        continue
      }
      let stop = nextStop(chunk, words, i, length)
      if (hole === 'text') {
        textFrom = i
        while (stop + 1 < length && chunk[stop] === BACKSLASH) {
          isPlain = false
          stop = nextStop(chunk, words, stop + 2, length)
        }
        textTo = stop
      }
      if (stop >= length || chunk[stop] !== QUOTE) return -1
      i = stop
    }
    return this.#append(chunk, textFrom, textTo, isPlain) ? i : -1
  }

  #append(chunk: Buffer, from: number, to: number, isPlain: boolean): boolean {
    if (isPlain && isAscii(chunk, from, to)) {
      this.#channel.appendAscii(chunk, from, to)
      return true
    }
    const text = chunk.toString('utf8', from, to)
    try {
      this.#channel.append(isPlain ? text : (JSON.parse(`"${text}"`) as string))
      return true
    } catch {
      // An escape that JSON does not have: whoever parses the whole event will say so.
      return false
    }
  }
}

interface Literal {
  readonly bytes: Buffer
  readonly words: BigInt64Array
}

/**
 * Literals of late. The events of one provider mostly differ in their holes only, so that thousands of streams share
 * them; those with an id of the stream in them come and go.
 */
const recent = new Map<string, Literal>()
const RECENT_MAX = 64

function toLiteral(bytes: Buffer): Literal {
  const name = bytes.toString('latin1')
  const known = recent.get(name)
  if (known !== undefined) return known
  // Memory of its own: a piece of Node's pool would keep all of the pool as long as the stream lasts.
  const copy = Buffer.alloc(bytes.length)
  bytes.copy(copy)
  const words = new BigInt64Array(copy.length >> 3)
  for (let i = 0; i < words.length; i++) words[i] = copy.readBigInt64LE(i * 8)
  const literal = { bytes: copy, words }
  if (recent.size >= RECENT_MAX) recent.clear()
  recent.set(name, literal)
  return literal
}

/**
 * The offset behind the literal, or -1 if it is not there. Eight bytes at once take half the time of single ones,
 * and less than the call of native code for a literal of this length; compiled code makes no big integers of them.
 */
function crossLiteral(literal: Literal, chunk: Buffer, view: DataView, from: number): number {
  const { bytes, words } = literal
  const end = from + bytes.length
  if (end > chunk.length) return -1
  let i = from
  for (let k = 0; k < words.length; k++) {
    if (view.getBigInt64(i, true) !== words[k]) return -1
    i += 8
  }
  for (; i < end; i++) {
    if (chunk[i] !== bytes[i - from]) return -1
  }
  return end
}

function crossDigits(chunk: Buffer, from: number): number {
  // A number that begins with 0 ends with it; no more digits than that may follow.
  const end = Math.min(from + DIGITS_MAX, chunk.length)
  let i = from
  while (i < end && (chunk[i] as number) >= 0x30 && (chunk[i] as number) <= 0x39) i++
  return chunk[from] === 0x30 && i > from + 1 ? from : i
}

function isAscii(chunk: Buffer, from: number, to: number): boolean {
  let bits = 0
  for (let i = from; i < to; i++) bits |= chunk[i] as number
  return bits < 0x80
}
