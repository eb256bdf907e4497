import { type AudioTrack, ByteWalker, toMark } from './audio-frames.ts'

/** The length of a part that was not known when its head was written. */
const OPEN_LENGTH = 0xffff_ffff

/** WAV: the length is the bytes of the samples, divided by the bytes of a second. */
export class WavTrack extends ByteWalker implements AudioTrack {
  #isOpen = false
  #bytesPerSecond = 0
  #dataBytes = 0
  #dataStart: number | null = null
  #dataLength = 0

  constructor() {
    super(12)
  }

  get milliseconds(): number | null {
    const last = this.#dataStart === null ? 0 : Math.min(this.#dataLength, this.length - this.#dataStart)
    const bytes = this.#dataBytes + last
    return this.#bytesPerSecond === 0 ? null : (bytes * 1_000) / this.#bytesPerSecond
  }

  protected step(bytes: Buffer, at: number): number {
    if (!this.#isOpen) {
      this.#isOpen = true
      this.need = 8
      return 12
    }
    const id = bytes.toString('latin1', at, at + 4)
    const length = bytes.readUInt32LE(at + 4)
    if (id === 'fmt ') {
      if (this.need < 24) {
        this.need = 24
        return 0
      }
      this.#readFormat(bytes, at + 8)
    } else if (id === 'data') {
      if (this.#dataStart !== null) this.#dataBytes += this.#dataLength
      this.#dataStart = this.position + 8
      // A file that was written as it was recorded states no length: the rest is all samples.
      this.#dataLength = length === 0 || length === OPEN_LENGTH ? Infinity : length
      return 8 + this.#dataLength + (length & 1)
    }
    this.need = 8
    return 8 + length + (length & 1)
  }

  #readFormat(bytes: Buffer, at: number): void {
    const format = bytes.readUInt16LE(at)
    const hz = bytes.readUInt32LE(at + 4)
    // Players of plain samples go by the bytes of a sample, whatever rate of bytes the header states.
    const isPlain = format === 1 || format === 3 || format === 0xfffe
    const frameBytes = bytes.readUInt16LE(at + 2) * Math.ceil(bytes.readUInt16LE(at + 14) / 8)
    const blockBytes = bytes.readUInt16LE(at + 12)
    const smaller = Math.min(frameBytes || blockBytes, blockBytes || frameBytes)
    this.#bytesPerSecond = isPlain ? hz * smaller : bytes.readUInt32LE(at + 8)
  }
}

interface LogicalStream {
  readonly hz: number
  readonly preSkip: number
  first: number | null
  last: number
}

const OGG_PAGE_BYTES = 27
/** Bytes of a stream's first packet that tell its codec and its rate. */
const OGG_PACKET_BYTES = 48
const OGG_STREAMS_MAX = 16
/** A page is shorter than this: a recording that begins with a later position was cut out of a longer one. */
const OGG_PAGE_SECONDS_MAX = 20
const OGG_MARK = Buffer.from('OggS')

/** Ogg with Opus, Vorbis, Speex or FLAC: each page says how many samples there are up to its end. */
export class OggTrack extends ByteWalker implements AudioTrack {
  /** Milliseconds of the streams that are over: recordings may follow one another. */
  #before = 0
  #streams = new Map<number, LogicalStream>()

  constructor() {
    super(OGG_PAGE_BYTES)
  }

  get milliseconds(): number | null {
    return this.#before + this.#longest()
  }

  protected step(bytes: Buffer, at: number): number {
    if (bytes.toString('latin1', at, at + 4) !== 'OggS') return toMark(bytes, at, OGG_MARK)
    const segments = bytes[at + 26] ?? 0
    const headBytes = OGG_PAGE_BYTES + segments
    const isFirst = ((bytes[at + 5] ?? 0) & 2) !== 0
    const wanted = headBytes + (isFirst ? OGG_PACKET_BYTES : 0)
    if (bytes.length - at < wanted && this.need < wanted) {
      this.need = wanted
      return 0
    }
    this.need = OGG_PAGE_BYTES
    let bodyBytes = 0
    for (let i = 0; i < segments; i++) bodyBytes += bytes[at + OGG_PAGE_BYTES + i] ?? 0
    const serial = bytes.readUInt32LE(at + 14)
    if (isFirst) this.#begin(serial, bytes.subarray(at + headBytes))
    else this.#pass(serial, bytes.readUInt32LE(at + 6), bytes.readInt32LE(at + 10))
    return headBytes + bodyBytes
  }

  #begin(serial: number, packet: Buffer): void {
    const hasBegun = [...this.#streams.values()].some(({ first }) => first !== null)
    if (hasBegun) {
      this.#before += this.#longest()
      this.#streams.clear()
    }
    const codec = oggCodec(packet)
    if (codec !== null && this.#streams.size < OGG_STREAMS_MAX) {
      this.#streams.set(serial, { ...codec, first: null, last: 0 })
    }
  }

  #pass(serial: number, low: number, high: number): void {
    const stream = this.#streams.get(serial)
    const position = high * 2 ** 32 + low
    // A page in which no packet ends has no position (-1), and pages of heads are at position 0.
    if (stream === undefined || position <= 0) return
    stream.first ??= position
    stream.last = Math.max(stream.last, position)
  }

  #longest(): number {
    let longest = 0
    for (const { hz, preSkip, first, last } of this.#streams.values()) {
      const start = first !== null && first > hz * OGG_PAGE_SECONDS_MAX ? first : preSkip
      longest = Math.max(longest, ((last - start) * 1_000) / hz)
    }
    return longest
  }
}

function oggCodec(packet: Buffer): { readonly hz: number; readonly preSkip: number } | null {
  const name = packet.toString('latin1', 0, 8)
  if (name === 'OpusHead') return { hz: 48_000, preSkip: packet.readUInt16LE(10) }
  let hz = 0
  if (name.startsWith('\x01vorbis')) hz = packet.readUInt32LE(12)
  else if (name === 'Speex   ') hz = packet.readUInt32LE(36)
  else if (name.startsWith('\x7fFLAC')) hz = packet.readUIntBE(27, 3) >> 4
  return hz === 0 ? null : { hz, preSkip: 0 }
}

const MATROSKA_SCALE = 0x2ad7b1
const MATROSKA_DURATION = 0x4489
const MATROSKA_CLUSTER_TIME = 0xe7
const MATROSKA_BLOCKS = new Set([0xa3, 0xa1])
const MATROSKA_CLUSTER = 0x1f43b675
const MATROSKA_CLUSTER_MARK = Buffer.from([0x1f, 0x43, 0xb6, 0x75])
/** Segment, Info, Cluster, BlockGroup: their content is elements, and the length of the first and third may be open. */
const MATROSKA_OUTER = new Set([0x18538067, 0x1549a966, MATROSKA_CLUSTER, 0xa0])
/** A head of 12 bytes at most, and the number behind it. */
const MATROSKA_NEED = 24

/** WebM and Matroska: the length is the stated one or the time of the last block, whichever is longer. */
export class MatroskaTrack extends ByteWalker implements AudioTrack {
  #nanosPerUnit = 1_000_000
  #durationUnits = 0
  #clusterUnits = 0
  #lastUnits = 0
  #isLost = false

  constructor() {
    super(MATROSKA_NEED)
  }

  get milliseconds(): number | null {
    const units = Math.max(this.#durationUnits, this.#lastUnits)
    return units === 0 ? null : (units * this.#nanosPerUnit) / 1e6
  }

  protected step(bytes: Buffer, at: number): number {
    const idBytes = Math.clz32((bytes[at] ?? 0) << 24) + 1
    const sizeAt = at + idBytes
    const sizeBytes = Math.clz32((bytes[sizeAt] ?? 0) << 24) + 1
    // No element begins at this byte: reading can go on at the next cluster.
    const id = idBytes > 4 || sizeBytes > 8 ? 0 : bytes.readUIntBE(at, idBytes)
    this.#isLost = id === 0 || (this.#isLost && id !== MATROSKA_CLUSTER)
    if (this.#isLost) return toMark(bytes, at, MATROSKA_CLUSTER_MARK)
    const content = sizeAt + sizeBytes
    const size = vint(bytes, sizeAt, sizeBytes)
    if (MATROSKA_OUTER.has(id) || size === Infinity) return content - at
    if (id === MATROSKA_SCALE) this.#nanosPerUnit = uint(bytes, content, size)
    else if (id === MATROSKA_DURATION) this.#durationUnits = float(bytes, content, size)
    else if (id === MATROSKA_CLUSTER_TIME) this.#clusterUnits = uint(bytes, content, size)
    else if (MATROSKA_BLOCKS.has(id)) {
      const trackBytes = Math.clz32((bytes[content] ?? 0) << 24) + 1
      const relative = trackBytes > 8 ? 0 : bytes.readInt16BE(content + trackBytes)
      this.#lastUnits = Math.max(this.#lastUnits, this.#clusterUnits + relative)
    }
    return content - at + size
  }
}

/** A number that says its own length; a number of all ones stands for an open length. */
function vint(bytes: Buffer, at: number, length: number): number {
  let value = (bytes[at] ?? 0) & (0xff >> length)
  let isOpen = value === 0xff >> length
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i] ?? 0
    isOpen &&= byte === 0xff
    value = value * 256 + byte
  }
  return isOpen ? Infinity : value
}

function uint(bytes: Buffer, at: number, length: number): number {
  let value = 0
  for (let i = 0; i < Math.min(length, 8); i++) value = value * 256 + (bytes[at + i] ?? 0)
  return value
}

function float(bytes: Buffer, at: number, length: number): number {
  const value = length === 4 ? bytes.readFloatBE(at) : length === 8 ? bytes.readDoubleBE(at) : 0
  return Number.isFinite(value) ? value : 0
}

const PACK_MARK = Buffer.from([0, 0, 1, 0xba])

/** An MPEG program stream: its packs carry the time, in units of 1/90,000 s. */
export class ProgramStreamTrack extends ByteWalker implements AudioTrack {
  #first: number | null = null
  #last = 0

  constructor() {
    super(9)
  }

  get milliseconds(): number | null {
    return this.#first === null ? null : (this.#last - this.#first) / 90
  }

  protected step(bytes: Buffer, at: number): number {
    const [, , , mark, a = 0, b = 0, c = 0, d = 0, e = 0] = bytes.subarray(at, at + 9)
    if (mark === 0xba && bytes.indexOf(PACK_MARK, at) === at) {
      const isMpeg2 = a >> 6 === 1
      const time = isMpeg2
        ? ((a >> 3) & 7) * 2 ** 30 +
          ((((a & 3) << 13) | (b << 5) | (c >> 3)) * 2 ** 15 + (((c & 3) << 13) | (d << 5) | (e >> 3)))
        : ((a >> 1) & 7) * 2 ** 30 + (((b << 7) | (c >> 1)) * 2 ** 15 + ((d << 7) | (e >> 1)))
      this.#first ??= time
      this.#last = Math.max(this.#last, time)
    }
    return toMark(bytes, at, PACK_MARK)
  }
}

/** Boxes whose content is boxes. */
const MP4_OUTER = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl', 'mvex', 'moof', 'traf'])
/** How many bytes behind their head have to be seen of the boxes that are read. */
const MP4_READ: ReadonlyMap<string, number> = new Map([
  ['mvhd', 32],
  ['mdhd', 32],
  ['tkhd', 24],
  ['mehd', 12],
  ['trex', 16],
  ['tfhd', 24],
  ['tfdt', 12],
  ['trun', 16],
  ['stts', 8],
])
const MP4_TRACKS_MAX = 64

interface Mp4Timing {
  unitsPerSecond: number
  /** The length of each sample, where the fragment states no other. */
  sampleUnits: number
  endUnits: number
}

/**
 * MP4, M4A and QuickTime: the length is stated in several places, before the samples or behind them, or is the sum of
 * the fragments where a file was written as it was recorded. The longest counts.
 */
export class Mp4Track extends ByteWalker implements AudioTrack {
  #stated = 0
  #movieUnitsPerSecond = 0
  readonly #tracks = new Map<number, Mp4Timing>()
  /** The track at hand, and how long its samples are by the fragment at hand. */
  #track: Mp4Timing = newTiming()
  #sampleUnits = 0
  /** The list that is being read: how many entries follow, the bytes of each, and the bytes of the box behind the entries. */
  #entriesLeft = 0
  #entryBytes = 0
  #behindEntries = 0
  #isTable = false

  constructor() {
    super(8)
  }

  get milliseconds(): number | null {
    let longest = this.#stated
    for (const { endUnits, unitsPerSecond } of [...this.#tracks.values(), this.#track]) {
      if (unitsPerSecond > 0) longest = Math.max(longest, (endUnits * 1_000) / unitsPerSecond)
    }
    return longest === 0 ? null : longest
  }

  protected step(bytes: Buffer, at: number): number {
    if (this.#entriesLeft > 0) return this.#readEntry(bytes, at)
    const length = bytes.readUInt32BE(at)
    const type = bytes.toString('latin1', at + 4, at + 8)
    const headBytes = length === 1 ? 16 : 8
    const wanted = headBytes + (MP4_READ.get(type) ?? 0)
    if (this.need < wanted) {
      this.need = wanted
      return 0
    }
    this.need = 8
    // The last box may leave its length open.
    const boxBytes = length === 0 ? Infinity : length === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : length
    if (type === 'trak') this.#track = newTiming()
    if (MP4_OUTER.has(type)) return headBytes
    if (MP4_READ.has(type)) return this.#read(type, bytes, at + headBytes, headBytes, boxBytes)
    return Math.max(headBytes, boxBytes)
  }

  #read(type: string, bytes: Buffer, at: number, headBytes: number, boxBytes: number): number {
    const isLong = bytes[at] === 1
    const flags = bytes.readUIntBE(at + 1, 3)
    const units = (offset: number) =>
      isLong ? Number(bytes.readBigUInt64BE(offset)) : bytes.readUInt32BE(offset)
    switch (type) {
      case 'mvhd':
      case 'mdhd': {
        const unitsPerSecond = bytes.readUInt32BE(at + (isLong ? 20 : 12))
        if (type === 'mvhd') this.#movieUnitsPerSecond = unitsPerSecond
        else this.#track.unitsPerSecond = unitsPerSecond
        this.#state(units(at + (isLong ? 24 : 16)), unitsPerSecond)
        break
      }
      case 'tkhd':
        this.#keep(bytes.readUInt32BE(at + (isLong ? 20 : 12)))
        break
      case 'mehd':
        this.#state(units(at + 4), this.#movieUnitsPerSecond)
        break
      case 'trex':
        this.#keep(bytes.readUInt32BE(at + 4))
        this.#track.sampleUnits = bytes.readUInt32BE(at + 12)
        break
      case 'tfhd': {
        this.#keep(bytes.readUInt32BE(at + 4))
        const offset = at + 8 + (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0)
        this.#sampleUnits = flags & 8 ? bytes.readUInt32BE(offset) : this.#track.sampleUnits
        break
      }
      case 'tfdt':
        this.#track.endUnits = Math.max(this.#track.endUnits, units(at + 4))
        break
      case 'trun': {
        const samples = bytes.readUInt32BE(at + 4)
        const listAt = 8 + (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0)
        const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => (flags & flag) !== 0).length
        if ((flags & 0x100) === 0) this.#track.endUnits += samples * this.#sampleUnits
        else return this.#startList(samples, fields * 4, headBytes + listAt, boxBytes, false)
        break
      }
      case 'stts':
        return this.#startList(bytes.readUInt32BE(at + 4), 8, headBytes + 8, boxBytes, true)
    }
    return Math.max(headBytes, boxBytes)
  }

  #state(units: number, unitsPerSecond: number): void {
    const isOpen = units === OPEN_LENGTH || units >= 2 ** 63
    if (!isOpen && unitsPerSecond > 0) this.#stated = Math.max(this.#stated, (units * 1_000) / unitsPerSecond)
  }

  #keep(id: number): void {
    const known = this.#tracks.get(id)
    if (known !== undefined) this.#track = known
    else if (this.#tracks.size < MP4_TRACKS_MAX) this.#tracks.set(id, this.#track)
  }

  #startList(
    entries: number,
    entryBytes: number,
    offset: number,
    boxBytes: number,
    isTable: boolean,
  ): number {
    const room = Math.max(0, boxBytes - offset)
    this.#entriesLeft = Math.min(entries, Math.floor(room / entryBytes))
    this.#behindEntries = room - this.#entriesLeft * entryBytes
    if (this.#entriesLeft === 0) return Math.max(offset, boxBytes)
    this.#entryBytes = entryBytes
    this.#isTable = isTable
    this.need = entryBytes
    return offset
  }

  /** An entry of a fragment is the length of one sample; an entry of a table is a number of samples and the length of each. */
  #readEntry(bytes: Buffer, at: number): number {
    const first = bytes.readUInt32BE(at)
    this.#track.endUnits += this.#isTable ? first * bytes.readUInt32BE(at + 4) : first
    this.#entriesLeft -= 1
    if (this.#entriesLeft > 0) return this.#entryBytes
    this.need = 8
    return this.#entryBytes + this.#behindEntries
  }
}

function newTiming(): Mp4Timing {
  return { unitsPerSecond: 0, sampleUnits: 0, endUnits: 0 }
}
