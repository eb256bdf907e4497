import { noise } from './wire-bytes.ts'

/** Tiny recordings of nothing, byte by byte, as encoders write them. Lengths are in whole frames of their format. */

interface WavShape {
  readonly hz?: number
  readonly channels?: number
  readonly bits?: number
  /** The length that the head states; absent: the true length. */
  readonly stated?: number
  readonly before?: Buffer
}

export function wav(milliseconds: number, shape: WavShape = {}): Buffer {
  const { hz = 16_000, channels = 1, bits = 16, stated, before = Buffer.alloc(0) } = shape
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
  const parts = [chunk('fmt ', format), before, chunk('data', samples, length)]
  return Buffer.concat([Buffer.from('RIFF'), u32le(stated ?? 4_000_000), Buffer.from('WAVE'), ...parts])
}

function chunk(id: string, content: Buffer, length = content.length): Buffer {
  return Buffer.concat([Buffer.from(id), u32le(length), content, Buffer.alloc(content.length & 1)])
}

/** Frames of MPEG-1 layer III at 44.1 kHz, of 1,152 samples each; a bit rate is given as the four bits of the header. */
export function mp3(bitrates: readonly number[]): Buffer {
  const kbits = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
  return Buffer.concat(
    bitrates.map((index) => {
      const frame = Buffer.alloc(Math.floor((144_000 * (kbits[index] ?? 0)) / 44_100))
      frame.set([0xff, 0xfb, index << 4, 0xc4])
      return frame
    }),
  )
}

export const MP3_FRAME_MS = (1_152 * 1_000) / 44_100

/** A frame of another kind, by the bytes of its header and its length, repeated `count` times. */
export function frames(header: readonly number[], bytes: number, count: number): Buffer {
  const frame = Buffer.alloc(bytes)
  frame.set(header)
  return Buffer.concat(Array.from({ length: count }, () => frame))
}

/** AAC in ADTS at 24 kHz, 1,024 samples a frame. */
export function adts(count: number, bytes = 60): Buffer {
  const header = [0xff, 0xf1, (1 << 6) | (6 << 2), (1 << 6) | (bytes >> 11), (bytes >> 3) & 0xff]
  return frames([...header, ((bytes & 7) << 5) | 0x1f, 0xfc], bytes, count)
}

function box(type: string, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([u32be(body.length + 8), Buffer.from(type), body])
}

/** The head of a movie or a track: its length in units, and how many units a second has. */
function timeBox(type: string, unitsPerSecond: number, units: number, isLong = false): Buffer {
  const times = isLong
    ? [u32be(0x01000000), Buffer.alloc(16), u32be(unitsPerSecond), u64be(units)]
    : [u32be(0), Buffer.alloc(8), u32be(unitsPerSecond), u32be(units)]
  return box(type, ...times, Buffer.alloc(80))
}

interface Mp4Shape {
  readonly movieMs?: number
  readonly mediaMs?: number
  readonly isLong?: boolean
  /** Counts and lengths of samples. */
  readonly table?: readonly (readonly [number, number])[]
}

export function moov(shape: Mp4Shape): Buffer {
  const { movieMs = 0, mediaMs = 0, isLong = false, table = [] } = shape
  const track = box('tkhd', u32be(0), Buffer.alloc(8), u32be(1), Buffer.alloc(68))
  const stts = box('stts', u32be(0), u32be(table.length), ...table.flat().map(u32be))
  const media = box(
    'mdia',
    timeBox('mdhd', 48_000, mediaMs * 48, isLong),
    box('minf', box('stbl', box('stsd', Buffer.alloc(60)), stts)),
  )
  return box(
    'moov',
    timeBox('mvhd', 600, movieMs * 0.6, isLong),
    box('trak', track, media),
    box('udta', Buffer.alloc(9)),
  )
}

export const FTYP = box('ftyp', Buffer.from('M4A \0\0\0\0isom'))

interface WebmShape {
  /** The duration in the head, in units of a millisecond. */
  readonly durationMs?: number
  readonly clusters?: number
  /** The lengths of segment and clusters are left open, as browsers do. */
  readonly isOpen?: boolean
}

/** A cluster a second, with a block every 20 ms. */
export function webm({ durationMs, clusters = 0, isOpen = false }: WebmShape): Buffer {
  const head = element([0x1a, 0x45, 0xdf, 0xa3], Buffer.alloc(20))
  const scale = element([0x2a, 0xd7, 0xb1], u32be(1_000_000))
  const duration = Buffer.alloc(8)
  duration.writeDoubleBE(durationMs ?? 0)
  const info = element(
    [0x15, 0x49, 0xa9, 0x66],
    Buffer.concat([scale, ...(durationMs === undefined ? [] : [element([0x44, 0x89], duration)])]),
  )
  const tracks = element([0x16, 0x54, 0xae, 0x6b], Buffer.alloc(70, 0xe7))
  const body = Array.from({ length: clusters }, (_, second) => {
    const blocks = Array.from({ length: 50 }, (_, i) => {
      const block = Buffer.alloc(30, 0x33)
      block.set([0x81])
      block.writeInt16BE(i * 20, 1)
      return element([0xa3], block)
    })
    const content = Buffer.concat([element([0xe7], u32be(second * 1_000)), ...blocks])
    return element([0x1f, 0x43, 0xb6, 0x75], content, isOpen)
  })
  return Buffer.concat([
    head,
    element([0x18, 0x53, 0x80, 0x67], Buffer.concat([info, tracks, ...body]), isOpen),
  ])
}

function element(id: readonly number[], content: Buffer, isOpen = false): Buffer {
  const length = Buffer.alloc(8, isOpen ? 0xff : 0)
  if (!isOpen) length.writeUInt32BE(content.length, 4)
  length[0] = 0x01
  return Buffer.concat([Buffer.from(id), length, content])
}

function u32le(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function u32be(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function u64be(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}
