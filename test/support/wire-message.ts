import { Buffer } from 'node:buffer'

export type Bytes = Buffer | string

/** `eof`: a response that ends with the connection. */
export type Framing = 'none' | 'sized' | 'chunked' | 'eof'

export type WireMessage = {
  startLine: string
  headerLines: string[]
  framing: Framing
  /** The content without chunk framing. */
  body: Buffer
  /** The exact bytes after the head. */
  rawBody: Buffer
  chunks: number[]
  trailerLines: string[]
}

/** The role of a message decides its framing: a reply to HEAD has no body, whatever its headers say. */
export type Role = { kind: 'request' } | { kind: 'response'; method: string }

const lineBytesMax = 4 * 1024 * 1024
const bodyBytesMax = 192 * 1024 * 1024
const chunksMax = 4_000_000
const headEnd = Buffer.from('\r\n\r\n')
const lineEnd = Buffer.from('\r\n')

export const toBuffer = (bytes: Bytes): Buffer =>
  typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes

export function headerValues(lines: readonly string[], name: string): string[] {
  const wanted = name.toLowerCase()
  return lines.filter((line) => headerName(line) === wanted).map((line) => headerValue(line))
}

export const headerName = (line: string): string =>
  line.slice(0, Math.max(line.indexOf(':'), 0)).toLowerCase()

export const headerValue = (line: string): string => line.slice(line.indexOf(':') + 1).trim()

type State = 'head' | 'sized' | 'eof' | 'chunk size' | 'chunk data' | 'chunk end' | 'trailers' | 'done'

/** Shares no parser with Node, undici or the gateway, so a bug there cannot hide here. */
export class MessageReader {
  readonly #role: Role
  #state: State = 'head'
  #held: Buffer = Buffer.alloc(0)
  #startLine = ''
  #headerLines: string[] = []
  #framing: Framing = 'none'
  #left = 0
  #bodyBytes = 0
  readonly #body: Buffer[] = []
  readonly #rawBody: Buffer[] = []
  readonly #chunks: number[] = []
  readonly #trailerLines: string[] = []

  constructor(role: Role) {
    this.#role = role
  }

  get hasHead(): boolean {
    return this.#state !== 'head'
  }

  get done(): boolean {
    return this.#state === 'done'
  }

  get bodyBytes(): number {
    return this.#bodyBytes
  }

  /** Whether any byte of the message has arrived, including a partial head. */
  get touched(): boolean {
    return this.hasHead || this.#held.length > 0
  }

  get startLine(): string {
    return this.#startLine
  }

  get headerLines(): string[] {
    return this.#headerLines
  }

  push(bytes: Buffer): Buffer {
    const buffer = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    let at = 0
    let bodyFrom = this.#state === 'head' ? -1 : 0
    for (;;) {
      const before = this.#state
      const next = this.#step(buffer, at)
      if (before === 'head' && this.hasHead) bodyFrom = next
      if (next === at && this.#state === before) break
      at = next
      if (this.#state === 'done') break
    }
    if (bodyFrom >= 0 && at > bodyFrom) this.#rawBody.push(buffer.subarray(bodyFrom, at))
    if (this.#state === 'done') {
      this.#held = Buffer.alloc(0)
      return buffer.subarray(at)
    }
    this.#held = Buffer.from(buffer.subarray(at))
    if (this.#held.length > lineBytesMax) throw new Error(`a line or head above ${lineBytesMax} bytes`)
    return Buffer.alloc(0)
  }

  /** How the message has ended, after the end of the connection. */
  endOfInput(): 'complete' | 'closed' | 'cut' {
    if (this.#state === 'done') return 'complete'
    return this.#state === 'eof' ? 'closed' : 'cut'
  }

  message(): WireMessage {
    const body = Buffer.concat(this.#body)
    return {
      startLine: this.hasHead ? this.#startLine : this.#held.toString('latin1'),
      headerLines: [...this.#headerLines],
      framing: this.#framing,
      body,
      // Without chunks both are the same bytes, and copies of large bodies take a third of a test's time.
      rawBody: this.#framing === 'chunked' ? Buffer.concat(this.#rawBody) : body,
      chunks: [...this.#chunks],
      trailerLines: [...this.#trailerLines],
    }
  }

  #step(buffer: Buffer, at: number): number {
    switch (this.#state) {
      case 'head':
        return this.#readHead(buffer, at)
      case 'sized':
      case 'eof':
      case 'chunk data':
        return this.#readContent(buffer, at)
      case 'chunk size':
        return this.#readChunkSize(buffer, at)
      case 'chunk end':
        return this.#readChunkEnd(buffer, at)
      case 'trailers':
        return this.#readTrailer(buffer, at)
      case 'done':
        return at
    }
  }

  #readHead(buffer: Buffer, at: number): number {
    const end = buffer.indexOf(headEnd, at)
    if (end < 0) return at
    const [startLine = '', ...headerLines] = buffer.toString('latin1', at, end).split('\r\n')
    this.#startLine = startLine
    this.#headerLines = headerLines
    this.#beginBody()
    return end + headEnd.length
  }

  #beginBody(): void {
    const length = headerValues(this.#headerLines, 'content-length')[0]
    const chunked = headerValues(this.#headerLines, 'transfer-encoding')
      .join(',')
      .toLowerCase()
      .includes('chunked')
    if (this.#role.kind === 'response' && bodiless(this.#startLine, this.#role.method)) {
      this.#state = 'done'
    } else if (chunked) {
      this.#framing = 'chunked'
      this.#state = 'chunk size'
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) throw new Error(`content-length "${length}"`)
      this.#framing = 'sized'
      this.#left = Number(length)
      this.#state = this.#left === 0 ? 'done' : 'sized'
    } else if (this.#role.kind === 'response') {
      this.#framing = 'eof'
      this.#state = 'eof'
    } else {
      this.#state = 'done'
    }
  }

  #readContent(buffer: Buffer, at: number): number {
    const end = this.#state === 'eof' ? buffer.length : Math.min(buffer.length, at + this.#left)
    if (end === at) return at
    this.#body.push(buffer.subarray(at, end))
    this.#bodyBytes += end - at
    if (this.#bodyBytes > bodyBytesMax) throw new Error(`a body above ${bodyBytesMax} bytes`)
    if (this.#state === 'eof') return end
    this.#left -= end - at
    if (this.#left === 0) this.#state = this.#state === 'sized' ? 'done' : 'chunk end'
    return end
  }

  #readChunkSize(buffer: Buffer, at: number): number {
    const end = buffer.indexOf(lineEnd, at)
    if (end < 0) return at
    const line = buffer.toString('latin1', at, end)
    const digits = /^([0-9a-fA-F]{1,12})(?:;.*)?$/.exec(line)?.[1]
    if (digits === undefined) throw new Error(`chunk size line ${JSON.stringify(line)}`)
    this.#left = Number.parseInt(digits, 16)
    if (this.#left === 0) {
      this.#state = 'trailers'
    } else {
      if (this.#chunks.length === chunksMax) throw new Error(`more than ${chunksMax} chunks`)
      this.#chunks.push(this.#left)
      this.#state = 'chunk data'
    }
    return end + lineEnd.length
  }

  #readChunkEnd(buffer: Buffer, at: number): number {
    if (buffer.length - at < lineEnd.length) return at
    const mark = buffer.subarray(at, at + lineEnd.length)
    if (!mark.equals(lineEnd)) throw new Error(`chunk ends with ${mark.toString('hex')}`)
    this.#state = 'chunk size'
    return at + lineEnd.length
  }

  #readTrailer(buffer: Buffer, at: number): number {
    const end = buffer.indexOf(lineEnd, at)
    if (end < 0) return at
    if (end === at) this.#state = 'done'
    else this.#trailerLines.push(buffer.toString('latin1', at, end))
    return end + lineEnd.length
  }
}

export const statusOf = (statusLine: string): number => Number(statusLine.split(' ')[1] ?? Number.NaN)

function bodiless(statusLine: string, method: string): boolean {
  const status = statusOf(statusLine)
  return method === 'HEAD' || status < 200 || status === 204 || status === 304
}
