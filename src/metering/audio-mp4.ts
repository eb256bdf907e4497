import { type AudioTrack, ByteWalker } from './audio-track.ts'

/** A length that was not known when the head was written. */
const OPEN_LENGTH = 0xffff_ffff

/** Boxes whose content is boxes. */
const MP4_OUTER = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl', 'mvex', 'moof', 'traf'])
/** Of these boxes, what has to be seen behind their head. */
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
  /** Of each sample, where nothing else is said. */
  sampleUnits: number
  endUnits: number
}

/**
 * MP4, M4A and QuickTime: the length is stated in several places, before the samples or behind them, or told by the
 * fragments of what was written as it went. The longest counts.
 */
export class Mp4Track extends ByteWalker implements AudioTrack {
  #stated = 0
  #movieUnitsPerSecond = 0
  readonly #tracks = new Map<number, Mp4Timing>()
  /** The one at hand, and how long its samples are if the fragment at hand says so. */
  #track: Mp4Timing = newTiming()
  #sampleUnits = 0
  /** Entries of a list that is being read: how many follow, how long each is, and what is behind them. */
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

  /** Of a fragment, how long one sample is; of a table, how many samples there are of how much each. */
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
