import { isAscii, isUtf8 } from 'node:buffer'
import { AMBIGUOUS, NameTable } from './json-shape.ts'
import { KeptPart } from './json-tokens.ts'

export type UnreadableMultipart =
  | 'empty'
  /** Bytes before the first boundary: some parsers skip them, some refuse. */
  | 'preamble'
  /** The boundary occurs where it is not clearly a delimiter line. */
  | 'stray_boundary'
  | 'no_closing_boundary'
  | 'trailing_bytes'
  | 'bad_part_head'
  | 'part_head_too_large'
  | 'too_many_parts'
  /** A field name that is not watched, but that some parsers read as a watched name. */
  | 'ambiguous_name'
  /** A watched field that some parsers would treat as a file or decode differently. */
  | 'ambiguous_part'
  | 'not_utf8'

export type MultipartScan =
  | {
      readonly kind: 'form'
      readonly fields: ReadonlyMap<string, string | null>
      /** Watched names given more than once. `fields` has the first; parsers differ on which counts. */
      readonly duplicates: readonly string[]
      readonly lengthBytes: number
    }
  | { readonly kind: 'unreadable'; readonly reason: UnreadableMultipart }

/** Receives the other parts as they pass. The bytes are valid only during the call. */
export interface PartSink {
  open(head: PartHead): boolean
  write(bytes: Buffer): void
}

export const MULTIPART_LIMITS = { partHeadBytesMax: 16 * 1024, partsMax: 1000, valueBytesMax: 1024 } as const

/** The facts in the head of a part. `plain`: every parser reads the part as a text field of that name. */
export interface PartHead {
  readonly name: string
  readonly plain: boolean
  /** Non-ASCII text would be read in another charset than UTF-8. */
  readonly asciiOnly: boolean
  readonly isFile: boolean
  /** The head states no transfer encoding and no charset other than UTF-8. */
  readonly verbatim: boolean
}

const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/
/** The form that all clients write: the name first, quoted, or bare if it is a word. */
const DISPOSITION = /^form-data[ \t]*;[ \t]*name=(?:"([^"\\]*)"|([0-9A-Za-z_.-]+))(?![^ \t;])/i
/** Parameters that may follow the name: `filename=` and `filename*=`, once each. */
const FILENAME = /;[ \t]*filename=/i
const FILENAME_EXTENDED = /;[ \t]*filename\*=/i
const ANOTHER_NAME = /name[ \t*0-9]*=/i
const TEXT_TYPE = /^text\/plain(?:[ \t]*;[ \t]*charset=("?)(utf-8|us-ascii|iso-8859-1)\1)?$/i
const PLAIN_ENCODING = /^(?:7bit|8bit|binary)$/i
export const FOREIGN_CHARSET = /charset(?![ \t]*=[ \t]*"?(?:utf-?8|us-ascii)"?[ \t]*(?:;|$))/i

/**
 * Reads the head of a part (without its empty line). Null if parsers could differ: folded lines, bare CR or LF, no or
 * two `Content-Disposition`, anything but `form-data`, a name that is missing, backslash-escaped, given as `name*=` or
 * repeated, even inside a quoted filename, where parsers that split at `;` find it.
 */
function readPartHead(bytes: Buffer): PartHead | null {
  const headers = new Map<string, string>()
  for (const line of bytes.toString('latin1').split('\r\n')) {
    const [, field, value] = HEADER_LINE.exec(line) ?? []
    if (field === undefined || value === undefined) return null
    const key = field.toLowerCase()
    if (headers.has(key) && key.startsWith('content-')) return null
    headers.set(key, withoutBlanks(value))
  }
  const disposition = headers.get('content-disposition') ?? ''
  const match = DISPOSITION.exec(disposition)
  if (match === null) return null
  const rest = disposition.slice(match[0].length)
  if (ANOTHER_NAME.test(rest.replace(FILENAME, ';').replace(FILENAME_EXTENDED, ';'))) return null

  const raw = Buffer.from(match[1] ?? match[2] ?? '', 'latin1')
  if (!isUtf8(raw)) return null
  const contentType = headers.get('content-type') ?? 'text/plain'
  const type = TEXT_TYPE.exec(contentType)
  const isPlainEncoding = PLAIN_ENCODING.test(headers.get('content-transfer-encoding') ?? 'binary')
  return {
    name: raw.toString('utf8'),
    plain: rest === '' && type !== null && isPlainEncoding,
    asciiOnly: (type?.[2] ?? 'utf-8').toLowerCase() !== 'utf-8',
    isFile: FILENAME.test(rest) || FILENAME_EXTENDED.test(rest),
    verbatim: isPlainEncoding && !headers.has('content-encoding') && !FOREIGN_CHARSET.test(contentType),
  }
}

/** `trim` would also remove U+00A0, which other parsers preserve, and a pattern for the end would be quadratic. */
function withoutBlanks(value: string): string {
  let [start, end] = [0, value.length]
  while (start < end && ' \t'.includes(value.charAt(start))) start++
  while (start < end && ' \t'.includes(value.charAt(end - 1))) end--
  return value.slice(start, end)
}

/** The name as read by parsers that decode percent escapes, trim, and treat `a[]` as a list `a`. */
export function looseName(name: string): string {
  return name
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\[.*/s, '')
    .trim()
}

const CR = 0x0d
const LF = 0x0a
const DASH = 0x2d
const EMPTY = Buffer.alloc(0)

const PARAMETER =
  /[ \t]*;[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"([^"\\]*)")[ \t]*/y
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=?-]{1,70}$/

/**
 * The boundary of a `multipart/form-data` content type; null if not every parser reads it the same way. RFC 2046 allows
 * 70 characters; we exclude the space, which some parsers trim, and unquoted characters that need quotes.
 */
export function boundaryOf(contentType: string): string | null {
  const type = /^[ \t]*multipart\/form-data(?=[ \t;])/i.exec(contentType)
  if (type === null) return null
  let boundary: string | null = null
  for (let at = type[0].length; at < contentType.length; at = PARAMETER.lastIndex) {
    PARAMETER.lastIndex = at
    const [, attribute, token, quoted] = PARAMETER.exec(contentType) ?? []
    if (attribute === undefined) return null
    if (!/^boundary/i.test(attribute)) continue
    if (boundary !== null || attribute.length > 'boundary'.length) return null
    boundary = token ?? quoted ?? ''
  }
  return boundary !== null && BOUNDARY.test(boundary) ? boundary : null
}

type State = 'content' | 'delimiter' | 'head' | 'closed'
type Fault = UnreadableMultipart | null

/**
 * Finds the text fields of a multipart/form-data body that arrives in pieces, without buffering it. Accepts only bodies
 * that all parsers read alike: lines end in CRLF, and the boundary occurs only in delimiter lines, without padding, so
 * a lenient parser finds the same delimiters. The result does not depend on how the body was split, and no chunk is
 * retained after `write` returns.
 */
export class MultipartScanner {
  readonly #names: NameTable<string>
  readonly #needle: Buffer
  readonly #fields = new Map<string, string | null>()
  readonly #duplicates = new Set<string>()
  readonly #kept = new KeptPart()
  #failure: Extract<MultipartScan, { kind: 'unreadable' }> | null = null
  /** Offset of the current chunk in the body, and of the next byte in the chunk. */
  #offset = 0
  #i = 0
  /** Bytes before the first boundary are searched as content; there must be none. */
  #state: State = 'content'
  #parts = 0
  /** The last bytes of content, in which a boundary may have begun. Initially the line break that a boundary needs. */
  #tail = Buffer.from('\r\n')
  #headStart = 0
  /** How many bytes of the expected line break or empty line have come. */
  #matched = 0
  #closing = false
  #field: { readonly name: string; readonly asciiOnly: boolean } | null = null
  readonly #sink: PartSink | null
  #sunk = false

  constructor(boundary: string, names: readonly string[], sink: PartSink | null = null) {
    this.#sink = sink
    this.#names = new NameTable(names.map((name) => [name, name]))
    this.#needle = Buffer.from(`--${boundary}`, 'latin1')
  }

  write(chunk: Buffer): void {
    this.#i = 0
    while (this.#i < chunk.length && this.#failure === null) {
      const fault = this.#step(chunk)
      if (fault !== null) this.#fail(fault)
    }
    this.#kept.endChunk(chunk, this.#offset)
    this.#offset += chunk.length
  }

  end(): MultipartScan {
    if (this.#offset === 0) this.#fail('empty')
    if (this.#state !== 'closed') this.#fail('no_closing_boundary')
    if (this.#matched % 2 === 1) this.#fail('trailing_bytes')
    if (this.#failure !== null) return this.#failure
    const duplicates = [...this.#duplicates]
    return { kind: 'form', fields: this.#fields, duplicates, lengthBytes: this.#offset }
  }

  #step(chunk: Buffer): Fault {
    switch (this.#state) {
      case 'content':
        return this.#crossContent(chunk)
      case 'delimiter':
        return this.#endDelimiter(chunk[this.#i] as number)
      case 'head':
        return this.#crossHead(chunk)
      case 'closed':
        return this.#endBody(chunk[this.#i] as number)
    }
  }

  #crossContent(chunk: Buffer): Fault {
    const from = this.#i
    const hit = this.#findBoundary(chunk, from)
    this.#i = hit ?? chunk.length
    if (hit === null) {
      const kept = this.#needle.length + 1
      const last = chunk.subarray(Math.max(from, chunk.length - kept))
      // The last bytes may be the line break and the boundary: the sink gets them once that is ruled out.
      if (this.#sunk) this.#show(chunk, from, chunk.length - kept)
      this.#tail = Buffer.concat([this.#tail, last]).subarray(-kept)
      return null
    }
    const before = (k: number) => (k >= from ? chunk[k] : this.#tail[this.#tail.length - from + k])
    if (before(hit - 2) !== CR || before(hit - 1) !== LF) return 'stray_boundary'
    if (this.#parts === 0 && this.#offset + hit > 0) return 'preamble'
    if (this.#sunk) this.#show(chunk, from, hit - 2)
    this.#sunk = false
    const fault = this.#endValue(chunk, hit - 2)
    this.#i = fault === null ? hit + this.#needle.length : hit
    this.#state = 'delimiter'
    this.#matched = 0
    return fault
  }

  /** Passes the content up to `end` to the sink. `end` is before `from` if it is in the tail. */
  #show(chunk: Buffer, from: number, end: number): void {
    this.#sink?.write(this.#tail.subarray(0, Math.max(0, this.#tail.length + Math.min(0, end - from))))
    if (end > from) this.#sink?.write(chunk.subarray(from, end))
  }

  /** Offset of the next boundary in the chunk; negative if it began in the previous chunk. */
  #findBoundary(chunk: Buffer, from: number): number | null {
    const { length } = this.#tail
    if (length > 0) {
      const seam = Buffer.concat([this.#tail, chunk.subarray(from, from + this.#needle.length - 1)])
      const hit = seam.indexOf(this.#needle)
      if (hit >= 0) return from + hit - length
    }
    const hit = chunk.indexOf(this.#needle, from)
    return hit < 0 ? null : hit
  }

  #endValue(chunk: Buffer, end: number): Fault {
    if (this.#field === null) return null
    const { name, asciiOnly } = this.#field
    this.#field = null
    const kept = this.#kept.take(chunk, this.#offset, end)
    const value = kept !== null && kept.length <= MULTIPART_LIMITS.valueBytesMax ? kept : null
    if (value !== null && !isUtf8(value)) return 'not_utf8'
    if (value !== null && asciiOnly && !isAscii(value)) return 'ambiguous_part'
    this.#fields.set(name, value === null ? null : value.toString())
    return null
  }

  /** After a boundary comes a line break and a part, or two dashes. */
  #endDelimiter(byte: number): Fault {
    if (this.#matched === 0) this.#closing = byte === DASH
    const expected = this.#closing ? DASH : this.#matched === 0 ? CR : LF
    if (byte !== expected) return 'stray_boundary'
    this.#i++
    this.#matched++
    if (this.#matched < 2) return null
    if (this.#closing) {
      this.#state = 'closed'
      this.#matched = 0
      return null
    }
    this.#parts++
    this.#state = 'head'
    this.#headStart = this.#offset + this.#i
    this.#kept.open(this.#headStart, MULTIPART_LIMITS.partHeadBytesMax)
    // `matched` stays at 2: the delimiter's own line break is the first half of the empty line if the head is empty.
    return this.#parts > MULTIPART_LIMITS.partsMax ? 'too_many_parts' : null
  }

  /** The body may end with one line break, two (OpenAI's SDK 4) or none: parsers accept all. */
  #endBody(byte: number): Fault {
    if (this.#matched === 4 || byte !== (this.#matched % 2 === 0 ? CR : LF)) return 'trailing_bytes'
    this.#matched++
    this.#i++
    return null
  }

  #crossHead(chunk: Buffer): Fault {
    const from = this.#i
    const end = Math.min(chunk.length, this.#headStart + MULTIPART_LIMITS.partHeadBytesMax - this.#offset)
    let matched = this.#matched
    let i = from
    for (; i < end && matched < 4; i++) {
      const byte = chunk[i] as number
      if (byte === (matched % 2 === 0 ? CR : LF)) matched++
      else matched = byte === CR ? 1 : 0
    }
    this.#matched = matched
    this.#i = i
    if (matched < 4 && i < chunk.length) return 'part_head_too_large'
    return matched === 4 ? this.#startContent(chunk) : null
  }

  #startContent(chunk: Buffer): Fault {
    const bytes = (this.#kept.take(chunk, this.#offset, this.#i) ?? EMPTY).subarray(0, -4)
    this.#state = 'content'
    this.#tail = EMPTY
    if (bytes.includes(this.#needle)) return 'stray_boundary'
    const head = readPartHead(bytes)
    if (head === null) return 'bad_part_head'
    const name = this.#names.findText(head.name)
    if (name === null || name === AMBIGUOUS) {
      if (this.#names.findText(looseName(head.name)) !== null) return 'ambiguous_name'
      this.#sunk = this.#sink?.open(head) === true
      return null
    }
    if (!head.plain) return 'ambiguous_part'
    if (this.#fields.has(name)) this.#duplicates.add(name)
    else {
      this.#field = { name, asciiOnly: head.asciiOnly }
      // Until the boundary is complete, its first bytes may look like part of the value.
      this.#kept.open(this.#offset + this.#i, MULTIPART_LIMITS.valueBytesMax + this.#needle.length + 2)
    }
    return null
  }

  #fail(reason: UnreadableMultipart): void {
    this.#failure ??= { kind: 'unreadable', reason }
    this.#kept.drop()
    this.#fields.clear()
    this.#tail = EMPTY
  }
}
