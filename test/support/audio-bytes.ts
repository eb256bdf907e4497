import { noise } from './wire-bytes.ts'

/** Tiny silent recordings as encoders write them. Lengths are in whole frames of their format. */

interface WavShape {
  readonly hz?: number
  readonly channels?: number
  readonly bits?: number
  /** The length stated in the header; absent: the true length. */
  readonly stated?: number
}

export function wav(milliseconds: number, shape: WavShape = {}): Buffer {
  const { hz = 16_000, channels = 1, bits = 16, stated } = shape
  const frameBytes = (channels * bits) / 8
  const samples = noise(Math.round((milliseconds * hz) / 1_000) * frameBytes)
  const format = Buffer.alloc(16)
  format.writeUInt16LE(1, 0)
  format.writeUInt16LE(channels, 2)
  format.writeUInt32LE(hz, 4)
  format.writeUInt32LE(hz * frameBytes, 8)
  format.writeUInt16LE(frameBytes, 12)
  format.writeUInt16LE(bits, 14)
  const length = stated ?? samples.length
  const parts = [chunk('fmt ', format), chunk('data', samples, length)]
  return Buffer.concat([Buffer.from('RIFF'), u32le(stated ?? 4_000_000), Buffer.from('WAVE'), ...parts])
}

function chunk(id: string, content: Buffer, length = content.length): Buffer {
  return Buffer.concat([Buffer.from(id), u32le(length), content, Buffer.alloc(content.length & 1)])
}

function u32le(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

/** A frame with these header bytes and this length, repeated `count` times. */
export function frames(header: readonly number[], bytes: number, count: number): Buffer {
  const frame = Buffer.alloc(bytes)
  frame.set(header)
  return Buffer.concat(Array.from({ length: count }, () => frame))
}
