import { StringDecoder } from 'node:string_decoder'
import { type Borrowed, viewOf } from '../../kernel/memory.ts'
import type { Quantities } from '../../kernel/usage.ts'
import { AudioClock, PCM_BYTES_PER_MS } from '../../metering/audio-clock.ts'
import { type AudioSeen, type Meter, MeterAround, type Metered, SilentMeter } from '../../metering/meter.ts'
import { looseName, type PartHead, type PartSink } from '../../metering/multipart-scanner.ts'
import { OutputText } from '../../metering/output-text.ts'
import type { RequestFacts } from '../../metering/request-facts.ts'

/**
 * OpenAI documents one token for each 100 ms of audio that a user sends and one for each 50 ms that a model speaks. Its
 * prices a minute agree: gpt-4o-transcribe, "$0.006", is 600 tokens at $6 a million and some 200 of text at $10;
 * gpt-4o-mini-tts, "$0.015", is 1,250 at $12; and 268 s of speech were billed as 5,392 tokens, 20.1 a second.
 */
const HEARD_MS_PER_TOKEN = 100
const SPOKEN_MS_PER_TOKEN = 50

/** An upload of unknown format is taken for a voice note of 16 kbit/s. Speech is rarely encoded in less. */
const UNKNOWN_UPLOAD_BYTES_PER_MS = 2

/**
 * The head of a file may state any length. No byte of audio lasts longer than this, and the hold counts with no more; a
 * minute is believed of any file.
 */
const UPLOAD_MS_PER_BYTE_MOST = 10
const UPLOAD_MS_BELIEVED = 60_000

/** Speech is not faster for long: 200 words a minute are 20 characters a second. Text tells the least length of its audio. */
export const CHARACTERS_PER_SECOND_MOST = 25

/**
 * Speech whose length its bytes do not tell, because they came as events or are damaged, by the format asked for: MP3
 * as OpenAI sends it (4.3 MB for 268 s), the others at the low end of what is usual for a voice.
 */
const SPOKEN_BYTES_PER_MS: ReadonlyMap<string, number> = new Map([
  ['mp3', 16],
  ['opus', 4],
  ['aac', 8],
  ['flac', 24],
  ['wav', PCM_BYTES_PER_MS],
  ['pcm', PCM_BYTES_PER_MS],
])

/** How long a file of unknown format is taken to be. */
export function assumedUploadMs(bytes: number): number {
  return Math.ceil(bytes / UNKNOWN_UPLOAD_BYTES_PER_MS)
}

/** The longest that a file of so many bytes can say it is. */
function uploadMsMost(bytes: number): number {
  return Math.max(bytes * UPLOAD_MS_PER_BYTE_MOST, UPLOAD_MS_BELIEVED)
}

/** Tokens of audio that a user sends. */
export function heardTokens(milliseconds: number): number {
  return Math.ceil(milliseconds / HEARD_MS_PER_TOKEN)
}

/** Tokens of audio that a model speaks. */
export function spokenTokens(milliseconds: number): number {
  return Math.ceil(milliseconds / SPOKEN_MS_PER_TOKEN)
}

/** The tokens of the audio that a speech request got, by its length. */
export function countSpoken(audio: AudioSeen | undefined, format: string | null): Quantities {
  if (audio === undefined) return { audio_output_tokens: 0 }
  const bytesPerMs = SPOKEN_BYTES_PER_MS.get(format ?? 'mp3') ?? 16
  return { audio_output_tokens: spokenTokens(audio.milliseconds ?? audio.bytes / bytesPerMs) }
}

/**
 * The audio that a transcription heard: as long as the reply says, else as long as the file is, and then at least up to the
 * last time stamp and as long as it takes to say the text, so that a file that lies about its length is not free.
 */
export function countHeard(
  { audio, output }: Pick<Metered, 'audio' | 'output'>,
  model: string | null,
  fileMs: number,
  tokensMax: number | null,
): Quantities {
  const stated = audio?.milliseconds ?? null
  if (stated !== null) return countHeardMs(model, stated, null)
  const ms = Math.max(fileMs, audio?.leastMilliseconds ?? 0, Math.ceil(spokenMs(output)))
  return countHeardMs(model, ms, tokensMax)
}

/** Audio of this length in the unit by which a transcription of it is sold. */
export function countHeardMs(model: string | null, ms: number, tokensMax: number | null): Quantities {
  // Whole seconds, as upstream states them: 8.47 s are stated as 9.
  if (isSoldByDuration(model)) return { audio_input_milliseconds: Math.ceil(ms / 1_000) * 1_000 }
  const tokens = heardTokens(ms)
  return { audio_input_tokens: Math.min(tokens, tokensMax ?? tokens) }
}

function spokenMs(output: Metered['output']): number {
  if (output.keptBytes === 0) return 0
  const kept = output.texts().reduce((sum, text) => sum + text.length, 0)
  return (kept * (output.bytes.text / output.keptBytes) * 1_000) / CHARACTERS_PER_SECOND_MOST
}

const SOLD_BY_DURATION =
  /^(?:whisper-\d+|gpt-transcribe|gpt-live-transcribe|gpt-realtime-whisper|gpt-realtime-translate)$/

/** Models that the price list sells by the hour, not by the token. */
export function isSoldByDuration(model: string | null): boolean {
  return model !== null && SOLD_BY_DURATION.test(model)
}

/**
 * Looks at the audio file of a transcription request as it passes. Which of several files upstream would take is not
 * known; the longest counts.
 */
export class AudioUpload implements PartSink {
  #clock: AudioClock | null = null
  #longestMs: number | null = null

  open(head: PartHead): boolean {
    this.#keep()
    const isFile = head.isFile || looseName(head.name) === 'file'
    this.#clock = isFile ? new AudioClock() : null
    return isFile
  }

  write(bytes: Borrowed): void {
    this.#clock?.write(bytes)
  }

  /** The length of the file, or a guess if its format is unknown; null if there is no file. To be asked when all has passed. */
  get milliseconds(): number | null {
    this.#keep()
    return this.#longestMs
  }

  #keep(): void {
    const clock = this.#clock
    if (clock === null) return
    const told = clock.milliseconds ?? assumedUploadMs(clock.bytes)
    this.#longestMs = Math.max(this.#longestMs ?? 0, Math.min(told, uploadMsMost(clock.bytes)))
  }
}

/** The speech models that are sold by the character of their input. Nothing of that is on the wire. */
const SOLD_BY_CHARACTER = /^tts-1(?:-hd)?(?:-\d{4})?$/

/** The text of a speech request, as a count of characters, and the format of the audio. */
export interface SpeechRequest {
  /** Characters as people count them, not UTF-16 units. */
  readonly characters: number
  /** False: the text was too long to be kept, and `characters` is the most. No upstream is known to take such a text. */
  readonly exact: boolean
  /** `response_format`, where the request names one. */
  readonly format: string | null
}

/** Null for every request that is no speech request: only where speech is made `input` is looked for. */
export function speechRequest(facts: RequestFacts): SpeechRequest | null {
  const input = facts.kind === 'json' ? facts.scan.members.get('input') : undefined
  if (facts.kind !== 'json' || input === undefined) return null
  const named = facts.scan.members.get('response_format')
  const format = named?.kind === 'string' ? named.value : null
  if (input.kind === 'string') return { characters: codePoints(input.value), exact: true, format }
  return { characters: input.end - input.start, exact: false, format }
}

/** The request, if its model is one that is sold by its characters. */
export function soldByCharacter(model: string | null, speech: SpeechRequest | null): SpeechRequest | null {
  return model !== null && SOLD_BY_CHARACTER.test(model) ? speech : null
}

function codePoints(text: string): number {
  let pairs = 0
  for (let i = 1; i < text.length; i++) {
    const isPair = (text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800
    if (isPair) pairs++
  }
  return text.length - pairs
}

/** The meter of speech as bytes of audio. */
export class SpeechMeter extends SilentMeter {
  readonly #clock: AudioClock

  constructor(contentType: string) {
    super()
    this.#clock = new AudioClock(/^\s*audio\/(?:pcm|l16)\b/i.test(contentType))
  }

  override write(chunk: Borrowed): void {
    this.#clock.write(chunk)
  }

  override end(whole: boolean): Metered {
    const { milliseconds, bytes } = this.#clock
    return { ...super.end(whole), audio: { milliseconds, leastMilliseconds: 0, bytes } }
  }
}

/** The meter of speech as events. The last event states the usage; without it the bytes count: base64, so 3 in 4 are audio. */
export class SpeechEventsMeter extends MeterAround implements Meter {
  #bytes = 0

  write(chunk: Borrowed): void {
    this.#bytes += chunk.length
    this.inner.write(chunk)
  }

  end(whole: boolean): Metered {
    const metered = this.inner.end(whole)
    if (metered.outputKnown) return metered
    const bytes = Math.floor((this.#bytes * 3) / 4)
    return { ...metered, audio: { milliseconds: null, leastMilliseconds: 0, bytes } }
  }
}

/** The line of SRT and WebVTT that says from when to when a text is shown. */
const TIME_STAMPS = /^\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}\s+-->\s+(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})/
/** Other lines of subtitles that are not spoken. */
const UNSPOKEN = /^\s*(?:\d+|WEBVTT.*)?\s*$/
/** A line that is longer is text, and is taken before its end. */
const LINE_CHARS_MAX = 1_024

/** The meter of a transcript as plain text or as subtitles. */
export class TranscriptMeter extends SilentMeter {
  readonly #output = new OutputText()
  readonly #decoder = new StringDecoder('utf8')
  #line = ''
  #lastMs = 0

  override write(chunk: Borrowed): void {
    const lines = (this.#line + this.#decoder.write(viewOf(chunk))).split('\n')
    this.#line = lines.pop() ?? ''
    for (const line of lines) this.#read(line)
    if (this.#line.length <= LINE_CHARS_MAX) return
    this.#output.channel('text', 0).append(this.#line)
    this.#line = ''
  }

  override end(whole: boolean): Metered {
    this.#read(this.#line)
    const audio = { milliseconds: null, leastMilliseconds: this.#lastMs, bytes: 0 }
    return { ...super.end(whole), output: this.#output.delivered(), audio }
  }

  #read(line: string): void {
    const [stamps, hours = '0', minutes, seconds, fraction] = TIME_STAMPS.exec(line) ?? []
    if (stamps !== undefined) {
      const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000 + Number(fraction)
      this.#lastMs = Math.max(this.#lastMs, ms)
    } else if (!UNSPOKEN.test(line)) this.#output.channel('text', 0).append(`${line}\n`)
  }
}
