import { type Borrowed, viewOf } from '../kernel/memory.ts'
import { MatroskaTrack, Mp4Track, OggTrack, ProgramStreamTrack, WavTrack } from './audio-containers.ts'
import { type AudioTrack, FlacTrack, id3Bytes, MpegTrack } from './audio-frames.ts'

/** How many of the first bytes are looked at to tell the format. */
const HEAD_BYTES = 16
const NOTHING = Buffer.alloc(0)

/** 16-bit samples of one channel at 24 kHz: the meaning of `pcm` in all of OpenAI's APIs. */
export const PCM_BYTES_PER_MS = 48

/**
 * Tells how long audio is from its bytes as they pass. It looks at headers alone, keeps a few hundred bytes, and
 * never throws. The bytes themselves tell the format; only bare samples have no mark.
 */
export class AudioClock {
  readonly #mayBePcm: boolean
  #head: Buffer = NOTHING
  #skip = 0
  #track: AudioTrack | null = null
  #failed = false
  #bytes = 0

  /** `mayBePcm`: the request or the reply says that the bytes are bare samples, which counts where no other format is found. */
  constructor(mayBePcm = false) {
    this.#mayBePcm = mayBePcm
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The length of the audio; null where the bytes do not tell. */
  get milliseconds(): number | null {
    const told = this.#failed ? null : (this.#track?.milliseconds ?? null)
    if (told !== null && told > 0 && Number.isFinite(told)) return Math.ceil(told)
    return this.#mayBePcm ? Math.ceil(this.#bytes / PCM_BYTES_PER_MS) : null
  }

  write(chunk: Borrowed): void {
    this.#bytes += chunk.length
    if (this.#failed) return
    try {
      if (this.#track === null) this.#open(viewOf(chunk))
      else this.#track.write(chunk)
    } catch {
      // A fault in our reader: the audio counts as audio of an unknown format.
      this.#failed = true
    }
  }

  #open(chunk: Buffer): void {
    const skipped = Math.min(this.#skip, chunk.length)
    this.#skip -= skipped
    let head = Buffer.concat([this.#head, chunk.subarray(skipped)])
    while (head.length >= HEAD_BYTES) {
      const tagBytes = id3Bytes(head, 0)
      if (tagBytes === 0) {
        this.#track = trackFor(head)
        this.#track.write(head)
        head = NOTHING
        break
      }
      this.#skip = Math.max(0, tagBytes - head.length)
      head = head.subarray(tagBytes)
    }
    this.#head = head
  }
}

const MP4_FIRST_BOXES = new Set(['ftyp', 'moov', 'mdat', 'free', 'skip', 'wide', 'pnot', 'styp', 'uuid'])

function trackFor(head: Buffer): AudioTrack {
  const [start, second, third] = [0, 4, 8].map((at) => head.toString('latin1', at, at + 4))
  if ((start === 'RIFF' || start === 'RF64') && third === 'WAVE') return new WavTrack()
  if (start === 'fLaC') return new FlacTrack()
  if (start === 'OggS') return new OggTrack()
  if (start === '\x1aE\xdf\xa3') return new MatroskaTrack()
  if (start === '\x00\x00\x01\xba') return new ProgramStreamTrack()
  if (second !== undefined && MP4_FIRST_BOXES.has(second)) return new Mp4Track()
  return new MpegTrack()
}
