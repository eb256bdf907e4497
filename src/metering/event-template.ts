import { ESCAPES, nextStop, QUOTE } from './json-string.ts'
import type { OutputChannel } from './output-text.ts'

const [BACKSLASH, LETTER_U] = [0x5c, 0x75]
/** As many digits as a number can have and be exact. */
const DIGITS_MAX = 15
/** Longer events are rare, and so are events with many values. */
const EVENT_BYTES_MAX = 2048
const DEPTH_MAX = 8

/** A value that may differ from one event to the next: a text with escapes, a string without escapes, or a number. */
export type Hole = 'text' | 'string' | 'digits'

/** Names and indexes from the outermost container to a value. */
export type JsonPath = readonly (string | number)[]

/** Says whether the value at a path may differ. */
export type HoleAt = (at: JsonPath) => 'text' | 'noise' | null

interface Gap {
  readonly hole: Hole
  /** Offsets of the value's inside: for a string without its quotes. */
  readonly from: number
  readonly to: number
}

/**
 * An event as it comes again and again in a stream, down to the byte, but for the inside of a few values. Most of a
 * stream are such events, a token each; to know an event by its bytes costs a twentieth of finding its lines, parsing
 * its JSON and looking what it is.
 *
 * This is exact, not a guess: where every byte outside the holes is the same and each hole holds one whole value of
 * the same type, the event has the same members at the same places, whatever the text says. The digits of `\u`
 * escapes are not looked at: `hasCodes` says that there are such escapes.
 */
export class EventShape {
  readonly gaps: readonly Gap[]
  readonly #literals: readonly Literal[]
  readonly #marked: number
  readonly #markedOffset: number
  /** The event that was matched last: where its last text is, whether its texts have escapes, and where the marked byte is. */
  textFrom = 0
  textTo = 0
  isPlain = true
  hasCodes = false
  markedAt = 0

  private constructor(raw: Buffer, gaps: readonly Gap[], marked: number) {
    this.gaps = gaps
    this.#literals = [...gaps, null].map((gap, i) =>
      toLiteral(raw.subarray(gaps[i - 1]?.to ?? 0, gap?.from ?? raw.length)),
    )
    this.#marked = gaps.filter((gap) => gap.to <= marked).length
    this.#markedOffset = marked - (gaps[this.#marked - 1]?.to ?? 0)
  }

  /**
   * The shape of an event with one line of data, which was parsed before, so that it is JSON; null for any other
   * event. `marked` is the offset of a byte outside of all holes, whose place in other events is to be known.
   */
  static of(raw: Buffer, holeAt: HoleAt, marked = 0): EventShape | null {
    if (raw.length > EVENT_BYTES_MAX) return null
    // One character per byte, so that offsets in it are offsets in the event.
    const event = raw.toString('latin1', 0, raw.length)
    const lines = [...event.matchAll(/(?<![^\r\n])data:[^\r\n]*/g)]
    const line = lines[0]
    if (line === undefined || lines.length > 1) return null
    return new EventShape(raw, findGaps(line[0], line.index, holeAt), marked)
  }

  /** The offset behind the event of this shape that begins at `from`; -1 if the event has another shape or is not all there. */
  match(chunk: Buffer, words: DataView, from: number): number {
    const literals = this.#literals
    const gaps = this.gaps
    const length = chunk.length
    let i = from
    this.isPlain = true
    this.hasCodes = false
    for (let k = 0; k < literals.length; k++) {
      if (k === this.#marked) this.markedAt = i + this.#markedOffset
      i = crossLiteral(literals[k] as Literal, chunk, words, i)
      if (i < 0) return -1
      if (k === gaps.length) break
      const { hole } = gaps[k] as Gap
      if (hole === 'digits') {
        const end = crossDigits(chunk, i)
        if (end === i) return -1
        i = end
        continue
      }
      let stop = nextStop(chunk, words, i, length)
      if (hole === 'text') {
        this.textFrom = i
        while (stop + 1 < length && chunk[stop] === BACKSLASH) {
          this.isPlain = false
          if (chunk[stop + 1] === LETTER_U) this.hasCodes = true
          else if (ESCAPES[chunk[stop + 1] as number] === 0) return -1
          stop = nextStop(chunk, words, stop + 2, length)
        }
        this.textTo = stop
      }
      if (stop >= length || chunk[stop] !== QUOTE) return -1
      i = stop
    }
    return i
  }
}

/** Where an event has its text, and the channel that the text goes to. */
export interface TextPlace {
  readonly path: JsonPath
  readonly text: string
  readonly channel: OutputChannel
}

/** The shape of events with one text, and the channel that the text is appended to. */
export class EventTemplate {
  readonly #shape: EventShape
  readonly #channel: OutputChannel

  constructor(shape: EventShape, channel: OutputChannel) {
    this.#shape = shape
    this.#channel = channel
  }

  /** Takes the text of the event that begins at `from` and answers the offset behind the event; -1 for another shape. */
  take(chunk: Buffer, words: DataView, from: number): number {
    const shape = this.#shape
    const behind = shape.match(chunk, words, from)
    if (behind < 0) return -1
    const { textFrom, textTo, isPlain } = shape
    if (isPlain && isAscii(chunk, textFrom, textTo)) {
      this.#channel.appendAscii(chunk, textFrom, textTo)
      return behind
    }
    const text = chunk.toString('utf8', textFrom, textTo)
    try {
      this.#channel.append(isPlain ? text : (JSON.parse(`"${text}"`) as string))
      return behind
    } catch {
      // An escape that JSON does not have: the fault is found where the whole event is parsed.
      return -1
    }
  }
}

/**
 * Makes a template of an event: its text may differ, and so may the members named in `noise`, which stand in the outermost
 * object and say nothing. Null if the event is too long, has several lines of data, or does not have its text exactly once.
 */
export function learnTemplate(
  raw: Buffer,
  place: TextPlace,
  noise: ReadonlySet<string>,
): EventTemplate | null {
  const { path } = place
  const shape = EventShape.of(raw, (at) => {
    if (at.length === path.length && at.every((step, i) => step === path[i])) return 'text'
    return at.length === 1 && noise.has(String(at[0])) ? 'noise' : null
  })
  const texts = shape?.gaps.filter((gap) => gap.hole === 'text') ?? []
  const text = texts[0]
  if (shape === null || text === undefined || texts.length > 1 || !says(raw, text, place.text)) return null
  return new EventTemplate(shape, place.channel)
}

function says(raw: Buffer, gap: Gap, text: string): boolean {
  try {
    return JSON.parse(`"${raw.toString('utf8', gap.from, gap.to)}"`) === text
  } catch {
    return false
  }
}

/** The values that may differ, in their order. None where the event is nested too deeply. */
function findGaps(line: string, offset: number, holeAt: HoleAt): Gap[] {
  const tokens = /"((?:[^"\\]|\\.)*)"|([{}[\],:])|([^\s{}[\],:"]+)/g
  tokens.lastIndex = 'data:'.length
  const gaps: Gap[] = []
  /** The name or the index at which each open container stands, the last one being that of the value to come. */
  const at: (string | number)[] = []
  let name: string | null = null
  for (const token of line.matchAll(tokens)) {
    const [whole, string, mark] = token
    const from = offset + token.index
    const last = at.length - 1
    if (mark === '{') at.push('')
    else if (mark === '[') at.push(0)
    else if (mark === '}' || mark === ']') at.pop()
    else if (mark === ',') {
      const index = at[last]
      at[last] = typeof index === 'number' ? index + 1 : ''
    } else if (mark === ':') at[last] = name ?? ''
    else if (at[last] === '') name = string ?? null
    else {
      const hole = holeFor(string, whole, holeAt(at))
      const quote = string === undefined ? 0 : 1
      if (hole !== null) gaps.push({ hole, from: from + quote, to: from + whole.length - quote })
    }
    if (at.length > DEPTH_MAX) return []
  }
  return gaps
}

function holeFor(string: string | undefined, whole: string, what: 'text' | 'noise' | null): Hole | null {
  if (what === null) return null
  if (string === undefined)
    return what === 'noise' && /^(?:0|[1-9][0-9]{0,14})$/.test(whole) ? 'digits' : null
  if (what === 'text') return 'text'
  return string.includes('\\') ? null : 'string'
}

interface Literal {
  readonly bytes: Buffer
  readonly words: BigInt64Array
}

/**
 * Literals of recent events. The events of one provider mostly differ in their holes only, so that thousands of
 * streams share their literals; literals with an id of the stream in them come and go.
 */
const recent = new Map<string, Literal>()
const RECENT_MAX = 64

function toLiteral(bytes: Buffer): Literal {
  const name = bytes.toString('latin1')
  const known = recent.get(name)
  if (known !== undefined) return known
  // A buffer of its own: a slice of Node's pool would keep the whole pool alive as long as the stream lasts.
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
 * The offset behind the literal, or -1 if it is not there. Eight bytes at once take half the time of single ones, and
 * less than the call of native code for a literal of this length; compiled code allocates no big integers for them.
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
  // A number that begins with 0 has no further digit. A number of more than DIGITS_MAX digits fails at the literal behind it.
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
