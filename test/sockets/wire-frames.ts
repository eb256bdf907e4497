import { FrameMessages, type FramePart, FrameReader, type Violation } from '../../src/sockets/frames.ts'

export type Side = 'client' | 'server'

/** The bytes of a frame, valid or not. */
export interface WireFrame {
  readonly opcode: number
  readonly payload?: Buffer | string
  /** Default: 1. */
  readonly fin?: 0 | 1
  /** RSV1 to RSV3, from 4 down to 1. */
  readonly rsv?: number
  /** The mask; by default client frames have one. */
  readonly key?: Buffer | null
  /** The size of the length field; by default the smallest. */
  readonly lengthBits?: 7 | 16 | 64
  /** The length in the header, if it differs from the payload's. */
  readonly length?: bigint
}

const KEY = Buffer.from([0x37, 0xfa, 0x21, 0x3d])

export function wireOf(from: Side, frame: WireFrame): Buffer {
  const payload = Buffer.from(frame.payload ?? '')
  const length = frame.length ?? BigInt(payload.length)
  const bits = frame.lengthBits ?? (length < 126n ? 7 : length < 65_536n ? 16 : 64)
  const key = frame.key === undefined ? (from === 'client' ? KEY : null) : frame.key
  const header = Buffer.alloc(bits === 7 ? 2 : bits === 16 ? 4 : 10)
  header[0] = ((frame.fin ?? 1) << 7) | ((frame.rsv ?? 0) << 4) | frame.opcode
  header[1] = (key === null ? 0 : 0x80) | (bits === 7 ? Number(length) : bits === 16 ? 126 : 127)
  if (bits === 16) header.writeUInt16BE(Number(length), 2)
  if (bits === 64) header.writeBigUInt64BE(length, 2)
  if (key === null) return Buffer.concat([header, payload])
  return Buffer.concat([header, key, payload.map((byte, i) => byte ^ (key[i & 3] ?? 0))])
}

export function sequenceOf(from: Side, frames: readonly WireFrame[]): Buffer {
  return Buffer.concat(frames.map((frame) => wireOf(from, frame)))
}

export function chunksOf(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...cuts.toSorted((a, b) => a - b), bytes.length]
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
}

export const singleBytes = (bytes: Buffer): Buffer[] => chunksOf(bytes, [...bytes.keys()])

export interface ReadFrames {
  readonly parts: readonly FramePart[]
  readonly violation: Violation | null
  readonly events: readonly Event[]
}

export type Event =
  | { readonly kind: 'message' | 'control'; readonly opcode: number; readonly payload: Buffer }
  | { readonly kind: 'unreadable'; readonly why: string }

export function readFrames(chunks: readonly Buffer[], from: Side): ReadFrames {
  const frames = new FrameReader(from)
  const messages = new FrameMessages(2 ** 26)
  const parts: FramePart[] = []
  const events: Event[] = []
  let violation: Violation | null = null
  for (const chunk of chunks) {
    violation = frames.read(chunk, (part) => {
      parts.push(part)
      const { opcode, payload } = part
      const event = part.kind === 'control' ? { kind: part.kind, opcode, payload } : messages.push(part)
      if (event !== null) events.push('payload' in event ? { ...event, opcode } : event)
    })
  }
  return { parts, violation, events }
}
