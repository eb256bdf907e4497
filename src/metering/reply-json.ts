import type { Place } from './json-place.ts'
import type { UnreadableJson } from './json-scan.ts'
import { JsonWalker } from './json-walker.ts'
import type { MeterFault, ReplyDocument } from './meter.ts'

/** Documents up to this size are parsed whole; of larger ones only the places that a reader names are read. */
const PARSED_BYTES_MAX = 256 * 1024

const TOLERANT = { tolerant: true }
const TOO_LARGE: ReadonlySet<UnreadableJson> = new Set(['too_large', 'too_much', 'too_deep'])

/** Reads a JSON text that is whole. */
export function readJson(place: Place, text: Buffer): ReplyDocument | MeterFault {
  if (text.length > PARSED_BYTES_MAX) return walk(place, text)
  try {
    return new ParsedDocument(JSON.parse(text.toString()), text, place)
  } catch {
    // Some servers write control characters into strings as they are, which is no reason not to read the usage.
    return walk(place, text)
  }
}

/** Reads a JSON text that arrives in pieces. */
export class ReplyJson {
  readonly #place: Place
  #pieces: Buffer[] = []
  #bytes = 0
  /** Takes over when the text becomes too long to be kept. */
  #walker: JsonWalker | null = null

  constructor(place: Place) {
    this.#place = place
  }

  write(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#walker === null && this.#bytes <= PARSED_BYTES_MAX) this.#pieces.push(Buffer.from(piece))
    else {
      this.#walker ??= this.#openWalker()
      this.#walker.write(piece)
    }
  }

  end(): ReplyDocument | MeterFault {
    if (this.#walker !== null) return ended(this.#walker)
    const pieces = this.#pieces
    this.#pieces = []
    return readJson(this.#place, pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces))
  }

  #openWalker(): JsonWalker {
    const walker = new JsonWalker(this.#place, TOLERANT)
    for (const piece of this.#pieces) walker.write(piece)
    this.#pieces = []
    return walker
  }
}

function walk(place: Place, text: Buffer): ReplyDocument | MeterFault {
  const walker = new JsonWalker(place, TOLERANT)
  walker.write(text)
  return ended(walker)
}

function ended(walker: JsonWalker): ReplyDocument | MeterFault {
  const scan = walker.end()
  if (scan.kind === 'unreadable') return TOO_LARGE.has(scan.reason) ? 'too_large' : 'not_json'
  const { value, duplicates, overflow } = scan.picked
  return { value, repeatsNames: duplicates.length > 0, isWhole: false, overflow }
}

/** A document that was parsed whole. Only documents with usage are checked for names that are given twice. */
class ParsedDocument implements ReplyDocument {
  readonly value: unknown
  readonly isWhole = true
  readonly overflow = false
  readonly #text: Buffer
  readonly #place: Place

  constructor(value: unknown, text: Buffer, place: Place) {
    this.value = value
    this.#text = text
    this.#place = place
  }

  /**
   * The text has at least the names of its value, and at most as many as `namesAtMost` counts: if both numbers are the
   * same, no name is given twice. Where they differ, as with texts that begin with a colon, the text is walked.
   */
  get repeatsNames(): boolean {
    if (countNames(this.value) === namesAtMost(this.#text)) return false
    const walked = walk(this.#place, this.#text)
    return typeof walked === 'string' || walked.repeatsNames
  }
}

function countNames(document: unknown): number {
  let names = 0
  const open: unknown[] = [document]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null) continue
    if (Array.isArray(value)) for (const element of value) open.push(element)
    else
      for (const name in value) {
        names++
        open.push((value as Readonly<Record<string, unknown>>)[name])
      }
  }
  return names
}

const [SPACE, QUOTE, COLON, BACKSLASH] = [0x20, 0x22, 0x3a, 0x5c]

/**
 * How many colons stand behind a quote that may close a name. Every name has such a colon; so does a string that begins
 * with a colon. A quote behind a single backslash is within a string, as in the arguments of a tool.
 */
function namesAtMost(bytes: Buffer): number {
  let names = 0
  for (let i = bytes.indexOf(COLON); i > 0; i = bytes.indexOf(COLON, i + 1)) {
    let before = i - 1
    while ((bytes[before] as number) <= SPACE) before--
    if (bytes[before] !== QUOTE) continue
    if (bytes[before - 1] !== BACKSLASH || bytes[before - 2] === BACKSLASH) names++
  }
  return names
}
