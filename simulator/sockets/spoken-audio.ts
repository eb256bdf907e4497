import { audioFormats } from '../audio-formats.ts'
import { seedFromText } from '../chance.ts'
import { composeAnswer } from '../compose-text.ts'
import { asText, isObject, type JsonObject } from '../json.ts'
import { Refusal } from '../refusal.ts'
import { splitIntoDeltas } from '../tokens.ts'
import type { TurnEvent } from './write-turn.ts'

const speechMsMin = 500
const silenceMsMin = 200
const heardTokensPerSecond = 10
const transcriptTokensPerSecond = 4
const transcriptTokensMax = 2_000
/** Characters of spoken text per piece of sound. A piece of sound is a quarter of a second. */
const charactersPerPiece = 15 / 4
export const tokensPerPiece = 5

export interface Heard {
  readonly startMs: number
  readonly endMs: number
  readonly seconds: number
  readonly audioTokens: number
  readonly transcript: string
}

/**
 * Audio that was sent since the last turn. Only the lengths of the audio, of its speech and of the silence at its end are
 * kept: half a second of speech, and then a fifth of a second of zeros, are a turn.
 */
export class SpeechBuffer {
  #endMs = 0
  #lengthMs = 0
  #speechMs = 0
  #silenceMs = 0

  append(bytes: Buffer, format: unknown): void {
    const bytesPerMs = bytesPerMsOf(format)
    let speechBytes = bytes.length
    while (speechBytes > 0 && bytes[speechBytes - 1] === 0) speechBytes -= 1
    const lengthMs = bytes.length / bytesPerMs
    const speechMs = speechBytes / bytesPerMs
    this.#endMs += lengthMs
    this.#lengthMs += lengthMs
    this.#speechMs += speechMs
    this.#silenceMs = speechBytes === 0 ? this.#silenceMs + lengthMs : lengthMs - speechMs
  }

  get lengthMs(): number {
    return this.#lengthMs
  }

  get endMs(): number {
    return Math.round(this.#endMs)
  }

  get isSpeech(): boolean {
    return this.#speechMs >= speechMsMin
  }

  get isOver(): boolean {
    return this.isSpeech && this.#silenceMs >= silenceMsMin
  }

  take(): Heard {
    const seconds = this.#lengthMs / 1_000
    const startMs = Math.round(this.#endMs - this.#lengthMs)
    const heard = { startMs, endMs: this.endMs, seconds, ...hear(seconds) }
    this.clear()
    return heard
  }

  clear(): void {
    this.#lengthMs = 0
    this.#speechMs = 0
    this.#silenceMs = 0
  }
}

export function hear(seconds: number): { audioTokens: number; transcript: string } {
  const tokens = Math.max(4, Math.ceil(seconds * transcriptTokensPerSecond))
  return {
    audioTokens: Math.ceil(seconds * heardTokensPerSecond),
    transcript: composeAnswer('', seedFromText(String(seconds)), Math.min(transcriptTokensMax, tokens)),
  }
}

/** Reads the audio of an append. */
export function readAudio(event: JsonObject): Buffer {
  const bytes = Buffer.from(asText(event['audio']), 'base64')
  if (bytes.length > 0) return bytes
  throw new Refusal(400, "Invalid 'audio'. Expected base64-encoded audio bytes.", {
    param: 'audio',
    code: 'invalid_value',
  })
}

function bytesPerMsOf(format: unknown): number {
  const { type, rate } = isObject(format) ? format : {}
  if (type === 'audio/pcmu' || type === 'audio/pcma') return 8
  return ((typeof rate === 'number' && rate > 0 ? rate : 24_000) * 2) / 1_000
}

/** Speaks a text: each word, and after the word the sound that it takes. */
export function* speak(
  text: string,
  word: (delta: string) => TurnEvent,
  sound: () => TurnEvent,
): Generator<TurnEvent> {
  let length = 0
  let pieces = 0
  for (const delta of splitIntoDeltas(text)) {
    yield word(delta)
    length += delta.length
    for (; pieces < length / charactersPerPiece; pieces += 1) yield sound()
  }
}

/** A quarter of a second of a tone, as base64; a hum in the formats of telephones. */
export function soundPiece(format: unknown): string {
  const { type } = isObject(format) ? format : {}
  if (type === 'audio/pcmu' || type === 'audio/pcma') return Buffer.alloc(2_000, 0x2a).toString('base64')
  return (audioFormats.get('pcm')?.piece(0, false) ?? Buffer.alloc(0)).toString('base64')
}
