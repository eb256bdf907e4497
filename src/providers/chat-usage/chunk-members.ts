const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** The members of a chunk of a chat stream that decide which bytes of it the client gets. */
export type ChunkMemberName = 'usage' | 'choices' | 'error' | 'other'

/** `nameStart` is the name's opening quote; `end` is exclusive, and where the bytes end if the member goes on. */
export interface ChunkMember {
  readonly name: ChunkMemberName
  readonly nameStart: number
  readonly valueStart: number
  readonly end: number
}

export interface ChunkObject {
  readonly members: readonly ChunkMember[]
  /** Behind the closing brace; null when the bytes end before it. */
  readonly end: number | null
}

/**
 * The members of the object that begins at `from`, in order, twice if they are there twice. Strings and brackets are
 * followed, the text between them is not checked: whether it is JSON is for the caller to find out. Null
 * when there is no object, or when something else stands where a name, a colon or a comma has to.
 */
export function readChunkMembers(bytes: Buffer, from: number, to: number): ChunkObject | null {
  let i = skipBlanks(bytes, from, to)
  if (i === to || bytes[i] !== OPEN_BRACE) return null
  const members: ChunkMember[] = []
  i = skipBlanks(bytes, i + 1, to)
  while (i < to) {
    if (bytes[i] === CLOSE_BRACE) return { members, end: i + 1 }
    if (members.length > 0) {
      if (bytes[i] !== COMMA) return null
      i = skipBlanks(bytes, i + 1, to)
      if (i === to) break
    }
    if (bytes[i] !== QUOTE) return null
    const nameStart = i
    const nameEnd = skipString(bytes, i, to)
    if (nameEnd === UNFINISHED) break
    const colon = skipBlanks(bytes, nameEnd, to)
    if (colon < to && bytes[colon] !== COLON) return null
    const valueStart = skipBlanks(bytes, Math.min(colon + 1, to), to)
    const valueEnd = skipValue(bytes, valueStart, to)
    const end = valueEnd === UNFINISHED ? to : valueEnd
    members.push({ name: nameOf(bytes, nameStart, nameEnd), nameStart, valueStart, end })
    if (valueEnd === UNFINISHED) break
    i = skipBlanks(bytes, valueEnd, to)
  }
  return { members, end: null }
}

/** Whether the value, as far as it is there, is or may become an array without elements. */
export function mayBeEmptyArray(bytes: Buffer, { valueStart, end }: ChunkMember): boolean {
  if (valueStart === end) return true
  if (bytes[valueStart] !== OPEN_BRACKET) return false
  const at = skipBlanks(bytes, valueStart + 1, end)
  return at === end || bytes[at] === CLOSE_BRACKET
}

const UNFINISHED = -1

function skipBlanks(bytes: Buffer, from: number, to: number): number {
  let i = from
  while (i < to && isBlank(bytes[i] as number)) i++
  return i
}

export function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** The offset behind the closing quote of the string whose opening quote is at `from`, or UNFINISHED. */
function skipString(bytes: Buffer, from: number, to: number): number {
  for (let i = from + 1; i < to; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) return i + 1
    if (byte === BACKSLASH) i++
  }
  return UNFINISHED
}

function skipValue(bytes: Buffer, from: number, to: number): number {
  if (from >= to) return UNFINISHED
  const first = bytes[from]
  if (first === QUOTE) return skipString(bytes, from, to)
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return skipContainer(bytes, from, to)
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || isBlank(byte)) return i
  }
  return UNFINISHED
}

function skipContainer(bytes: Buffer, from: number, to: number): number {
  let depth = 0
  for (let i = from; i < to; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) {
      const end = skipString(bytes, i, to)
      if (end === UNFINISHED) return UNFINISHED
      i = end - 1
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth++
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth--
      if (depth === 0) return i + 1
    }
  }
  return UNFINISHED
}

const NAMES: Readonly<Record<string, ChunkMemberName>> = {
  '"usage"': 'usage',
  '"choices"': 'choices',
  '"error"': 'error',
}
/** An escape writes one letter as six bytes. */
const ESCAPED_BYTES_MIN = '"usage"'.length + 5
const ESCAPED_BYTES_MAX = '""'.length + 6 * 'choices'.length

/** `start` and `end` include the quotes. Most names are told by their length, without making a string of them. */
function nameOf(bytes: Buffer, start: number, end: number): ChunkMemberName {
  const length = end - start
  if (length === 7 || length === 9) return NAMES[bytes.toString('latin1', start, end)] ?? 'other'
  if (length < ESCAPED_BYTES_MIN || length > ESCAPED_BYTES_MAX) return 'other'
  const text = bytes.toString('latin1', start, end)
  return text.includes('\\') ? (NAMES[withoutEscapes(text)] ?? 'other') : 'other'
}

/** Resolves the escapes of letters alone: the names that are looked for can have no other escapes. */
function withoutEscapes(text: string): string {
  return text.replace(/\\u00([67][0-9a-fA-F])/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
}
