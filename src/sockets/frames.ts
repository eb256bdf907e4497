import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { ChunkList } from '../kernel/chunk-list.ts'

/** A piece of one frame. The `wire` bytes of all parts, in order, are exactly the bytes received. */
export interface FramePart {
  readonly kind: 'data' | 'control'
  /** Data: 1 or 2, the message's opcode, also on continuation frames. Control: 8, 9 or 10. */
  readonly opcode: number
  /** The bytes as received. A frame's first part includes its header. A view of the chunk if possible. */
  readonly wire: Buffer
  /** The payload bytes of this part: a view if the frame is unmasked, else a copy. */
  readonly payload: Buffer
  readonly endsFrame: boolean
  /** Whether this part ends a message. False for control frames, which may arrive between the frames of a message. */
  readonly endsMessage: boolean
}

/** The peer violated the protocol. `closeCode` is RFC 6455's code for it. */
export interface Violation {
  readonly closeCode: number
  readonly reason: string
}

export const OPCODE = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

const CONTROL_PAYLOAD_BYTES_MAX = 125
const MASK_BYTES = 4

const NO_BYTES: Buffer = Buffer.alloc(0)

/** Reads the frames of RFC 6455 in one direction, however the bytes are chunked. As strict as `ws`. */
export class FrameReader {
  readonly #isMasked: boolean
  #violation: Violation | null = null
  #isClosed = false

  /** The start of a control frame, or of a data frame's header. */
  #partial: Buffer | null = null

  /** The current data frame: remaining payload bytes, and the mask rotated for them. */
  #leftBytes = 0
  #key = 0
  #isFinal = false

  #opcode = 0

  constructor(from: 'client' | 'server') {
    this.#isMasked = from === 'client'
  }

  /** No frame is incomplete, so a frame of our own may be inserted. */
  get isBetweenFrames(): boolean {
    return this.#leftBytes === 0
  }

  get bytesLeft(): number {
    return this.#leftBytes
  }

  get isBetweenMessages(): boolean {
    return this.#leftBytes === 0 && this.#opcode === 0
  }

  /** Calls `onPart` for each part; control frames come whole. Nothing is read after a violation or a close frame. */
  read(chunk: Buffer, onPart: (part: FramePart) => void): Violation | null {
    const bytes = this.#partial === null ? chunk : Buffer.concat([this.#partial, chunk])
    this.#partial = null
    let at = 0
    while (at < bytes.length && this.#violation === null && !this.#isClosed) {
      if (this.#leftBytes > 0) at = this.#passPayload(bytes, at, at, onPart)
      else at = this.#readFrame(bytes, at, onPart)
    }
    return this.#violation
  }

  #readFrame(bytes: Buffer, at: number, onPart: (part: FramePart) => void): number {
    const neededBytes = this.#checkHeader(bytes, at)
    if (this.#violation !== null) return at
    if (bytes.length - at < neededBytes) {
      this.#partial = Buffer.from(bytes.subarray(at))
      return bytes.length
    }
    if (isControl(bytes, at)) {
      this.#passControl(bytes.subarray(at, at + neededBytes), onPart)
      return at + neededBytes
    }
    this.#beginFrame(bytes, at, neededBytes)
    return this.#passPayload(bytes, at, at + neededBytes, onPart)
  }

  /** How many bytes are needed before the frame can be read further. A violation is detected at its first byte. */
  #checkHeader(bytes: Buffer, from: number): number {
    const available = bytes.length - from
    if (available < 2) return 2
    const first = bytes[from] ?? 0
    const second = bytes[from + 1] ?? 0
    const wrong = this.#wrongStart(first, second)
    if (wrong !== null) return this.#violate(1002, wrong)
    const length = second & 0x7f
    const lengthEnd = length < 126 ? 2 : length === 126 ? 4 : 10
    if (length === 127 && available >= lengthEnd) {
      const high = bytes.readUInt32BE(from + 2)
      if (high > 0x7fff_ffff) return this.#violate(1002, 'the highest bit of a length is set')
      if (high > 0x1f_ffff) return this.#violate(1009, 'a frame is longer than 2^53 - 1 bytes')
    }
    const headerBytes = lengthEnd + (this.#isMasked ? MASK_BYTES : 0)
    return isControl(bytes, from) ? headerBytes + length : headerBytes
  }

  #wrongStart(first: number, second: number): string | null {
    const opcode = first & 0x0f
    const isFinal = (first & 0x80) !== 0
    if ((first & 0x70) !== 0) return 'the reserved bits must be clear'
    if (opcode > OPCODE.pong || (opcode > OPCODE.binary && opcode < OPCODE.close)) {
      return `the opcode ${opcode} is reserved`
    }
    if (opcode === 0 && this.#opcode === 0) return 'there is no message to continue'
    if ((opcode === OPCODE.text || opcode === OPCODE.binary) && this.#opcode !== 0) {
      return 'a message begins before the one before it has ended'
    }
    if (opcode >= OPCODE.close) {
      const length = second & 0x7f
      if (!isFinal) return 'a control frame must not be fragmented'
      if (length > CONTROL_PAYLOAD_BYTES_MAX) return 'a control frame has 125 bytes at most'
      if (opcode === OPCODE.close && length === 1) return 'a close frame has no code or one of two bytes'
    }
    if (((second & 0x80) !== 0) !== this.#isMasked) {
      return this.#isMasked ? 'a client must mask its frames' : 'a server must not mask its frames'
    }
    return null
  }

  #violate(closeCode: number, reason: string): number {
    this.#violation = { closeCode, reason }
    return 0
  }

  #beginFrame(wire: Buffer, from: number, headerBytes: number): void {
    const first = wire[from] ?? 0
    const length = (wire[from + 1] ?? 0) & 0x7f
    if (length === 127) this.#leftBytes = wire.readUInt32BE(from + 2) * 2 ** 32 + wire.readUInt32BE(from + 6)
    else this.#leftBytes = length === 126 ? wire.readUInt16BE(from + 2) : length
    if (this.#isMasked) this.#key = wire.readInt32LE(from + headerBytes - MASK_BYTES)
    this.#isFinal = (first & 0x80) !== 0
    if (this.#opcode === 0) this.#opcode = first & 0x0f
  }

  /** Emits the part that starts at `at`, with its payload at `payloadAt`. Returns its end. */
  #passPayload(chunk: Buffer, at: number, payloadAt: number, onPart: (part: FramePart) => void): number {
    const end = Math.min(chunk.length, payloadAt + this.#leftBytes)
    const wire = chunk.subarray(at, end)
    let payload = NO_BYTES
    if (end > payloadAt) {
      if (this.#isMasked) {
        payload = unmasked(chunk, payloadAt, end, this.#key)
        this.#key = keyAt(this.#key, end - payloadAt)
      } else payload = at === payloadAt ? wire : chunk.subarray(payloadAt, end)
    }
    this.#leftBytes -= end - payloadAt
    const opcode = this.#opcode
    const endsFrame = this.#leftBytes === 0
    const endsMessage = endsFrame && this.#isFinal
    if (endsMessage) this.#opcode = 0
    onPart({ kind: 'data', opcode, wire, payload, endsFrame, endsMessage })
    return end
  }

  #passControl(wire: Buffer, onPart: (part: FramePart) => void): void {
    const opcode = (wire[0] ?? 0) & 0x0f
    const headerBytes = this.#isMasked ? 2 + MASK_BYTES : 2
    const payload = this.#isMasked
      ? unmasked(wire, headerBytes, wire.length, wire.readInt32LE(2))
      : wire.subarray(headerBytes)
    if (opcode === OPCODE.close) {
      this.#checkClose(payload)
      if (this.#violation !== null) return
      this.#isClosed = true
    }
    onPart({ kind: 'control', opcode, wire, payload, endsFrame: true, endsMessage: false })
  }

  #checkClose(payload: Buffer): void {
    if (payload.length === 0) return
    const code = payload.readUInt16BE(0)
    if (!isCloseCode(code)) this.#violate(1002, `${code} is not a valid close code`)
    else if (!isUtf8(payload.subarray(2))) this.#violate(1007, 'the reason of a close frame is not UTF-8')
  }
}

function isControl(bytes: Buffer, at: number): boolean {
  return ((bytes[at] ?? 0) & 0x08) !== 0
}

/** Whether a close frame may have this code. 1004 to 1006, 1015 and unregistered codes are not allowed. */
function isCloseCode(code: number): boolean {
  if (code >= 1000 && code <= 1014) return code < 1004 || code > 1006
  return code >= 3000 && code <= 4999
}

/** Unmasking words is five times as fast as bytes, but needs aligned memory, which pooled buffers may not be. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)
const words = new Int32Array(scratch.buffer)

/** From this size on, two copies through the scratch buffer are cheaper than going byte by byte. */
const WORDS_FROM_BYTES = 64

/** The mask rotated for this payload offset, since payloads arrive in arbitrary parts. */
function keyAt(key: number, payloadAt: number): number {
  const bits = (payloadAt & 3) * 8
  return bits === 0 ? key : (key >>> bits) | (key << (32 - bits))
}

/** An unmasked copy of `from` to `to`. The lowest byte of `key` applies first. */
function unmasked(wire: Buffer, from: number, to: number, key: number): Buffer {
  const bytes = to - from
  const payload = Buffer.allocUnsafe(bytes)
  if (bytes < WORDS_FROM_BYTES) {
    for (let i = 0; i < bytes; i++) payload[i] = (wire[from + i] ?? 0) ^ (key >>> ((i & 3) * 8))
    return payload
  }
  for (let done = 0; done < bytes; done += scratch.length) {
    const step = Math.min(bytes - done, scratch.length)
    wire.copy(scratch, 0, from + done, from + done + step)
    const wordsEnd = (step + 3) >>> 2
    for (let i = 0; i < wordsEnd; i++) words[i] = (words[i] ?? 0) ^ key
    scratch.copy(payload, done, 0, step)
  }
  return payload
}

/** The content of a message, or why it cannot be read. The payload is a copy, independent of the chunks. */
export type Message =
  | { readonly kind: 'message'; readonly payload: Buffer }
  | { readonly kind: 'unreadable'; readonly why: 'too_large' | 'not_utf8' }

export class FrameMessages {
  readonly #messageBytesMax: number
  #pieces: ChunkList | null = null
  #bytes = 0

  constructor(messageBytesMax: number) {
    this.#messageBytesMax = messageBytesMax
  }

  /** Takes data parts in order. Returns a message if the part ends one. A message that is too large is dropped. */
  push(part: FramePart): Message | null {
    if (part.kind === 'control') return null
    this.#bytes += part.payload.length
    const isTooLarge = this.#bytes > this.#messageBytesMax
    if (isTooLarge) this.clear()
    else if (part.payload.length > 0 && (this.#pieces !== null || !part.endsMessage)) {
      this.#pieces ??= new ChunkList()
      this.#pieces.append(part.payload)
    }
    if (!part.endsMessage) return null
    const payload = this.#pieces?.joined() ?? part.payload
    this.clear()
    this.#bytes = 0
    return isTooLarge ? { kind: 'unreadable', why: 'too_large' } : messageOf(part.opcode, payload)
  }

  clear(): void {
    this.#pieces?.clear()
    this.#pieces = null
  }
}

function messageOf(opcode: number, payload: Buffer): Message {
  return opcode !== OPCODE.text || isUtf8(payload)
    ? { kind: 'message', payload }
    : { kind: 'unreadable', why: 'not_utf8' }
}

const REASON_BYTES_MAX = 123

const FINAL = 0x80
const MASKED = 0x80

export function textFrame(payload: string): Buffer {
  const bytes = Buffer.from(payload)
  return Buffer.concat([headerOf(OPCODE.text, bytes.length), bytes])
}

/** A close frame. Frames to upstream are `masked`. A long reason is truncated at a character boundary. */
export function closeFrame(code: number, reason: string, masked: boolean): Buffer {
  const bytes = Buffer.from(reason)
  let end = Math.min(bytes.length, REASON_BYTES_MAX)
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  const payload = Buffer.allocUnsafe(2 + end)
  payload.writeUInt16BE(code)
  bytes.copy(payload, 2, 0, end)
  return masked
    ? maskedFrame(OPCODE.close, payload)
    : Buffer.concat([headerOf(OPCODE.close, payload.length), payload])
}

export function maskedFrame(opcode: number, payload: Buffer): Buffer {
  const key = randomBytes(4)
  const masked = Buffer.from(payload)
  for (const [i, byte] of masked.entries()) masked[i] = byte ^ (key[i & 3] ?? 0)
  return Buffer.concat([Buffer.from([FINAL | opcode, MASKED | payload.length]), key, masked])
}

function headerOf(opcode: number, length: number): Buffer {
  if (length < 126) return Buffer.from([FINAL | opcode, length])
  const isShort = length < 2 ** 16
  const header = Buffer.alloc(isShort ? 4 : 10)
  header.writeUInt16BE(((FINAL | opcode) << 8) | (isShort ? 126 : 127))
  if (isShort) header.writeUInt16BE(length, 2)
  else header.writeBigUInt64BE(BigInt(length), 2)
  return header
}
