import { BoundedCopy } from './bounded-copy.ts'
import { type Picked, type Place, UNREAD, Written } from './json-place.ts'
import type { JsonScanLimits } from './json-scan.ts'
import { NEAR_BYTES, startOfOpenSequence } from './json-string.ts'

const NOWHERE = -1
const [LETTER_N, LETTER_T] = [0x6e, 0x74]

/**
 * The part at hand of a JSON text that arrives in pieces: a name, a member that is captured, or a value that is read.
 * The part begins in the chunk at hand or in an earlier chunk; only a part that lies in two chunks is copied.
 * `offset` is where in the text the chunk at hand begins, `end` is the offset in the chunk behind the part.
 */
export class JsonValue {
  readonly #limits: JsonScanLimits
  #start = NOWHERE
  #copy: BoundedCopy | null = null
  /** The place of the value; null for a name, and for a captured member. */
  #place: Place | null = null
  #outputRoom: number

  constructor(limits: JsonScanLimits) {
    this.#limits = limits
    this.#outputRoom = limits.outputBytesMax
  }

  /** Another text begins. */
  restart(): void {
    this.drop()
    this.#outputRoom = this.#limits.outputBytesMax
  }

  /** The offset in the text of the part's first byte. */
  get start(): number {
    return this.#start
  }

  open(start: number, place: Place | null = null): void {
    this.#start = start
    this.#place = place
  }

  drop(): void {
    this.#start = NOWHERE
    this.#place = null
    this.#copy?.clear()
  }

  /** The chunk is used up. */
  endChunk(chunk: Buffer, offset: number): void {
    if (this.#start === NOWHERE) return
    const { captureBytesMax, nameBytesMax, stringBytesMax, outputBytesMax } = this.#limits
    this.#copy ??= new BoundedCopy(Math.max(captureBytesMax, nameBytesMax, stringBytesMax, outputBytesMax))
    this.#copy.append(chunk, Math.max(0, this.#start - offset), chunk.length)
  }

  /** The part as it is written; null if it is longer than `bytesMax`. */
  take(chunk: Buffer, offset: number, end: number, bytesMax: number): string | null {
    if (end + offset - this.#start <= bytesMax) return this.#takeStart(chunk, offset, end, bytesMax)
    this.drop()
    return null
  }

  /** A string that is whole in this chunk, short, and has escapes only of one character. */
  shortString(place: Place, chunk: Buffer, from: number, to: number, isPlain: boolean): Picked {
    const text = chunk.toString('utf8', from, to)
    if (place.reads === 'output') this.#outputRoom -= to - from
    return isPlain ? text : withoutEscapes(text, place)
  }

  /** The closing quote is at `end`. */
  string(chunk: Buffer, offset: number, end: number): Picked {
    const place = this.#place
    if (place === null) return UNREAD
    const { stringBytesMax } = this.#limits
    const isOutput = place.reads === 'output'
    const text = isOutput
      ? this.#takeOutput(chunk, offset, end)
      : this.take(chunk, offset, end, stringBytesMax)
    return text === null ? UNREAD : withoutEscapes(text, place)
  }

  number(chunk: Buffer, offset: number, end: number): Picked {
    if (this.#place === null) return UNREAD
    const text = this.take(chunk, offset, end, this.#limits.stringBytesMax)
    return text === null ? UNREAD : Number(text)
  }

  literal(firstByte: number): Picked {
    const isRead = this.#place !== null
    if (isRead) this.drop()
    if (firstByte === LETTER_N) return null
    return isRead ? firstByte === LETTER_T : UNREAD
  }

  /** An object as it is written. */
  object(chunk: Buffer, offset: number, end: number): Picked {
    return this.#place === null ? UNREAD : new Written(this.#takeOutput(chunk, offset, end), 'object')
  }

  /** As much of a model's output as there is room for; for a short value there is always room. */
  #takeOutput(chunk: Buffer, offset: number, end: number): string {
    const room = Math.max(this.#outputRoom, NEAR_BYTES)
    this.#outputRoom -= Math.min(offset + end - this.#start, room)
    return this.#takeStart(chunk, offset, end, room)
  }

  /** The part's text; a part longer than `bytesMax` is cut behind its last whole character within that. */
  #takeStart(chunk: Buffer, offset: number, end: number, bytesMax: number): string {
    const from = this.#start - offset
    const length = Math.min(end - from, bytesMax)
    this.#start = NOWHERE
    this.#place = null
    if (from >= 0 && length === end - from) return chunk.toString('utf8', from, end)
    if (from < 0) this.#copy?.append(chunk, 0, end)
    const bytes = from < 0 ? this.#copy?.take(length) : chunk.subarray(from, from + length)
    if (bytes === undefined || bytes === null) return ''
    return bytes.toString('utf8', 0, length < end - from ? startOfOpenSequence(bytes, 0) : length)
  }
}

/** A text without its escapes. A model's output with escapes is left as it is written until it is asked for. */
function withoutEscapes(text: string, { reads }: Place): string | Written {
  if (!text.includes('\\')) return text
  return reads === 'output' ? new Written(text, 'string') : (JSON.parse(`"${text}"`) as string)
}

/** Hands over the bytes of a value as they pass, be it a text or a container that is looked into. One value at a time. */
export class HandOver {
  readonly #take: ((bytes: Buffer) => void) | null
  /** Where the value begins, or goes on, in the chunk at hand. */
  #from = NOWHERE
  #depth = 0

  constructor(take: ((bytes: Buffer) => void) | null) {
    this.#take = take
  }

  start(at: number, depth: number): void {
    this.#from = at
    this.#depth = depth
  }

  endChunk(chunk: Buffer): void {
    if (this.#from === NOWHERE) return
    this.#give(chunk, chunk.length)
    this.#from = 0
  }

  /** A value has ended: the value that is handed over, or a value inside of it. */
  endValue(chunk: Buffer, end: number, depth: number): void {
    if (this.#from === NOWHERE || depth !== this.#depth) return
    this.#give(chunk, end)
    this.#from = NOWHERE
  }

  drop(): void {
    this.#from = NOWHERE
  }

  #give(chunk: Buffer, to: number): void {
    if (to > this.#from) this.#take?.(chunk.subarray(this.#from, to))
  }
}
