import { StringDecoder } from 'node:string_decoder'
import { type Borrowed, viewOf } from '../../kernel/read-buffer.ts'
import { AudioClock } from '../../metering/audio-clock.ts'
import { type Meter, MeterAround, type Metered, SilentMeter } from '../../metering/meter.ts'
import { OutputText } from '../../metering/output-text.ts'

/** Speech as bytes of audio. */
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

/** Speech as events. The last of them says the usage; without it only the bytes tell, of which 3 in 4 are audio in base64. */
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

/** Of SRT and WebVTT: from when to when a line of text is shown. */
const TIME_STAMPS = /^\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}\s+-->\s+(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})/
/** What else in subtitles is not spoken. */
const UNSPOKEN = /^\s*(?:\d+|WEBVTT.*)?\s*$/
/** A line that is longer is text, and is not waited for. */
const LINE_CHARS_MAX = 1_024

/** A transcript as plain text or as subtitles. */
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
