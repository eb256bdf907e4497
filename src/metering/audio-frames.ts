import { type Borrowed, viewOf } from '../kernel/memory.ts'

/** How long the audio of one format is, as far as its bytes have passed; null where they do not tell. */
export interface AudioTrack {
  write(chunk: Borrowed): void
  readonly milliseconds: number | null
}

const NOTHING = Buffer.alloc(0)

/**
 * Walks through bytes that arrive in chunks, from one header to the next: `step` sees `need` bytes of a header and
 * says how many to advance, which may lead far behind the chunk. Fewer bytes than `need` are kept between two chunks.
 */
export abstract class ByteWalker {
  /** How many bytes `step` has to see at least. */
  protected need: number
  /** The offset of the step at hand in all of the bytes, and how many bytes have come. */
  protected position = 0
  protected length = 0
  #skip = 0
  #tail: Buffer = NOTHING

  constructor(need: number) {
    this.need = need
  }

  /** At `at` there are `need` bytes or more. Answers how far to go on; 0 after having raised `need`. */
  protected abstract step(bytes: Buffer, at: number): number

  write(chunk: Borrowed): void {
    const come = viewOf(chunk)
    const bytes = this.#tail.length === 0 ? come : Buffer.concat([this.#tail, come])
    const start = this.length - this.#tail.length
    this.length += chunk.length
    let at = 0
    for (;;) {
      const skipped = Math.min(this.#skip, bytes.length - at)
      at += skipped
      this.#skip -= skipped
      if (bytes.length - at < this.need) break
      this.position = start + at
      this.#skip = this.step(bytes, at)
    }
    this.#tail = at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at))
  }
}

/** The distance from `at` to the next such byte, or to the end of the bytes at hand. */
function toNext(bytes: Buffer, at: number, byte: number): number {
  const next = bytes.indexOf(byte, at + 1)
  return (next < 0 ? bytes.length : next) - at
}

/** The distance from `at` to the next such mark, or to where a mark may begin that is not whole yet. */
export function toMark(bytes: Buffer, at: number, mark: Buffer): number {
  const next = bytes.indexOf(mark, at + 1)
  return (next < 0 ? Math.max(at + 1, bytes.length - mark.length + 1) : next) - at
}

interface Frame {
  readonly bytes: number
  readonly milliseconds: number
  /** Layer, version and rate (of AAC the rate alone), which all frames of one recording have in common. */
  readonly kind: number
}

/** kbit/s by the four bits of the header; 0 where the length of the frame is not stated. */
const MPEG1_LAYER1 = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448]
const MPEG1_LAYER2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
const MPEG1_LAYER3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const MPEG2_LAYER1 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256]
const MPEG2_LAYERS23 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const MPEG1_HZ = [44_100, 48_000, 32_000]
const ADTS_HZ = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
]

/** Enough bytes to see the mark of a frame that holds no audio but figures about the other frames. */
const MPEG_NEED = 40

/**
 * MP3 and AAC (ADTS), and their elder relatives: every frame says how long it is, in bytes and in time, so a variable bit rate
 * does no harm. A frame counts when another of its kind follows where it ends, or when it is the last of a row of such frames.
 */
export class MpegTrack extends ByteWalker implements AudioTrack {
  #milliseconds = 0
  #frameBytes = 0
  #tagBytes = 0
  #pending: Frame | null = null
  /** The pending frame stood where another ended. */
  #isLinked = false
  #hasFigures = false

  constructor() {
    super(MPEG_NEED)
  }

  get milliseconds(): number | null {
    const last = this.#isLinked ? this.#pending : null
    const bytes = this.#frameBytes + (last?.bytes ?? 0)
    // A body is not audio of this format if less than half of its bytes are frames.
    if (bytes * 2 < this.length - this.#tagBytes) return null
    return this.#milliseconds + (last?.milliseconds ?? 0)
  }

  protected step(bytes: Buffer, at: number): number {
    const tagBytes = id3Bytes(bytes, at)
    if (tagBytes > 0) {
      this.#unlink()
      this.#tagBytes += tagBytes
      return tagBytes
    }
    const frame = mpegFrame(bytes, at) ?? adtsFrame(bytes, at)
    if (frame === null) {
      this.#unlink()
      return toNext(bytes, at, 0xff)
    }
    if (this.#pending !== null && this.#pending.kind === frame.kind) {
      this.#count(this.#pending)
      this.#isLinked = true
    } else this.#unlink()
    this.#pending = frame
    if (!this.#hasFigures && this.#milliseconds === 0 && holdsFigures(bytes, at)) {
      this.#hasFigures = true
      this.#pending = { ...frame, milliseconds: 0 }
    }
    return frame.bytes
  }

  #count(frame: Frame): void {
    this.#milliseconds += frame.milliseconds
    this.#frameBytes += frame.bytes
  }

  #unlink(): void {
    if (this.#isLinked && this.#pending !== null) this.#count(this.#pending)
    this.#pending = null
    this.#isLinked = false
  }
}

function mpegFrame(bytes: Buffer, at: number): Frame | null {
  const [, second = 0, third = 0] = bytes.subarray(at, at + 3)
  const version = (second >> 3) & 3
  const layer = 4 - ((second >> 1) & 3)
  if (bytes[at] !== 0xff || (second & 0xe0) !== 0xe0 || version === 1 || layer === 4) return null
  const isMpeg1 = version === 3
  const kbits = bitrates(isMpeg1, layer)[third >> 4] ?? 0
  const baseHz = MPEG1_HZ[(third >> 2) & 3]
  if (kbits === 0 || baseHz === undefined) return null
  const hz = version === 0 ? baseHz / 4 : isMpeg1 ? baseHz : baseHz / 2
  const padding = (third >> 1) & 1
  const samples = layer === 1 ? 384 : layer === 3 && !isMpeg1 ? 576 : 1_152
  const length =
    layer === 1
      ? (Math.floor((12_000 * kbits) / hz) + padding) * 4
      : Math.floor((samples * 125 * kbits) / hz) + padding
  return { bytes: length, milliseconds: (samples * 1_000) / hz, kind: (layer << 24) | (version << 20) | hz }
}

function bitrates(isMpeg1: boolean, layer: number): readonly number[] {
  if (layer === 1) return isMpeg1 ? MPEG1_LAYER1 : MPEG2_LAYER1
  if (!isMpeg1) return MPEG2_LAYERS23
  return layer === 2 ? MPEG1_LAYER2 : MPEG1_LAYER3
}

/** The first frame of many MP3 files says how many others there are, and holds no audio. */
function holdsFigures(bytes: Buffer, at: number): boolean {
  const isMpeg1 = (((bytes[at + 1] ?? 0) >> 3) & 3) === 3
  const isMono = (bytes[at + 3] ?? 0) >> 6 === 3
  const sideBytes = isMpeg1 ? (isMono ? 17 : 32) : isMono ? 9 : 17
  const mark = bytes.toString('latin1', at + 4 + sideBytes, at + 8 + sideBytes)
  return mark === 'Xing' || mark === 'Info' || bytes.toString('latin1', at + 36, at + 40) === 'VBRI'
}

function adtsFrame(bytes: Buffer, at: number): Frame | null {
  const [first, second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0, seventh = 0] = bytes.subarray(
    at,
    at + 7,
  )
  if (first !== 0xff || (second & 0xf6) !== 0xf0) return null
  const hz = ADTS_HZ[(third >> 2) & 15]
  const length = ((fourth & 3) << 11) | (fifth << 3) | (sixth >> 5)
  if (hz === undefined || length < 7) return null
  const samples = 1_024 * ((seventh & 3) + 1)
  return { bytes: length, milliseconds: (samples * 1_000) / hz, kind: hz }
}

/** The longest head of a frame. */
const FLAC_NEED = 16
const FLAC_STREAMINFO_BYTES = 34

/**
 * FLAC: the head of the file may state how many samples there are. The head of a file that was written as it was
 * recorded does not: its frames are counted, each of which says at which sample it begins.
 */
export class FlacTrack extends ByteWalker implements AudioTrack {
  #hz = 0
  #statedSamples = 0
  #blockSamples = 0
  #firstSample: number | null = null
  #nextSample = 0
  #framesStart = 0
  #part: 'magic' | 'metadata' | 'frames' = 'magic'

  constructor() {
    super(4)
  }

  get milliseconds(): number | null {
    const counted = this.#firstSample === null ? 0 : this.#nextSample - this.#firstSample
    const samples = Math.max(this.#statedSamples, counted)
    return this.#hz === 0 || samples === 0 ? null : (samples * 1_000) / this.#hz
  }

  protected step(bytes: Buffer, at: number): number {
    if (this.#part === 'magic') {
      this.#part = 'metadata'
      return 4
    }
    return this.#part === 'metadata' ? this.#readMetadata(bytes, at) : this.#readFrame(bytes, at)
  }

  #readMetadata(bytes: Buffer, at: number): number {
    const isInfo = ((bytes[at] ?? 0) & 0x7f) === 0 && this.#hz === 0
    const length = bytes.readUIntBE(at + 1, 3)
    if (isInfo && this.need === 4) {
      this.need = 4 + FLAC_STREAMINFO_BYTES
      return 0
    }
    if (isInfo) {
      const info = at + 4
      this.#blockSamples = bytes.readUInt16BE(info + 2)
      this.#hz = bytes.readUIntBE(info + 10, 3) >> 4
      this.#statedSamples = ((bytes[info + 13] ?? 0) & 0x0f) * 2 ** 32 + bytes.readUInt32BE(info + 14)
    }
    const isLast = ((bytes[at] ?? 0) & 0x80) !== 0
    if (isLast) {
      this.#part = 'frames'
      this.#framesStart = this.position + 4 + length
    }
    this.need = isLast ? FLAC_NEED : 4
    return 4 + length
  }

  #readFrame(bytes: Buffer, at: number): number {
    const frame = flacFrame(bytes, at, this.#blockSamples)
    if (frame !== null && this.#follows(frame.start)) {
      this.#firstSample ??= frame.start
      this.#nextSample = frame.start + frame.samples
    }
    return toNext(bytes, at, 0xff)
  }

  /** Bytes that only look like a head have a wrong number. A recording that was cut out of another begins with any number. */
  #follows(start: number): boolean {
    if (this.#firstSample !== null) return start === this.#nextSample
    return start === 0 || this.position === this.#framesStart
  }
}

function flacFrame(
  bytes: Buffer,
  at: number,
  blockSamples: number,
): { readonly start: number; readonly samples: number } | null {
  const [first, second = 0, third = 0, fourth = 0, fifth = 0] = bytes.subarray(at, at + 5)
  if (first !== 0xff || (second & 0xfe) !== 0xf8 || (fourth & 1) !== 0 || fourth >> 4 > 10) return null
  const ones = Math.clz32(~(fifth << 24))
  if (ones === 1 || ones > 7) return null
  const numberBytes = Math.max(1, ones)
  let number = ones === 0 ? fifth : ones === 7 ? 0 : fifth & ((1 << (7 - ones)) - 1)
  for (let i = 1; i < numberBytes; i++) number = number * 64 + ((bytes[at + 4 + i] ?? 0) & 0x3f)
  let end = at + 4 + numberBytes
  const sizeCode = third >> 4
  let samples = sizeCode === 1 ? 192 : sizeCode < 6 ? 576 << (sizeCode - 2) : 256 << (sizeCode - 8)
  if (sizeCode === 0) return null
  if (sizeCode === 6) samples = (bytes[end++] ?? 0) + 1
  else if (sizeCode === 7) {
    samples = bytes.readUInt16BE(end) + 1
    end += 2
  }
  const hzCode = third & 15
  if (hzCode === 15) return null
  end += hzCode === 12 ? 1 : hzCode > 12 ? 2 : 0
  if (crc8(bytes, at, end) !== bytes[end]) return null
  const isVariable = (second & 1) === 1
  return { start: isVariable ? number : number * blockSamples, samples }
}

/** The check of a frame's head: other bytes pass it once in 256 times, and then have to say the right number too. */
function crc8(bytes: Buffer, from: number, to: number): number {
  let crc = 0
  for (let i = from; i < to; i++) {
    crc ^= bytes[i] ?? 0
    for (let bit = 0; bit < 8; bit++)
      crc = (crc & 0x80) === 0 ? (crc << 1) & 0xff : ((crc << 1) ^ 0x07) & 0xff
  }
  return crc
}

/** The length in bytes of the ID3v2 tag at `at`; 0 where there is none. */
export function id3Bytes(bytes: Buffer, at: number): number {
  if (bytes.toString('latin1', at, at + 3) !== 'ID3') return 0
  let size = 0
  for (let i = at + 6; i < at + 10; i++) {
    const byte = bytes[i] ?? 0xff
    if (byte > 0x7f) return 0
    size = size * 128 + byte
  }
  const hasFooter = ((bytes[at + 5] ?? 0) & 0x10) !== 0
  return 10 + size + (hasFooter ? 10 : 0)
}
