import { isAscii, isUtf8 } from 'node:buffer'
import { Capture } from './capture.ts'
import { looseName, type PartHead, readPartHead } from './multipart-head.ts'
import {
  MULTIPART_SCAN_LIMITS,
  type MultipartField,
  type MultipartScan,
  type MultipartScanLimits,
  type UnreadableMultipart,
} from './multipart-scan.ts'
import { WatchedNames } from './watched-names.ts'

const CR = 0x0d
const LF = 0x0a
const DASH = 0x2d
const EMPTY = Buffer.alloc(0)

const PARAMETER =
  /[ \t]*;[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"([^"\\]*)")[ \t]*/y
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=?-]{1,70}$/

/**
 * The boundary in a `Content-Type` of `multipart/form-data`, or null where there is none that every parser reads the
 * same way: RFC 2046 allows 70 characters; we leave out the space, which some parsers trim, and what must be quoted
 * but is not.
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

/**
 * Finds the text fields of a multipart/form-data body that arrives in pieces, without keeping it. It reads only what
 * all parsers read alike: lines end in CRLF, and the boundary stands nowhere but in delimiter lines, without
 * padding, so whoever finds delimiters in a more generous way finds the same ones. The answer does not depend on how
 * the body was cut, and no chunk is referred to after `write` returns.
 */
export class MultipartScanner<Name extends string = string> {
  readonly #names: WatchedNames<Name>
  readonly #limits: MultipartScanLimits
  readonly #needle: Buffer
  readonly #fields = new Map<Name, MultipartField>()
  readonly #duplicates = new Set<Name>()
  readonly #head: Capture
  readonly #value: Capture
  #failure: Extract<MultipartScan, { kind: 'unreadable' }> | null = null
  #ended = false
  /** The body's offset of the first byte of the chunk at hand. */
  #offset = 0
  /** What precedes the first boundary is searched as content too, and must be nothing. */
  #state: State = 'content'
  #parts = 0
  #contentStart = 0
  /** The last bytes of the content so far, in which a boundary may have begun; at first the line break it needs. */
  #tail = Buffer.from('\r\n')
  #headLength = 0
  /** How many bytes of the line break, the empty line or the end are there. */
  #matched = 0
  #delimiterByte = 0
  #part: { readonly name: Name; readonly head: PartHead } | null = null

  constructor(boundary: string, names: Iterable<Name>, limits: Partial<MultipartScanLimits> = {}) {
    this.#names = new WatchedNames(names)
    this.#limits = { ...MULTIPART_SCAN_LIMITS, ...limits }
    this.#needle = Buffer.from(`--${boundary}`, 'latin1')
    this.#head = new Capture(this.#limits.partHeadBytesMax)
    this.#value = new Capture(this.#limits.valueBytesMax)
  }

  write(chunk: Uint8Array): void {
    if (this.#ended) throw new Error('MultipartScanner: write after end')
    if (this.#failure !== null) return
    const room = this.#limits.bodyBytesMax - this.#offset
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.length, room))
    for (let i = 0; i < bytes.length && this.#failure === null; ) {
      if (this.#state === 'content') i = this.#crossContent(bytes, i)
      else if (this.#state === 'head') i = this.#crossHead(bytes, i)
      else if (this.#state === 'delimiter') this.#endDelimiter(bytes[i] as number, i++)
      else this.#endBody(bytes[i] as number, i++)
    }
    if (chunk.length > room) this.#fail('too_large', room)
    this.#offset += bytes.length
  }

  end(): MultipartScan<Name> {
    this.#ended = true
    if (this.#offset === 0) this.#fail('empty', 0)
    if (this.#state !== 'closed') this.#fail('no_closing_boundary', 0)
    if (this.#matched === 1) this.#fail('trailing_bytes', -1)
    if (this.#failure !== null) return this.#failure
    return { kind: 'form', fields: this.#fields, duplicates: [...this.#duplicates] }
  }

  #crossContent(chunk: Buffer, from: number): number {
    const hit = this.#findBoundary(chunk, from)
    if (this.#part !== null) this.#value.append(chunk, from, Math.max(from, hit ?? chunk.length))
    if (hit === null) {
      const kept = this.#needle.length + 1
      const content = chunk.subarray(Math.max(from, chunk.length - kept))
      this.#tail = Buffer.concat([this.#tail, content]).subarray(-kept)
      return chunk.length
    }
    const before = (k: number) => (k >= from ? chunk[k] : this.#tail[this.#tail.length - from + k])
    if (before(hit - 2) !== CR || before(hit - 1) !== LF) return this.#fail('stray_boundary', hit)
    if (this.#parts === 0 && this.#offset + hit > 0) return this.#fail('preamble', hit)
    this.#endPart(hit - 2)
    this.#state = 'delimiter'
    this.#matched = 0
    return hit + this.#needle.length
  }

  /** Where in the chunk the next boundary begins: negative if it began in the one before. */
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

  #endPart(end: number): void {
    if (this.#part === null) return
    const { name, head } = this.#part
    this.#part = null
    const span = { start: this.#contentStart, end: this.#offset + end }
    const value = this.#value.take(span.end - span.start)
    if (value === null) this.#fields.set(name, { kind: 'too_long', ...span })
    else if (!isUtf8(value)) this.#fail('not_utf8', end)
    else if (head.asciiOnly && !isAscii(value)) this.#fail('ambiguous_part', end)
    else this.#fields.set(name, { kind: 'text', value: value.toString('utf8'), ...span })
  }

  /** Behind a boundary there is a line break, and a part, or two dashes, and nothing more. */
  #endDelimiter(byte: number, i: number): void {
    if (this.#matched === 0) {
      if (byte !== CR && byte !== DASH) return void this.#fail('stray_boundary', i)
      this.#delimiterByte = byte
      this.#matched = 1
      return
    }
    if (byte !== (this.#delimiterByte === CR ? LF : DASH)) return void this.#fail('stray_boundary', i)
    this.#matched = 0
    if (byte === DASH) {
      this.#state = 'closed'
      return
    }
    this.#parts++
    if (this.#parts > this.#limits.partsMax) return void this.#fail('too_many_parts', i)
    this.#state = 'head'
    this.#headLength = 0
    // The delimiter's line break may be the first half of the empty line: then the head is empty.
    this.#matched = 2
  }

  /** A line break at the very end, or none: clients differ, parsers do not mind. */
  #endBody(byte: number, i: number): void {
    if (byte !== (this.#matched === 0 ? CR : LF) || this.#matched === 2) this.#fail('trailing_bytes', i)
    this.#matched++
  }

  #crossHead(chunk: Buffer, from: number): number {
    let i = from
    while (i < chunk.length && this.#matched < 4) {
      const byte = chunk[i] as number
      if (byte === (this.#matched % 2 === 0 ? CR : LF)) this.#matched++
      else this.#matched = byte === CR ? 1 : 0
      i++
      this.#headLength++
      if (this.#headLength > this.#limits.partHeadBytesMax) return this.#fail('part_head_too_large', i)
    }
    this.#head.append(chunk, from, i)
    if (this.#matched === 4) this.#startContent(i)
    return i
  }

  #startContent(i: number): void {
    const bytes = this.#head.take(Math.max(0, this.#headLength - 4)) ?? EMPTY
    this.#state = 'content'
    this.#contentStart = this.#offset + i
    this.#tail = EMPTY
    if (bytes.includes(this.#needle)) return void this.#fail('stray_boundary', i)
    const head = readPartHead(bytes)
    if (head === null) return void this.#fail('bad_part_head', i)
    const name = this.#names.find(head.name)
    if (name === undefined) {
      const loose = looseName(head.name)
      if (this.#names.find(loose) !== undefined || this.#names.isAmbiguous(loose))
        this.#fail('ambiguous_name', i)
      return
    }
    if (!head.plain) return void this.#fail('ambiguous_part', i)
    if (this.#fields.has(name)) this.#duplicates.add(name)
    else this.#part = { name, head }
  }

  /** The first fault counts. `i` is where in the chunk at hand it is. */
  #fail(reason: UnreadableMultipart, i: number): number {
    this.#failure ??= { kind: 'unreadable', reason, at: this.#offset + i }
    this.#head.clear()
    this.#value.clear()
    this.#fields.clear()
    this.#tail = EMPTY
    return 0
  }
}
