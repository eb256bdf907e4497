import { isObject, objectShape, type ReplyDocument, SCALAR, type Shape } from '../metering/json-shape.ts'
import { type Metered, meterDocument, nothingDelivered, ReplyJson } from '../metering/meter.ts'
import type { UsageReader } from './endpoint.ts'
import { asObject } from './reading.ts'
import { REPLY_READERS } from './surfaces.ts'

const CR = 0x0d
const LF = 0x0a
const BLANKS = new Set([0x20, 0x09, CR])

/** Maximum non-blank lines, and maximum lines. Providers accept fewer. */
const FULL_LINES_MAX = 100_000
const LINES_MAX = 1_000_000

interface LineReader {
  write(bytes: Buffer): void
  readonly failed?: boolean
}

/**
 * Splits a text that arrives in pieces into lines. Accepts only texts that all parsers read alike: every line is one
 * JSON value or blank, and CR appears only before LF (elsewhere it is whitespace for JSON and a line end for many line
 * readers). Lines of any length are read without buffering.
 */
export class JsonLines<Reader extends LineReader> {
  readonly #open: () => Reader
  readonly #close: (reader: Reader) => boolean
  /** The reader of the current line; null while the line is blank. */
  #line: Reader | null = null
  #failed = false
  #endsInCr = false
  #lines = 0
  #fullLines = 0

  /** `close` is called at the end of each line. False: the text cannot be read. */
  constructor(open: () => Reader, close: (reader: Reader) => boolean) {
    this.#open = open
    this.#close = close
  }

  get failed(): boolean {
    return this.#failed
  }

  write(chunk: Buffer): void {
    let from = 0
    while (from < chunk.length && !this.#failed) {
      const lf = chunk.indexOf(LF, from)
      this.#take(chunk.subarray(from, lf < 0 ? chunk.length : lf))
      if (lf < 0) return
      this.#endLine()
      from = lf + 1
    }
  }

  end(): boolean {
    this.#endLine()
    return !this.#failed && this.#fullLines > 0
  }

  #take(bytes: Buffer): void {
    if (bytes.length === 0) return
    const cr = bytes.indexOf(CR)
    if (this.#endsInCr || (cr >= 0 && cr < bytes.length - 1)) this.#failed = true
    this.#endsInCr = cr >= 0
    if (this.#line === null && bytes.every((byte) => BLANKS.has(byte))) return
    this.#line ??= this.#open()
    this.#line.write(bytes)
    if (this.#line.failed === true) this.#failed = true
  }

  #endLine(): void {
    this.#endsInCr = false
    this.#lines++
    if (this.#lines > LINES_MAX) this.#failed = true
    const line = this.#line
    this.#line = null
    if (line === null || this.#failed) return
    this.#fullLines++
    if (!this.#close(line) || this.#fullLines > FULL_LINES_MAX) this.#failed = true
  }
}

/** Reads batch results as they pass, for the usage of each succeeded request. Other requests are free. */
export function readBatchResults(reader: UsageReader, onSucceeded: (metered: Metered) => void) {
  const spec = REPLY_READERS[reader]
  if (spec === undefined) throw new Error(`batches do not have replies of the kind ${reader}`)
  const { create } = spec
  const shape = lineShape(create(nothingDelivered()).layout.body)
  const lines = new JsonLines(
    () => new ReplyJson(shape),
    (line) => endLine(line.end()),
  )
  let defect: unknown = null

  function endLine(document: ReplyDocument | null): boolean {
    if (!isObject(document?.value)) return false
    const { result, response } = document.value
    const isMessage = isObject(result)
    const status = Number(asObject(response)['status_code'])
    if (isMessage ? result['type'] !== 'succeeded' : !(status >= 200 && status < 300)) return true
    const value = isMessage ? result['message'] : asObject(response)['body']
    const output = nothingDelivered()
    onSucceeded(meterDocument(create(output), output, { ...document, value }))
    return true
  }

  return {
    /** Never throws: an error in a socket's callback would end the process. */
    write(chunk: Buffer): void {
      try {
        lines.write(chunk)
      } catch (error) {
        defect ??= error
      }
    },
    end(): boolean {
      if (defect !== null) throw defect
      return lines.end()
    },
  }
}

function lineShape(body: Shape): Shape {
  return objectShape({
    result: objectShape({ type: SCALAR, message: body }),
    response: objectShape({ status_code: SCALAR, body }),
  })
}
