import { type ChunkObject, isBlank, mayBeEmptyArray, readChunkMembers } from './chunk-members.ts'

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const DATA = Buffer.from('data')
const COLON = 0x3a

/** The content of one `data` line of an event, without the name, the colon and the one blank behind it. */
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
function dataLinesOf(bytes: Buffer, from: number, to: number): DataLine[] {
  const lines: DataLine[] = []
  let continues = false
  for (const { start, end } of linesOf(bytes, from, to)) {
    const content = dataStart(bytes, start, end)
    if (content >= 0) lines.push({ start: content, end, continues })
    continues = content >= 0
  }
  return lines
}

/** The data of an event as a whole: its `data` lines with a line feed between them. */
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

/** The decision about an event. `cuts` are the bytes to take out of it: start, end, start, end … in order. */
export type Verdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'remove' }
  | { readonly kind: 'cut'; readonly cuts: readonly number[] }

const PASS: Verdict = { kind: 'pass' }
const REMOVE: Verdict = { kind: 'remove' }

/** The verdict on an event that is the one line bytes[start..end), as chat servers are known to send all of theirs. */
export function judgeLine(bytes: Buffer, start: number, end: number): Verdict {
  const from = dataStart(bytes, start, end)
  return from < 0 ? PASS : judgeChunk(bytes, from, end)
}

/** The verdict on an event whose lines are bytes[start..end). */
export function judgeEvent(bytes: Buffer, start: number, end: number): Verdict {
  const lines = dataLinesOf(bytes, start, end)
  const [only] = lines
  if (only === undefined) return PASS
  if (lines.length === 1) return judgeChunk(bytes, only.start, only.end)
  const data = new JoinedData(bytes, lines)
  const verdict = judgeChunk(data.bytes, 0, data.bytes.length)
  return verdict.kind === 'cut' ? { kind: 'cut', cuts: data.toEvent(verdict.cuts) } : verdict
}

/** A chunk that reports usage and nothing else is removed, any other chunk loses the member; data that is no JSON passes. */
function judgeChunk(bytes: Buffer, from: number, to: number): Verdict {
  // The text has a character for each byte: JSON's syntax is in bytes below 0x80, and offsets stay those of the bytes.
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

const FIELDS = ['data', 'event', 'id', 'retry']

/**
 * The verdict on the lines that a stream ended in, before their event did. The client gets the beginning of what it would
 * have got: nothing as long as the event may be the chunk that reports usage; then all of the event but its usage.
 */
export function judgeUnfinished(bytes: Buffer, start: number, end: number): Verdict {
  const lines = dataLinesOf(bytes, start, end)
  const data = new JoinedData(bytes, lines)
  const text = data.bytes
  if (isBlankText(text)) return mayBecomeData(bytes, start, end) ? REMOVE : PASS
  const object = readChunkMembers(text, 0, text.length)
  if (object === null) return PASS
  if (object.end !== null) return judgeEvent(bytes, start, end)

  const { members } = object
  const isOrdinary = members.some(
    (member) => member.name === 'error' || (member.name === 'choices' && !mayBeEmptyArray(text, member)),
  )
  if (!isOrdinary) return REMOVE
  // A comma or half a name behind the last member may be the beginning of `usage`.
  const lastEnd = members.at(-1)?.end ?? 0
  return { kind: 'cut', cuts: [...data.toEvent(usageCuts(object)), data.placeInEvent(lastEnd), end] }
}

function isBlankText(text: Buffer): boolean {
  return text.every(isBlank)
}

/** Whether all lines may stand before the data of an event, and are not a text that is no event stream. */
function mayBecomeData(bytes: Buffer, start: number, end: number): boolean {
  for (const line of linesOf(bytes, start, end)) {
    const [field = '', ...content] = bytes.toString('latin1', line.start, line.end).split(':', 2)
    const isUnfinished = content.length === 0 && line.end === end
    const isKnown = isUnfinished ? FIELDS.some((name) => name.startsWith(field)) : FIELDS.includes(field)
    if (!isKnown && field !== '') return false
  }
  return true
}

/**
 * The bytes of all members `usage`: start, end, start, end … in order. Each goes with the comma and the blanks that
 * join it to the member before it or, when none before it stays, to the member behind it: the rest of the chunk is as the
 * same writer would have written it without usage.
 */
function usageCuts({ members }: ChunkObject): number[] {
  const cuts: number[] = []
  let before = 0
  let anyStays = false
  for (const [i, { name, nameStart, end }] of members.entries()) {
    if (name !== 'usage') anyStays = true
    else if (anyStays) cuts.push(before, end)
    else cuts.push(nameStart, members[i + 1]?.nameStart ?? end)
    before = end
  }
  return cuts
}

/**
 * The cut of nearly every chunk there is, where `usage` is null and the word is nowhere else: then the member needs no
 * search through the other members, which takes longer than everything else that is done to a chunk. The text is JSON and
 * has the member; null when the member has to be searched for.
 */
function loneNullCut(text: string): readonly [start: number, end: number] | null {
  const word = text.indexOf('usage')
  if (word < 0 || text.indexOf('usage', word + 5) >= 0 || text.includes('\\u00')) return null
  const nameStart = word - 1
  const valueEnd = text.indexOf('null', word) + 4
  const comma = skipBlanksBack(text, nameStart)
  if (text[comma - 1] === ',') return [skipBlanksBack(text, comma - 1), valueEnd]
  const next = skipBlanks(text, valueEnd)
  return [nameStart, text[next] === ',' ? skipBlanks(text, next + 1) : valueEnd]
}

function skipBlanks(text: string, from: number): number {
  let i = from
  while (isBlank(text.charCodeAt(i))) i++
  return i
}

function skipBlanksBack(text: string, from: number): number {
  let i = from
  while (isBlank(text.charCodeAt(i - 1))) i--
  return i
}
