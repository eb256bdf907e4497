import {
  AMBIGUOUS,
  type Frame,
  openFrame,
  type Shape,
  Sized,
  SKIM_LIMITS,
  type Skimmed,
  type SkimmedElement,
  type Span,
  UNDECODED,
  UNREAD,
} from './json-shape.ts'
import { QUOTE } from './json-string.ts'
import { ambiguousNames, LETTER_N, OPEN_BRACE, OPEN_BRACKET, parseString, TextPart } from './json-tokens.ts'

/** What a skim reads of a text: the members of its shape. The skim checks the grammar, and says where things begin and end. */
export class JsonSelection {
  readonly #root: Shape
  readonly #onElement: ((element: SkimmedElement) => void) | null
  readonly #found = {
    value: {} as Record<string, unknown>,
    spans: new Map<string, Span>(),
    duplicates: new Set<string>(),
    nestedDuplicates: new Set<string>(),
    objectEnd: 0,
  }
  #frame: Frame | null = null
  /** The number of open frames, and the depth of values in the innermost frame. */
  level = 0
  #shape: Shape | null = null
  #valueStart = 0
  #firstByte = 0
  /** The current name or value if it is read, and the total size of all read values. */
  readonly #captured = new TextPart()
  #copiedBytes = 0
  marks = 0
  #marksBefore = 0
  #listed = 0
  #undecodedNames = 0
  /** The number of bytes parsed again. */
  work = 0

  constructor(shape: Shape, onElement: ((element: SkimmedElement) => void) | null) {
    this.#root = shape
    this.#onElement = onElement
  }

  /** Whether the current value is copied, so that its strings must be valid. */
  get copies(): boolean {
    return this.#captured.isOpen && this.#shape?.kind === 'value'
  }

  openValue(at: number, byte: number): void {
    const frame = this.#frame
    this.#firstByte = byte
    this.#valueStart = at
    if (frame === null) this.#shape = this.#root
    else if (frame.object === null) {
      this.#shape = frame.shape.each
      frame.elementStart = at
      frame.marksBefore = this.marks
      frame.copiedBytesBefore = this.#copiedBytes
      this.marks = 0
    } else this.#shape = frame.member === null ? null : frame.member.shape
    const shape = this.#shape
    if (shape === null) return
    if (shape.kind === 'value') this.#captured.open(at, SKIM_LIMITS.copiedBytesMax - this.#copiedBytes)
    else if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) this.#captured.open(at, SKIM_LIMITS.scalarBytesMax)
  }

  /** Returns whether the members or elements of this container are read. */
  open(isObject: boolean): boolean {
    const shape = this.#shape
    if (shape === null || shape.kind !== (isObject ? 'object' : 'array')) return false
    this.level++
    this.#frame = openFrame(this.#frame, shape, this.#valueStart)
    return true
  }

  /** Closes the innermost frame. */
  close(end: number): void {
    const closed = this.#frame as Frame
    this.level--
    this.#frame = closed.outer
    if (closed.outer !== null)
      this.#put(closed.outer, closed.object ?? closed.list ?? UNREAD, closed.start, end)
    else {
      this.#found.value = closed.object ?? {}
      this.#found.objectEnd = end - 1
    }
  }

  endValue(chunk: Buffer, offset: number, i: number): void {
    const [frame, shape] = [this.#frame, this.#shape]
    if (frame === null || shape === null) return
    if (shape.unmarked) this.marks = this.#marksBefore
    this.#put(frame, this.#readValue(shape, chunk, offset, i), this.#valueStart, offset + i)
  }

  #readValue({ kind }: Shape, chunk: Buffer, offset: number, i: number): unknown {
    const text = this.#captured.text(chunk, offset, i)
    if (this.#firstByte === LETTER_N) return null
    const bytes = offset + i - this.#valueStart
    const isText = this.#firstByte === QUOTE
    const unread = kind === 'size' ? new Sized(isText ? bytes - 2 : bytes, isText) : UNREAD
    if (text === null) return unread
    if (kind === 'value') this.#copiedBytes += bytes
    if (isText) return parseString(text) ?? unread
    if (text === 'true' || text === 'false') return text === 'true'
    if (this.#firstByte !== OPEN_BRACE && this.#firstByte !== OPEN_BRACKET) return Number(text)
    this.work += text.length
    for (const name of ambiguousNames(text)) this.#found.nestedDuplicates.add(name)
    return JSON.parse(text)
  }

  #put(frame: Frame, value: unknown, start: number, end: number): void {
    if (frame.list !== null) {
      this.#listed++
      this.marks |= frame.marksBefore
      if (this.#listed <= SKIM_LIMITS.listedMax) frame.list.push(value)
    } else if (frame.object === null) {
      this.#onElement?.({ value, bytes: end - frame.elementStart, marks: this.marks })
      this.marks |= frame.marksBefore
      this.#copiedBytes = frame.copiedBytesBefore
    } else if (frame.member !== null) {
      frame.object[frame.member.name] = value
      if (frame.outer === null) this.#found.spans.set(frame.member.name, { start, end })
    }
  }

  beginName(): void {
    this.#marksBefore = this.marks
  }

  /** A name that is not short, or not complete in its chunk. */
  openName(at: number): void {
    this.#captured.open(at, SKIM_LIMITS.nameBytesMax)
  }

  takeName(chunk: Buffer, offset: number, end: number): Buffer | null {
    return this.#captured.take(chunk, offset, end)
  }

  /** Handles the name of a member of the innermost frame. False: some parsers would read it as another name. */
  endName(bytes: Buffer, from: number, to: number): boolean {
    const frame = this.#frame as Frame
    frame.member = null
    const found = this.#findName(frame, bytes, from, to)
    if (found === AMBIGUOUS) return false
    if (found !== null && frame.object !== null && Object.hasOwn(frame.object, found.name))
      this.#found.duplicates.add(found.name)
    else frame.member = found
    return true
  }

  #findName({ shape: { names } }: Frame, bytes: Buffer, from: number, to: number) {
    if (names === null) return null
    const found = names.find(bytes, from, to)
    if (found !== UNDECODED) return found
    if (++this.#undecodedNames > SKIM_LIMITS.undecodedNamesMax) return AMBIGUOUS
    return names.findText(JSON.parse(`"${bytes.toString('utf8', from, to)}"`) as string)
  }

  endChunk(chunk: Buffer, offset: number): void {
    this.#captured.endChunk(chunk, offset)
  }

  drop(): void {
    this.#frame = null
    this.dropValue()
  }

  /** The name or value in progress is not read. */
  dropValue(): void {
    this.#captured.drop()
  }

  end(bytes: number): Skimmed {
    const { value, spans, objectEnd, duplicates, nestedDuplicates } = this.#found
    return {
      kind: 'object',
      value,
      spans,
      objectEnd,
      duplicates: [...duplicates],
      nestedDuplicates: [...nestedDuplicates],
      marks: this.marks,
      bytes,
      overflow: this.#listed > SKIM_LIMITS.listedMax,
    }
  }
}
