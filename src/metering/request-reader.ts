import { limits } from '../kernel/limits.ts'
import type { Borrowed } from '../kernel/memory.ts'
import { codingOf } from './content-coding.ts'
import { decodeCopy } from './decode-copy.ts'
import type { Picked, Place } from './json-place.ts'
import type { JsonScan } from './json-scan.ts'
import { JsonWalker } from './json-walker.ts'
import { boundaryOf, FOREIGN_CHARSET, MultipartScanner, type PartSink } from './multipart-scanner.ts'
import {
  type Doubt,
  REQUEST_MEMBERS,
  REQUEST_NAMES,
  type RecordsFound,
  type RequestFacts,
  type RequestMember,
} from './request-facts.ts'

/** Reads a request's body from its chunks as they pass. A reader can neither change nor stop a body. */
export interface RequestReader {
  /** A promise means: wait for it before the next chunk. */
  readonly write: (chunk: Borrowed) => Promise<void> | null
  end(): RequestFacts | Promise<RequestFacts>
}

/** Looks into the records of a JSON body as they pass. It costs a second pass, so only endpoints with records have a watch. */
export interface RecordWatch {
  readonly place: Place
  /** Takes the bytes of the values that the place hands over. */
  readonly seen?: (bytes: Borrowed) => void
  take(record: Picked): void
  /** There are more records than may be: no further record is looked into. */
  readonly isFull?: boolean
  /** `scan` has the values that were found around the records. */
  found(scan: JsonScan): RecordsFound
}

/** Parts of a body that few endpoints need besides: other members of JSON, other fields of a form, its files. */
export interface AlsoRead {
  readonly names?: Place
  readonly fields?: readonly RequestMember[]
  readonly files?: PartSink
}

const NOTHING_ELSE: AlsoRead = {}

/** A reader that never asks to wait. */
interface Scanner {
  write(chunk: Borrowed): null
  end(): RequestFacts
}

/** Chooses the reader by the request's content type and coding: a form is read as a form, all else as JSON. */
export function readerFor(
  contentType: string | undefined,
  contentEncoding: string | undefined,
  records: RecordWatch | null = null,
  also: AlsoRead = NOTHING_ELSE,
): RequestReader {
  // The headers of nearly every request.
  if (contentType === 'application/json' && contentEncoding === undefined) return jsonScanner(records, also)
  const coding = codingOf(contentEncoding)
  if (coding === 'unknown') return unreadable('unknown_content_encoding')
  const doubt = doubtOf(contentType ?? '', coding === 'identity' ? '' : coding.coding)
  const scanner = doubting(scannerFor(contentType ?? '', records, also), doubt)
  return coding === 'identity' ? scanner : readEncoded(scanner, coding.coding)
}

/** How much of a text at hand is read at a time: other work of the event loop comes in between. */
export const PIECE_BYTES = 1024 * 1024

export async function writeInPieces(text: Buffer, write: (piece: Buffer) => unknown): Promise<void> {
  for (let from = 0; from < text.length; from += PIECE_BYTES) {
    if (from > 0) await new Promise((resolve) => setImmediate(resolve))
    await write(text.subarray(from, from + PIECE_BYTES))
  }
}

/** The facts in a JSON text that is at hand as a whole. */
export function readAtOnce(text: Buffer, names: Place): RequestFacts {
  const json = new RequestJson(names)
  json.write(text)
  return json.end()
}

function readEncoded(scanner: Scanner, coding: string): RequestReader {
  const { decodedBodyBytesMax, decodedRatioMax: ratioMax } = limits
  const decoder = decodeCopy(coding, decodedBodyBytesMax, (bytes) => scanner.write(bytes), { ratioMax })
  return {
    write: (chunk) => decoder.write(chunk),
    async end() {
      const state = await decoder.end()
      if (state === 'whole') return scanner.end()
      return { kind: 'unreadable', reason: state === 'corrupt' ? 'corrupt_content_encoding' : state }
    },
  }
}

/** The reader of a body whose format is not even clear. */
export function unreadable(reason: string): Scanner {
  return { write: () => null, end: () => ({ kind: 'unreadable', reason }) }
}

function scannerFor(contentType: string, records: RecordWatch | null, also: AlsoRead): Scanner {
  if (/^\s*multipart\/form-data\b/i.test(contentType)) return formScanner(contentType, also)
  if (/multipart/i.test(contentType)) return unreadable('ambiguous_content_type')
  const json = jsonScanner(records, also)
  return /urlencoded/i.test(contentType) ? wary(json) : json
}

/** The doubt about a body as a whole, by its content type and coding. */
function doubtOf(contentType: string, coding: string): Doubt | null {
  if (coding === 'deflate') return 'deflate'
  return FOREIGN_CHARSET.test(contentType) ? 'foreign_charset' : null
}

function doubting(scanner: Scanner, doubt: Doubt | null): Scanner {
  if (doubt === null) return scanner
  return { write: (chunk) => scanner.write(chunk), end: () => doubted(scanner.end(), doubt) }
}

function doubted(facts: RequestFacts, doubt: Doubt): RequestFacts {
  return facts.kind === 'json' || facts.kind === 'form' ? { ...facts, doubt } : facts
}

/** curl says `urlencoded` of every body that is given with -d. JSON without a separator of fields is one field of no name. */
function wary(json: Scanner): Scanner {
  let mayBeForm = false
  return {
    write(chunk) {
      mayBeForm ||= chunk.includes(AMPERSAND) || chunk.includes(SEMICOLON)
      return json.write(chunk)
    },
    end() {
      const facts = json.end()
      return mayBeForm ? doubted(facts, 'may_be_form') : facts
    },
  }
}

/** The separators of the fields of a form; some parsers still know the semicolon. */
const [AMPERSAND, SEMICOLON] = [0x26, 0x3b]

function formScanner(contentType: string, { fields = REQUEST_MEMBERS, files }: AlsoRead): Scanner {
  const boundary = boundaryOf(contentType)
  if (boundary === null) return unreadable('no_boundary')
  const form = new MultipartScanner<RequestMember>(boundary, fields, {}, files ?? null)
  return {
    write(chunk) {
      form.write(chunk)
      return null
    },
    end() {
      const scan = form.end()
      return scan.kind === 'form'
        ? { kind: 'form', scan, doubt: null }
        : { kind: 'unreadable', reason: scan.reason }
    },
  }
}

function jsonScanner(records: RecordWatch | null, { names = REQUEST_NAMES }: AlsoRead): Scanner {
  return records === null ? new RequestJson(names) : jsonScannerWith(records, names)
}

/** Schemas of tools have properties called `url` or `id`. The cost of tools is read from the member as a whole. */
const TOOLS_UNMARKED = { unmarked: 'tools' }

class RequestJson implements Scanner {
  readonly #json: JsonWalker

  constructor(names: Place) {
    this.#json = new JsonWalker(names, TOOLS_UNMARKED)
  }

  write(chunk: Borrowed): null {
    this.#json.write(chunk)
    return null
  }

  end(): RequestFacts {
    const scan = this.#json.end() as JsonScan<RequestMember>
    if (scan.kind === 'unreadable') return { kind: 'unreadable', reason: scan.reason }
    return { kind: 'json', scan, records: null, doubt: null }
  }
}

function jsonScannerWith(records: RecordWatch, names: Place): Scanner {
  const json = new RequestJson(names)
  const walker = new JsonWalker(records.place, {
    onElement: (record) => records.take(record),
    ...(records.seen === undefined ? {} : { onBytes: records.seen }),
  })
  return {
    write(chunk) {
      if (records.isFull !== true) walker.write(chunk)
      return json.write(chunk)
    },
    end() {
      const facts = json.end()
      return facts.kind === 'json' ? { ...facts, records: records.found(walker.end()) } : facts
    },
  }
}
