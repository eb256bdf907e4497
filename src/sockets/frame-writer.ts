import { randomBytes } from 'node:crypto'
import { OPCODE } from './frame-reader.ts'

const REASON_BYTES_MAX = 123

const FINAL = 0x80
const MASKED = 0x80

export function textFrame(payload: string): Buffer {
  const bytes = Buffer.from(payload)
  return Buffer.concat([headerOf(OPCODE.text, bytes.length), bytes])
}

/** `masked` towards upstream, whose client we are. A reason that is too long is cut where a character ends. */
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

/** Answers a ping of upstream's in the place of a client that is gone. */
export function pongFrame(ping: Buffer): Buffer {
  return maskedFrame(OPCODE.pong, ping)
}

function maskedFrame(opcode: number, payload: Buffer): Buffer {
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
