import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import { Refusal } from '../refusal.ts'
import { composeAnswer, countTokens } from '../text.ts'

export interface Counts {
  readonly text: number
  readonly audio: number
}

export interface RealtimeItem {
  readonly json: JsonObject
  readonly counts: Counts
  readonly words: string
}

const bytesPerMs = 48
const tokensPerMessage = 4
const tokensPerSecond = 10

/** Text and audio of an item that a client creates. */
export function readItem(given: unknown, id: string): RealtimeItem {
  if (!isObject(given)) throw new Refusal(400, "Invalid 'item': expected an object.", { param: 'item' })
  const parts = asArray(given['content']).map((part) => (isObject(part) ? part : {}))
  const words = parts.map((part) => asText(part['text'])).join(' ')
  const audioBytes = parts.reduce((sum, part) => sum + Buffer.byteLength(asText(part['audio']), 'base64'), 0)
  const text = tokensPerMessage + countTokens(`${words}${asText(given['output'])}`)
  return {
    json: { id, object: 'realtime.item', status: 'completed', ...given },
    counts: { text, audio: audioTokens(audioBytes / bytesPerMs) },
    words,
  }
}

/** Audio since the last turn, known by its length alone: half a second of speech, then a fifth of a second of zeros, is a turn. */
export class SpeechBuffer {
  #speechMs = 0
  #silenceMs = 0

  append(bytes: Buffer): void {
    let speechBytes = bytes.length
    while (speechBytes > 0 && bytes[speechBytes - 1] === 0) speechBytes -= 1
    const silenceMs = (bytes.length - speechBytes) / bytesPerMs
    this.#speechMs += speechBytes / bytesPerMs
    this.#silenceMs = speechBytes === 0 ? this.#silenceMs + silenceMs : silenceMs
  }

  get isOver(): boolean {
    return this.#speechMs >= 500 && this.#silenceMs >= 200
  }

  take(): { tokens: number; words: string } {
    const ms = this.#speechMs + this.#silenceMs
    this.#speechMs = 0
    this.#silenceMs = 0
    return { tokens: audioTokens(ms), words: composeAnswer('', ms, Math.max(4, Math.ceil(ms / 250))) }
  }
}

function audioTokens(ms: number): number {
  return Math.ceil((ms / 1_000) * tokensPerSecond)
}
