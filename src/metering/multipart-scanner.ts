import { isAscii, isUtf8 } from 'node:buffer'
import { AMBIGUOUS, NameTable } from './json-shape.ts'

type UnreadableMultipart =
  | 'empty'
  /** The body does not begin with its boundary: some parsers skip such bytes, some refuse them. */
  | 'preamble'
  /** The boundary occurs outside of a delimiter line. */
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

export type PartHead = NonNullable<ReturnType<typeof readPartHead>>

const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t\x20-\x7e\x80-\xff]*)$/
/** The header that all clients write: the name first, in quotes, or without quotes if it is a word. */
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
function readPartHead(bytes: Buffer) {
  const headers = new Map<string, string>()
  for (const line of bytes.toString('latin1').split('\r\n')) {
    const [, field, value] = HEADER_LINE.exec(line) ?? []
    if (field === undefined || value === undefined) return null
    const key = field.toLowerCase()
    if (headers.has(key) && key.startsWith('content-')) return null
    headers.set(key, value)
  }
  const disposition = headers.get('content-disposition') ?? ''
  const match = DISPOSITION.exec(disposition)
  if (match === null) return null
  const parameters = disposition.slice(match[0].length)
  if (ANOTHER_NAME.test(parameters.replace(FILENAME, ';').replace(FILENAME_EXTENDED, ';'))) return null

  const raw = Buffer.from(match[1] ?? match[2] ?? '', 'latin1')
  if (!isUtf8(raw)) return null
  const contentType = headers.get('content-type') ?? 'text/plain'
  const type = TEXT_TYPE.exec(contentType)
  const isPlainEncoding = PLAIN_ENCODING.test(headers.get('content-transfer-encoding') ?? 'binary')
  return {
    name: raw.toString('utf8'),
    /** Every parser reads the part as a text field of that name. */
    plain: parameters === '' && type !== null && isPlainEncoding,
    /** Non-ASCII text would be read in another charset than UTF-8. */
    asciiOnly: (type?.[2] ?? 'utf-8').toLowerCase() !== 'utf-8',
    isFile: FILENAME.test(parameters) || FILENAME_EXTENDED.test(parameters),
    /** The head states no transfer encoding and no charset other than UTF-8. */
    verbatim: isPlainEncoding && !headers.has('content-encoding') && !FOREIGN_CHARSET.test(contentType),
  }
}

/** The name as the most lenient parsers read it: they decode percent escapes, trim, and treat `a[]` as a list `a`. */
export function looseName(name: string): string {
  return name
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\[.*/s, '')
    .trim()
}

const FORM_TYPE =
  /^[ \t]*multipart\/form-data[ \t]*;(?:[ \t]*charset="?utf-8"?[ \t]*;)?[ \t]*boundary=(?:"([^"\\]+)"|([^ \t"(),/:;=?]+))[ \t]*(?:;[ \t]*charset="?utf-8"?)?$/i
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=?-]{1,70}$/

/** Null for any other content type. No spaces or unquoted special characters, which some parsers read differently. */
export function boundaryOf(contentType: string): string | null {
  const [, quoted, bare] = FORM_TYPE.exec(contentType) ?? []
  const boundary = quoted ?? bare ?? ''
  return BOUNDARY.test(boundary) ? boundary : null
}

type ScanState = 'content' | 'head' | 'closed'

interface OpenField {
  readonly name: string
  readonly asciiOnly: boolean
  readonly value: Buffer[]
  bytes: number
}

const LINE_BREAK = '\r\n'
const EMPTY_LINE = Buffer.from('\r\n\r\n')

/** Smaller chunks are collected first, because each scan searches the bytes of an open head again. */
const SCANNED_BYTES_MIN = 4 * 1024

/**
 * Finds the text fields of a multipart/form-data body that arrives in pieces, without buffering it. Accepts only bodies
 * that all parsers read alike: lines end in CRLF, and the boundary occurs only in delimiter lines, without padding, so
 * a lenient parser finds the same delimiters. The result does not depend on how the body was split, and no chunk is
 * retained after `write` returns.
 */
export class MultipartScanner {
  readonly #names: NameTable<string>
  readonly #needle: Buffer
  readonly #sink: PartSink | null
  readonly #found = { fields: new Map<string, string | null>(), duplicates: new Set<string>() }
  #failure: UnreadableMultipart | null = null
  #state: ScanState = 'content'
  #parts = 0
  #lengthBytes = 0
  /** Bytes for the next scan. The line break before the first boundary is assumed. */
  #pending: Buffer[] = [Buffer.from(LINE_BREAK)]
  #unseenBytes = 0
  #at = 0
  /** The watched field of the current part, with its value so far; `sink` if the sink wants the part. */
  #part: OpenField | 'sink' | null = null

  constructor(boundary: string, names: readonly string[], sink: PartSink | null = null) {
    this.#sink = sink
    this.#names = new NameTable(names.map((name) => [name, name]))
    this.#needle = Buffer.from(`--${boundary}`, 'latin1')
  }

  write(chunk: Buffer): void {
    this.#lengthBytes += chunk.length
    if (this.#failure !== null) return
    this.#unseenBytes += chunk.length
    if (this.#unseenBytes < SCANNED_BYTES_MIN) this.#pending.push(Buffer.from(chunk))
    else this.#scan(this.#pending.length === 0 ? chunk : Buffer.concat([...this.#pending, chunk]))
  }

  end(): MultipartScan {
    this.#scan(Buffer.concat(this.#pending))
    if (this.#lengthBytes === 0) this.#fail('empty')
    if (this.#state !== 'closed') this.#fail('no_closing_boundary')
    const remainder = Buffer.concat(this.#pending).toString('latin1')
    // The body may end with one line break, two (OpenAI's SDK 4) or none: parsers accept all.
    if (!['', LINE_BREAK, LINE_BREAK + LINE_BREAK].includes(remainder)) this.#fail('trailing_bytes')
    if (this.#failure !== null) return { kind: 'unreadable', reason: this.#failure }
    const { fields, duplicates } = this.#found
    return { kind: 'form', fields, duplicates: [...duplicates], lengthBytes: this.#lengthBytes }
  }

  #scan(bytes: Buffer): void {
    this.#at = 0
    let hasMore = true
    while (hasMore && this.#failure === null) hasMore = this.#step(bytes)
    this.#unseenBytes = 0
    const hasRest = this.#failure === null && this.#at < bytes.length
    this.#pending = hasRest ? [Buffer.from(bytes.subarray(this.#at))] : []
  }

  /** False: more bytes are needed. */
  #step(bytes: Buffer): boolean {
    switch (this.#state) {
      case 'content':
        return this.#readContent(bytes)
      case 'head':
        return this.#readHead(bytes)
      case 'closed':
        return bytes.length - this.#at > EMPTY_LINE.length && this.#fail('trailing_bytes')
    }
  }

  #readContent(bytes: Buffer): boolean {
    const from = this.#at
    const hit = bytes.indexOf(this.#needle, from)
    const isBefore = this.#parts === 0 && (hit < 0 ? bytes.length - this.#needle.length : hit) > 2
    if (isBefore) return this.#fail('preamble')
    if (hit < 0) {
      // The last bytes may be the line break and the start of the boundary.
      const to = Math.max(from, bytes.length - this.#needle.length - 1)
      this.#passBytes(bytes.subarray(from, to))
      this.#at = to
      return false
    }
    const end = hit - LINE_BREAK.length
    if (end < from || bytes.toString('latin1', end, hit) !== LINE_BREAK) return this.#fail('stray_boundary')
    this.#passBytes(bytes.subarray(from, end))
    return this.#endPart() && this.#enter('head', hit + this.#needle.length)
  }

  /** After a boundary comes a line break and the head of a part, or two dashes. */
  #readHead(bytes: Buffer): boolean {
    const start = this.#at + LINE_BREAK.length
    if (bytes.length < start) return false
    const afterBoundary = bytes.toString('latin1', this.#at, start)
    if (afterBoundary === '--') return this.#enter('closed', start)
    if (afterBoundary !== LINE_BREAK) return this.#fail('stray_boundary')
    // If the head is empty, the line break of the delimiter is the first half of the empty line.
    const end = bytes.indexOf(EMPTY_LINE, this.#at)
    const known = end < 0 ? bytes.length : end + EMPTY_LINE.length
    if (known - start > MULTIPART_LIMITS.partHeadBytesMax) return this.#fail('part_head_too_large')
    if (end < 0) return false
    const head = bytes.subarray(start, Math.max(start, end))
    if (head.includes(this.#needle)) return this.#fail('stray_boundary')
    return this.#openPart(readPartHead(head)) && this.#enter('content', known)
  }

  #openPart(head: PartHead | null): boolean {
    this.#parts++
    if (this.#parts > MULTIPART_LIMITS.partsMax) return this.#fail('too_many_parts')
    if (head === null) return this.#fail('bad_part_head')
    const name = this.#names.findText(head.name)
    if (name === null || name === AMBIGUOUS) {
      if (this.#names.findText(looseName(head.name)) !== null) return this.#fail('ambiguous_name')
      this.#part = this.#sink?.open(head) === true ? 'sink' : null
      return true
    }
    if (!head.plain) return this.#fail('ambiguous_part')
    if (this.#found.fields.has(name)) this.#found.duplicates.add(name)
    else this.#part = { name, asciiOnly: head.asciiOnly, value: [], bytes: 0 }
    return true
  }

  #passBytes(bytes: Buffer): void {
    const part = this.#part
    if (part === null || bytes.length === 0) return
    if (part === 'sink') this.#sink?.write(bytes)
    else {
      part.bytes += bytes.length
      if (part.bytes <= MULTIPART_LIMITS.valueBytesMax) part.value.push(Buffer.from(bytes))
    }
  }

  #endPart(): boolean {
    const field = this.#part
    this.#part = null
    if (field === null || field === 'sink') return true
    const value = field.bytes > MULTIPART_LIMITS.valueBytesMax ? null : Buffer.concat(field.value)
    if (value !== null && !isUtf8(value)) return this.#fail('not_utf8')
    if (value !== null && field.asciiOnly && !isAscii(value)) return this.#fail('ambiguous_part')
    this.#found.fields.set(field.name, value === null ? null : value.toString())
    return true
  }

  #enter(state: ScanState, at: number): boolean {
    this.#state = state
    this.#at = at
    return true
  }

  #fail(reason: UnreadableMultipart): false {
    this.#failure ??= reason
    this.#found.fields.clear()
    return false
  }
}
