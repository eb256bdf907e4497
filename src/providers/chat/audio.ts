import { StringDecoder } from 'node:string_decoder'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Quantities } from '../../kernel/usage.ts'
import {
  type AudioSeen,
  type Metered,
  NO_AUDIO,
  nothingDelivered,
  SilentMeter,
} from '../../metering/meter.ts'
import { boundaryOf, looseName, MultipartScanner } from '../../metering/multipart-scanner.ts'
import type { RequestFacts } from '../request-facts.ts'

/** OpenAI's uncompressed speech: 16-bit samples at 24 kHz. */
export const PCM_BYTES_PER_MS = 48

/**
 * OpenAI documents one token per 100 ms of input audio and one per 50 ms of speech. Its prices per minute agree:
 * gpt-4o-transcribe, "$0.006", is 600 tokens at $6 per million plus about 200 of text at $10; gpt-4o-mini-tts,
 * "$0.015", is 1,250 at $12; and 268 s of speech were billed as 5,392 tokens, 20.1 per second.
 */
const INPUT_MS_PER_TOKEN = 100
const OUTPUT_MS_PER_TOKEN = 50

/** The assumed bit rate of an upload of unknown format: that of a voice note, 16 kbit/s. Speech rarely uses less. */
const UNKNOWN_UPLOAD_BYTES_PER_MS = 2

/** Bounds for the length that a file's header states, which could be anything. */
const UPLOAD_MS_PER_BYTE_MOST = 10
const UPLOAD_BYTES_PER_MS_MOST = 600

/** The highest bit rates that recordings have, by codec. A file with video may have any. */
const CODED_BYTES_PER_MS_MOST: readonly (readonly [RegExp, number])[] = [
  [/Layer|AAC/i, 40],
  [/Opus|Vorbis|Speex/i, 64],
  [/FLAC|ALAC/i, 200],
]

function bytesPerMsMost(codec = '', hasVideo = false): number {
  const coded = CODED_BYTES_PER_MS_MOST.find(([name]) => name.test(codec))
  return coded === undefined || hasVideo ? UPLOAD_BYTES_PER_MS_MOST : coded[1]
}

/** Bit rates of speech that does not state one, by format: the low end of what is usual for voice. */
const SPEECH_BYTES_PER_MS: ReadonlyMap<string, number> = new Map([
  ['mp3', 16],
  ['opus', 4],
  ['aac', 8],
  ['flac', 24],
  ['wav', PCM_BYTES_PER_MS],
  ['pcm', PCM_BYTES_PER_MS],
])

export function inputAudioTokens(milliseconds: number): number {
  return Math.ceil(milliseconds / INPUT_MS_PER_TOKEN)
}

export function outputAudioTokens(milliseconds: number): number {
  return Math.ceil(milliseconds / OUTPUT_MS_PER_TOKEN)
}

/** The tokens of generated speech. `audio` is null for a stream of events, whose base64 has 4 bytes for 3 of audio. */
export async function countOutputAudio(
  audio: AudioSeen | null,
  bytesOut: number,
  format: unknown,
): Promise<Quantities> {
  const bytes = audio?.bytes ?? Math.floor((bytesOut * 3) / 4)
  const isEncoded = audio !== null && format !== 'pcm'
  const bitrate = isEncoded ? (await readAudio(audio.head))?.bitrate : undefined
  const bytesPerMs =
    bitrate === undefined ? (SPEECH_BYTES_PER_MS.get(String(format ?? 'mp3')) ?? 16) : bitrate / 8_000
  return { audio_output_tokens: outputAudioTokens(bytes / bytesPerMs) }
}

/** Loads the library on first use. Null for a format that it does not know. */
async function readAudio(bytes: Buffer) {
  try {
    const { parseBlob } = await import('music-metadata')
    const { format } = await parseBlob(pacedBlob(bytes.subarray(tagBytes(bytes))), { skipCovers: true })
    return format
  } catch {
    return null
  }
}

const READS_MAX = 50_000
const READS_PER_TURN = 250
const READ_BYTES_MAX = 1024 ** 2
const READ_BYTES_PER_TURN = 64 * 1024

/** The library needs up to 40 µs for each part of a file, of which a client can send millions, and leaves no turn to others. */
function pacedBlob(bytes: Buffer): Blob {
  let reads = 0
  const read = async (from: number, to: number) => {
    reads += 1
    if (reads > READS_MAX || to - from > READ_BYTES_MAX) throw new Error('The file has too many parts.')
    if (reads % READS_PER_TURN === 0 || to - from > READ_BYTES_PER_TURN) await nextTurn()
    return new Uint8Array(bytes.subarray(from, to)).buffer
  }
  const slice = (from: number, to: number) => ({ arrayBuffer: () => read(from, to) })
  return { size: bytes.length, type: '', slice } as unknown as Blob
}

/** The length of the ID3v2 tag at the start, which has no length of audio and would be read as a whole. */
function tagBytes(bytes: Buffer): number {
  if (bytes.toString('latin1', 0, 3) !== 'ID3' || bytes.length < 10) return 0
  const [a = 0, b = 0, c = 0, d = 0] = bytes.subarray(6, 10)
  return Math.min(bytes.length, 10 + (a << 21) + (b << 14) + (c << 7) + d)
}

/** The duration of an uploaded file, estimated from its size if the format is unknown. */
async function uploadMs(file: Buffer | null, bodyBytes: number): Promise<number> {
  const bytes = file?.length ?? bodyBytes
  const format = file === null ? null : await readAudio(file)
  const seconds = format?.duration
  if (format === null || seconds === undefined || !(seconds > 0))
    return Math.ceil(bytes / UNKNOWN_UPLOAD_BYTES_PER_MS)
  const ms = Math.min(Math.ceil(seconds * 1_000), bytes * UPLOAD_MS_PER_BYTE_MOST)
  return Math.max(ms, Math.ceil(bytes / bytesPerMsMost(format.codec, format.hasVideo)))
}

/** The longest file in the form of a transcription request. */
export function fileIn(contentType: string | undefined, pieces: readonly Buffer[]): Buffer | null {
  const boundary = boundaryOf(contentType ?? '')
  if (boundary === null) return null
  const files: Buffer[][] = []
  const form = new MultipartScanner(boundary, [], {
    open(head) {
      const isFile = head.isFile || looseName(head.name) === 'file'
      if (isFile) files.push([])
      return isFile
    },
    write: (bytes) => files.at(-1)?.push(Buffer.from(bytes)),
  })
  for (const piece of pieces) form.write(piece)
  form.end()
  return files.map((file) => Buffer.concat(file)).sort((a, b) => b.length - a.length)[0] ?? null
}

/** `isTimed`: the model is priced by the length of the audio. Uses the length that the reply states, else the file's length, but at least the last timestamp of subtitles. */
export async function countInputAudio(
  audio: AudioSeen | null,
  isTimed: boolean,
  { file, bodyBytes }: { readonly file: Buffer | null; readonly bodyBytes: number },
  tokensMax: number | null,
): Promise<Quantities> {
  const stated = audio?.milliseconds ?? null
  if (stated !== null) return countInputAudioMs(isTimed, stated, null)
  const ms = Math.max(await uploadMs(file, bodyBytes), audio?.minimumMilliseconds ?? 0)
  return countInputAudioMs(isTimed, ms, tokensMax)
}

/** The billed quantity for input audio of this duration, in the unit that the model is priced in. */
function countInputAudioMs(isTimed: boolean, ms: number, tokensMax: number | null): Quantities {
  // Whole seconds, as upstream counts: 8.47 s is 9.
  if (isTimed) return { audio_input_milliseconds: Math.ceil(ms / 1_000) * 1_000 }
  const tokens = inputAudioTokens(ms)
  return { audio_input_tokens: Math.min(tokens, tokensMax ?? tokens) }
}

/** The characters of a speech request, as code points; null if the text is longer than any upstream accepts. */
export function spokenCharacters({ body: { input } }: RequestFacts): number | null {
  return typeof input === 'string' ? [...input].length : null
}

/** How many of the first bytes are stored to read the bit rate. */
const HEAD_BYTES = 16 * 1024

export class SpeechMeter extends SilentMeter {
  readonly #head: Buffer[] = []
  #bytes = 0

  override write(chunk: Buffer): Buffer {
    if (this.#bytes < HEAD_BYTES) this.#head.push(Buffer.from(chunk))
    this.#bytes += chunk.length
    return chunk
  }

  override end(whole: boolean): Metered {
    const audio = { ...NO_AUDIO, bytes: this.#bytes, head: Buffer.concat(this.#head) }
    return { ...super.end(whole), audio }
  }
}

/** The timing line of SRT and WebVTT. */
const TIME_STAMPS = /^\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}\s+-->\s+(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})/
/** Subtitle lines without spoken text. */
const NOT_SPOKEN = /^\s*(?:\d+|WEBVTT.*)?\s*$/
/** The longest line that may be a timing line. A longer line is counted as text before its end. */
const LINE_CHARS_MAX = 1_024

/** The meter of a transcript as plain text or as subtitles. */
export class TranscriptMeter extends SilentMeter {
  readonly #output = nothingDelivered()
  readonly #decoder = new StringDecoder('utf8')
  #line = ''
  #lastMs = 0

  override write(chunk: Buffer): Buffer {
    const lines = (this.#line + this.#decoder.write(chunk)).split('\n')
    this.#line = lines.pop() ?? ''
    for (const line of lines) this.#read(line)
    if (this.#line.length > LINE_CHARS_MAX) {
      this.#output.text += Buffer.byteLength(this.#line)
      this.#line = ''
    }
    return chunk
  }

  override end(whole: boolean): Metered {
    this.#read(this.#line)
    const audio = { ...NO_AUDIO, minimumMilliseconds: this.#lastMs }
    return { ...super.end(whole), output: this.#output, audio }
  }

  #read(line: string): void {
    const [stamps, hours = '0', minutes, seconds, fraction] = TIME_STAMPS.exec(line) ?? []
    if (stamps !== undefined) {
      const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000 + Number(fraction)
      this.#lastMs = Math.max(this.#lastMs, ms)
    } else if (!NOT_SPOKEN.test(line)) this.#output.text += Buffer.byteLength(line) + 1
  }
}
