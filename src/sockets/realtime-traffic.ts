import type { Usage } from '../kernel/usage.ts'
import { PCM_BYTES_PER_MS } from '../providers/chat/audio.ts'
import { audioMs, type SessionSettings } from '../providers/realtime-events.ts'
import type { CutResponse } from '../providers/socket-usage.ts'

interface Response {
  readonly inputAudioMs: number
  readonly inputTextBytes: number
  outputAudioBytes: number
  outputTextBytes: number
}

/** What passes on a Realtime socket, from which the usage of a cut response is estimated. */
export class RealtimeTraffic {
  #bytesPerMs = PCM_BYTES_PER_MS
  #spokenBytesPerMs = PCM_BYTES_PER_MS
  /** The input since the last response began. */
  #inputAudioMs = 0
  #inputTextBytes = 0
  readonly #responses = new Map<string, Response>()
  /** The usage of the response with the longest prompt so far. */
  #before: Usage | null = null

  configured({ bytesPerMs, spokenBytesPerMs }: SessionSettings): void {
    this.#bytesPerMs = bytesPerMs ?? this.#bytesPerMs
    this.#spokenBytesPerMs = spokenBytesPerMs ?? this.#spokenBytesPerMs
  }

  sent(audioBytes: number, textBytes: number): void {
    this.#inputAudioMs += audioMs(audioBytes, this.#bytesPerMs)
    this.#inputTextBytes += textBytes
  }

  began(responseId: string | null): void {
    this.#responses.set(responseId ?? '', this.#takeInput())
  }

  received(responseId: string, bytes: number, isAudio: boolean): void {
    const response = this.#responses.get(responseId)
    if (response === undefined) return
    if (isAudio) response.outputAudioBytes += bytes
    else response.outputTextBytes += bytes
  }

  /** The response is over: what it has read and written. */
  take(responseId: string | null, hasBegun: boolean): CutResponse {
    const known = this.#responses.get(responseId ?? '')
    this.#responses.delete(responseId ?? '')
    const { outputAudioBytes, ...response } = (hasBegun ? known : null) ?? this.#takeInput()
    const outputAudioMs = audioMs(outputAudioBytes, this.#spokenBytesPerMs)
    return { ...response, before: this.#before, outputAudioMs }
  }

  /** An out-of-band response does not read the conversation, so its smaller prompt proves nothing. */
  ended(usage: Usage): void {
    if (promptTokens(usage) >= promptTokens(this.#before)) this.#before = usage
  }

  #takeInput(): Response {
    const [inputAudioMs, inputTextBytes] = [this.#inputAudioMs, this.#inputTextBytes]
    this.#inputAudioMs = 0
    this.#inputTextBytes = 0
    return { inputAudioMs, inputTextBytes, outputAudioBytes: 0, outputTextBytes: 0 }
  }
}

function promptTokens(usage: Usage | null): number {
  return usage?.parts[0]?.promptTokens ?? 0
}
