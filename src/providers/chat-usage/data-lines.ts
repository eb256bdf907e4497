const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const DATA = Buffer.from('data')
const COLON = 0x3a

/** What one `data` line of an event says, without the name, the colon and the one blank behind it. */
export interface DataLine {
  readonly start: number
  readonly end: number
  /** Whether the line right before it is a `data` line too. */
  readonly continues: boolean
}

/** One line without its end; `next` is where the line behind it begins. */
export interface EventLine {
  readonly start: number
  readonly end: number
  readonly next: number
}

/** The lines of bytes[from..to): LF, CR and CR LF end one. The last may have no end. */
export function* linesOf(bytes: Buffer, from: number, to: number): Generator<EventLine> {
  let start = from
  while (start < to) {
    let end = start
    while (end < to && bytes[end] !== LF && bytes[end] !== CR) end++
    let next = Math.min(end + 1, to)
    if (bytes[end] === CR && next < to && bytes[next] === LF) next++
    yield { start, end, next }
    start = next
  }
}

/** Where the content of a `data` line begins, or -1 if it is no such line. A name without a colon has no content. */
export function dataStart(bytes: Buffer, start: number, end: number): number {
  const colon = start + DATA.length
  if (end < colon) return -1
  for (let i = 0; i < DATA.length; i++) if (bytes[start + i] !== DATA[i]) return -1
  if (end === colon) return end
  if (bytes[colon] !== COLON) return -1
  return colon + 1 < end && bytes[colon + 1] === SPACE ? colon + 2 : colon + 1
}

/** The `data` lines among the lines of an event. */
export function dataLinesOf(bytes: Buffer, from: number, to: number): DataLine[] {
  const lines: DataLine[] = []
  let continues = false
  for (const { start, end } of linesOf(bytes, from, to)) {
    const content = dataStart(bytes, start, end)
    if (content >= 0) lines.push({ start: content, end, continues })
    continues = content >= 0
  }
  return lines
}

/** What an event says as a whole: its `data` lines with a line feed between them. */
export class JoinedData {
  readonly #lines: readonly DataLine[]
  readonly bytes: Buffer

  constructor(bytes: Buffer, lines: readonly DataLine[]) {
    this.#lines = lines
    const length = lines.reduce((sum, { start, end }) => sum + end - start + 1, 0)
    this.bytes = Buffer.alloc(Math.max(length - 1, 0), LF)
    let offset = 0
    for (const { start, end } of lines) offset += bytes.copy(this.bytes, offset, start, end) + 1
  }

  /** Where in the event a byte of the joined text stands; a line feed stands where its line ends. */
  placeInEvent(at: number): number {
    let offset = 0
    for (const { start, end } of this.#lines) {
      if (at <= offset + end - start) return start + at - offset
      offset += end - start + 1
    }
    throw new RangeError(`there is no byte ${at}`)
  }

  /**
   * The cuts of the joined text as cuts of the event, both in order. A cut from one line into the next takes the line's
   * end and the next line's name with it, so that no empty line of data is left; lines of other fields between the two
   * stay. One pass over both lists: a hostile event can have a hundred thousand of each.
   */
  toEvent(cuts: readonly number[]): number[] {
    const out: number[] = []
    let offset = 0
    let next = 0
    for (const [i, line] of this.#lines.entries()) {
      const length = line.end - line.start
      // The line feed before this line is the byte at offset - 1.
      const before = this.#lines[i - 1]
      const from = cuts[next] ?? Number.POSITIVE_INFINITY
      if (before !== undefined && line.continues && from < offset) out.push(before.end, line.start)
      for (; next < cuts.length; next += 2) {
        const start = Math.max(cuts[next] as number, offset)
        const end = Math.min(cuts[next + 1] as number, offset + length)
        if (start < end) out.push(line.start + start - offset, line.start + end - offset)
        if ((cuts[next + 1] as number) > offset + length) break
      }
      offset += length + 1
    }
    return out
  }
}
