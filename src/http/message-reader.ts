import { HTTPParser } from 'node:_http_common'
import { type HeadGiven, headOf, type MessageHead, sizeOf } from './message-head.ts'

/** None of these may throw. */
export interface MessageReceiver {
  /** `none`: no body follows, whatever the head says, as in a reply to HEAD. */
  head(head: MessageHead): 'as_framed' | 'none'
  /** The chunk is good as long as the one that was read. */
  body(chunk: Buffer): void
  end(trailers: string[]): void
}

export interface HeadLimits {
  readonly headBytesMax: number
  readonly headLinesMax: number
}

/** The bytes are not HTTP, or their heads are larger than allowed. The code is the parser's, or this one's own. */
export interface WireError extends Error {
  readonly code: string
}

export const TOO_MANY_LINES = 'TOLLGATE_TOO_MANY_LINES'

const ON_BEGIN = HTTPParser.kOnMessageBegin | 0
const ON_LINES = HTTPParser.kOnHeaders | 0
const ON_HEAD = HTTPParser.kOnHeadersComplete | 0
const ON_BODY = HTTPParser.kOnBody | 0
const ON_END = HTTPParser.kOnMessageComplete | 0

const NOTHING = Buffer.alloc(0)
const CR = 0x0d
const LF = 0x0a
/** Behind the line before it. */
const EMPTY_LINE = Buffer.from('\n\r\n')
/** `RTSP/1.0` and the carriage return behind it. */
const VERSION_CHARS = 9
const OTHER_PROTOCOL = /^(?:RTSP| ICE)\//

/** What the parser is answered when it has read a head. With the last it stops there, as if HTTP ended with the head. */
const BODY_AS_FRAMED = 0
const NO_BODY = 1
const BODY_OURS = 2

/** The parser with whose reader it is. It calls back with itself as `this`. */
type Reading = HTTPParser & { reader: MessageReader }
type Callbacks = Record<number, (this: Reading, ...args: never[]) => unknown>

/**
 * Reads HTTP/1 messages off a connection. Grammar and framing are decided by Node's own parser alone, as they are in
 * `node:http`; of a body with a length the bytes are counted here. What is left out are the streams above it, which take
 * twice as long as everything below.
 */
export class MessageReader {
  readonly #parser = new HTTPParser()
  readonly #readsRequests: boolean
  readonly #limits: HeadLimits
  readonly #receiver: MessageReceiver
  /** Of a request line that is not whole yet, its last characters; null where there is none. */
  #lineSoFar: string | null = null
  #lines: string[] = []
  #target = ''
  #inBody = false
  #switches = false
  /** What follows a CONNECT is not ours to read. */
  #isLeft = false
  #begun = false
  #heads = 0
  #keepsErrors = false
  #keepAlive = true
  #tooManyLines = false
  /** How much is to come of a body that the parser does not see; null where it does. */
  #bodyLeft: number | null = null

  constructor(kind: 'request' | 'response', receiver: MessageReceiver, limits: HeadLimits) {
    this.#receiver = receiver
    this.#limits = limits
    this.#readsRequests = kind === 'request'
    this.#begin()
    Object.assign(this.#parser, { reader: this }, MessageReader.#callbacks)
  }

  /** The same for all: with closures of its own, a reader would take half a kilobyte more. */
  static readonly #callbacks: Callbacks = {
    [ON_BEGIN]() {
      this.reader.#begun = true
    },
    [ON_LINES](lines: string[], target: string) {
      this.reader.#onLines(lines, target)
    },
    [ON_HEAD](...given: HeadGiven) {
      return this.reader.#onHead(given)
    },
    [ON_BODY](chunk: Buffer) {
      this.reader.#onBody(chunk)
    },
    [ON_END]() {
      this.reader.#onEnd()
    },
  }

  /** A message has begun that has not ended yet. */
  get isWithin(): boolean {
    return this.#begun
  }

  /** Takes in what has arrived. An error is the end: nothing may be read after it. */
  read(chunk: Buffer): WireError | null {
    let rest = chunk
    while (rest.length > 0) {
      if (this.#isLeft) return null
      if (this.#inBody && this.#bodyLeft !== null) {
        rest = this.#readSized(rest, this.#bodyLeft)
        continue
      }
      // Nothing may follow a message that ended the connection. It knows that too, and keeps it to itself.
      if (this.#keepsErrors && !this.#keepAlive) return isLineEnds(rest) ? null : closed()
      const piece = this.#readsRequests ? pieceOf(rest) : rest
      if (this.#readsRequests && this.#isOfOtherProtocol(piece)) {
        return wireError('the request line is of another protocol', 'HPE_INVALID_CONSTANT')
      }
      const heads = this.#heads
      const keptErrors = this.#keepsErrors
      let taken = this.#execute(piece)
      if (keptErrors && this.#heads === heads) taken = this.#executeAnew(piece)
      if (typeof taken !== 'number') return taken
      // It stops behind a head that was told to, or that wants to switch protocols. Whether to is not its decision.
      const stopsRightly = this.#bodyLeft !== null || (this.#switches && !this.#inBody)
      if (taken !== piece.length && (taken <= 0 || !stopsRightly)) return this.#stopped()
      rest = rest.subarray(taken)
    }
    return null
  }

  /**
   * The parser takes the request lines of RTSP and Icecast for ones of HTTP, and does not tell which it was. What it is given
   * here has at most one request line, at its beginning: see `pieceOf`.
   */
  #isOfOtherProtocol(piece: Buffer): boolean {
    if (this.#lineSoFar === null && this.#begun) return false
    let start = 0
    // Line ends before a message are skipped.
    if (this.#lineSoFar === null) while (piece[start] === CR || piece[start] === LF) start += 1
    if (start === piece.length) return false
    const lineEnd = piece.indexOf(LF, start)
    const end = lineEnd === -1 ? piece.length : lineEnd
    const come = piece.toString('latin1', Math.max(start, end - VERSION_CHARS), end)
    const last = this.#lineSoFar === null ? come : (this.#lineSoFar + come).slice(-VERSION_CHARS)
    this.#lineSoFar = lineEnd === -1 ? last : null
    return lineEnd !== -1 && OTHER_PROTOCOL.test(last)
  }

  /**
   * Of a body whose length the parser has found, it need not see anything: it would copy what it gives out. What is
   * behind the body is returned.
   */
  #readSized(bytes: Buffer, left: number): Buffer {
    if (bytes.length < left) {
      this.#bodyLeft = left - bytes.length
      this.#receiver.body(bytes)
      return NOTHING
    }
    const isAll = bytes.length === left
    this.#receiver.body(isAll ? bytes : bytes.subarray(0, left))
    this.#bodyLeft = null
    this.#keepsErrors = true
    this.#onEnd()
    return isAll ? NOTHING : bytes.subarray(left)
  }

  /** The parser takes no more. Behind a CONNECT that is right; of a broken body it does not tell where it has stopped so. */
  #stopped(): WireError | null {
    return this.#inBody ? wireError('the body is broken', 'HPE_INVALID_CHUNK_SIZE') : null
  }

  /** The connection has ended. An error if that was in the middle of a message. */
  finish(): WireError | null {
    if (this.#inBody && this.#bodyLeft !== null) {
      return wireError('the connection ended within a body', 'HPE_INVALID_EOF_STATE')
    }
    return this.#parser.finish() ?? null
  }

  /** Gives its memory back, once whoever called it is done. */
  close(): void {
    setImmediate(() => this.#parser.close())
  }

  #begin(): void {
    const kind = this.#readsRequests ? HTTPParser.REQUEST : HTTPParser.RESPONSE
    this.#parser.initialize(kind, this, this.#limits.headBytesMax)
  }

  #execute(bytes: Buffer): number | WireError {
    const taken = this.#parser.execute(bytes)
    return this.#tooManyLines ? wireError('too many header lines', TOO_MANY_LINES) : taken
  }

  /**
   * A parser that has stopped behind a head keeps errors to itself until the next head is whole. Nearly every head comes
   * in one piece and is none; for others the parser begins anew, which takes longer than to read a head.
   */
  #executeAnew(bytes: Buffer): number | WireError {
    this.#keepsErrors = false
    this.#lines = []
    this.#target = ''
    this.#begun = false
    this.#begin()
    return this.#execute(bytes)
  }

  #onLines(lines: string[], target: string): void {
    if (target !== '') this.#target += target
    // More than 31 lines come in parts; nearly all heads come in one.
    if (this.#lines.length === 0) this.#lines = lines
    else for (const part of lines) this.#lines.push(part)
    // The parser cannot be stopped from here; what it still finds is not passed on.
    if (this.#lines.length > this.#limits.headLinesMax * 2) this.#tooManyLines = true
  }

  #onHead(given: HeadGiven): number {
    const [, , lines, , target, , , switches, keepAlive] = given
    this.#heads += 1
    this.#keepsErrors = false
    this.#keepAlive = keepAlive
    if (lines !== undefined) this.#onLines(lines, target ?? '')
    if (this.#tooManyLines) return NO_BODY
    const head = headOf(given, this.#lines, this.#target)
    this.#lines = []
    this.#target = ''
    this.#isLeft = head.method === 'CONNECT'
    this.#switches = switches && !this.#isLeft
    this.#inBody = true
    if (this.#receiver.head(head) === 'none') return NO_BODY
    this.#bodyLeft = sizeOf(head)
    return this.#bodyLeft === null ? BODY_AS_FRAMED : BODY_OURS
  }

  #onBody(chunk: Buffer): void {
    if (!this.#tooManyLines) this.#receiver.body(chunk)
  }

  #onEnd(): void {
    // Where the body is ours, the parser says so behind the head already.
    if (this.#tooManyLines || this.#bodyLeft !== null) return
    const trailers = this.#lines
    this.#lines = []
    this.#target = ''
    this.#inBody = false
    this.#begun = false
    if (this.#switches) this.#keepsErrors = true
    this.#receiver.end(trailers)
  }
}

/**
 * What the parser is given of requests at once. A message ends nowhere but behind an empty line, so that another one begins
 * nowhere but at the beginning of a piece.
 */
function pieceOf(bytes: Buffer): Buffer {
  // The line end before this one may have been the last of the chunk before.
  const lineEnd = bytes[0] === LF ? 1 : bytes[0] === CR && bytes[1] === LF ? 2 : 0
  const emptyLine = lineEnd === 0 ? bytes.indexOf(EMPTY_LINE) : -1
  const end = emptyLine === -1 ? lineEnd : emptyLine + EMPTY_LINE.length
  return end === 0 || end === bytes.length ? bytes : bytes.subarray(0, end)
}

/** The parser skips them between messages. */
function isLineEnds(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === CR || byte === LF)
}

/** The code is the parser's own. */
function closed(): WireError {
  return wireError('bytes behind the last message', 'HPE_CLOSED_CONNECTION')
}

function wireError(message: string, code: string): WireError {
  return Object.assign(new Error(message), { code })
}
