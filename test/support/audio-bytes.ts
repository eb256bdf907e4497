import { noise } from './wire-bytes.ts'

/** Tiny recordings of nothing, byte by byte, as encoders write them. Lengths are in whole frames of their format. */

export interface WavShape {
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

export function chunk(id: string, content: Buffer, length = content.length): Buffer {
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

export function id3(bytes: number): Buffer {
  const size = [21, 14, 7, 0].map((shift) => (bytes >> shift) & 0x7f)
  return Buffer.concat([
    Buffer.from('ID3\x04\x00\x00', 'latin1'),
    Buffer.from(size),
    Buffer.alloc(bytes, 0xff),
  ])
}

/** AAC in ADTS at 24 kHz, 1,024 samples a frame. */
export function adts(count: number, bytes = 60): Buffer {
  const header = [0xff, 0xf1, (1 << 6) | (6 << 2), (1 << 6) | (bytes >> 11), (bytes >> 3) & 0xff]
  return frames([...header, ((bytes & 7) << 5) | 0x1f, 0xfc], bytes, count)
}

/** FLAC at 44.1 kHz with 4,096 samples a frame; its head states `stated` samples, 0 as for a recording of unknown length. */
export function flac(count: number, stated: number): Buffer {
  const info = Buffer.alloc(34)
  info.writeUInt16BE(4_096, 0)
  info.writeUInt16BE(4_096, 2)
  info.writeUIntBE((44_100 << 4) | (1 << 1), 10, 3)
  info[13] = 0xf0 | Math.floor(stated / 2 ** 32)
  info.writeUInt32BE(stated % 2 ** 32, 14)
  const padding = Buffer.concat([Buffer.from([0x81, 0, 0, 50]), Buffer.alloc(50, 0xff)])
  const body = Array.from({ length: count }, (_, number) => flacFrame(number))
  return Buffer.concat([Buffer.from('fLaC'), Buffer.from([0, 0, 0, 34]), info, padding, ...body])
}

function flacFrame(number: number): Buffer {
  const coded = [...Buffer.from(String.fromCodePoint(number))]
  const head = [0xff, 0xf8, 0xc9, 0x18, ...coded]
  // Bytes that look like the head of a frame and are none: the check is wrong, or the number.
  const lookalike = [0xff, 0xf8, 0xc9, 0x18, 5, 0]
  const wrongNumber = [0xff, 0xf8, 0xc9, 0x18, 0x7f]
  return Buffer.from([
    ...head,
    crc8(head),
    ...lookalike,
    ...wrongNumber,
    crc8(wrongNumber),
    ...new Array(30).fill(7),
  ])
}

function crc8(bytes: readonly number[]): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x80 ? 0x107 : 0)) & 0xff
  }
  return crc
}

/** A page of Ogg with one packet of any length. */
export function oggPage(serial: number, position: bigint, packet: Buffer, kind = 0): Buffer {
  const head = Buffer.alloc(27)
  head.write('OggS')
  head[5] = kind
  head.writeBigInt64LE(position, 6)
  head.writeUInt32LE(serial, 14)
  const lacing = [...new Array(Math.floor(packet.length / 255)).fill(255), packet.length % 255]
  head[26] = lacing.length
  return Buffer.concat([head, Buffer.from(lacing), packet])
}

/** Opus in Ogg: pages of half a second, 24,000 units each, from a position on. */
export function opus(
  pages: number,
  options: { readonly serial?: number; readonly from?: number } = {},
): Buffer {
  const { serial = 7, from = 0 } = options
  const head = Buffer.concat([Buffer.from('OpusHead'), Buffer.from([1, 1, 0x38, 0x01]), Buffer.alloc(7)])
  const out = [
    oggPage(serial, 0n, head, 2),
    oggPage(serial, 0n, Buffer.concat([Buffer.from('OpusTags'), Buffer.alloc(300)])),
  ]
  for (let page = 1; page <= pages; page++) {
    // A page in which no packet ends has no position.
    out.push(oggPage(serial, -1n, Buffer.alloc(10, 1)))
    out.push(oggPage(serial, BigInt(from + 312 + page * 24_000), Buffer.alloc(400, page)))
  }
  return Buffer.concat(out)
}

export function vorbis(samples: number, hz: number): Buffer {
  const head = Buffer.alloc(30)
  head.write('\x01vorbis', 'latin1')
  head.writeUInt32LE(hz, 12)
  return Buffer.concat([oggPage(1, 0n, head, 2), oggPage(1, BigInt(samples), Buffer.alloc(500), 4)])
}

export function box(type: string, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([u32be(body.length + 8), Buffer.from(type), body])
}

/** The head of a movie or a track: its length in units, and how many units a second has. */
export function timeBox(type: string, unitsPerSecond: number, units: number, isLong = false): Buffer {
  const times = isLong
    ? [u32be(0x01000000), Buffer.alloc(16), u32be(unitsPerSecond), u64be(units)]
    : [u32be(0), Buffer.alloc(8), u32be(unitsPerSecond), u32be(units)]
  return box(type, ...times, Buffer.alloc(80))
}

export interface Mp4Shape {
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

/** MP4 as browsers record it: its head states no length, and each fragment says how many samples of which length it has. */
export function fragmentedMp4(fragments: number, stated: 'each' | 'default' | 'track'): Buffer {
  const trex = box('trex', u32be(0), u32be(1), u32be(1), u32be(1_024), Buffer.alloc(8))
  const out = [FTYP, moov({}), box('mvex', trex)]
  for (let fragment = 0; fragment < fragments; fragment++) {
    const tfhd =
      stated === 'default' ? box('tfhd', u32be(8), u32be(1), u32be(1_024)) : box('tfhd', u32be(0), u32be(1))
    const tfdt = box('tfdt', u32be(0x01000000), u64be(fragment * 48 * 1_024))
    const samples = Array.from({ length: 48 }, () => [u32be(1_024), u32be(20)]).flat()
    const trun =
      stated === 'each'
        ? box('trun', u32be(0x301), u32be(48), u32be(0), ...samples)
        : box('trun', u32be(0x1), u32be(48), u32be(0))
    out.push(
      box('moof', box('mfhd', Buffer.alloc(8)), box('traf', tfhd, tfdt, trun)),
      box('mdat', Buffer.alloc(960)),
    )
  }
  return Buffer.concat(out)
}

export interface WebmShape {
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

/** Packs of an MPEG-2 program stream, a tenth of a second each. */
export function programStream(packs: number): Buffer {
  return Buffer.concat(
    Array.from({ length: packs }, (_, i) => {
      const time = 90_000 * 4 + i * 9_000
      const [high, middle, low] = [Math.floor(time / 2 ** 30) & 7, (time >> 15) & 0x7fff, time & 0x7fff]
      const bytes = [0x40 | (high << 3) | 4 | (middle >> 13), (middle >> 5) & 0xff]
      bytes.push(((middle & 31) << 3) | 4 | (low >> 13), (low >> 5) & 0xff, ((low & 31) << 3) | 4)
      return Buffer.concat([Buffer.from([0, 0, 1, 0xba, ...bytes]), Buffer.alloc(200, 1)])
    }),
  )
}

function u32le(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

export function u32be(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function u64be(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}
