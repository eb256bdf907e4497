import { NO_USAGE, type Usage } from '../kernel/usage.ts'
import { isObject, type JsonObject } from '../metering/json-shape.ts'
import { heardTokens, outputAudioTokens } from './chat/audio.ts'
import { readTranscription } from './chat/closing-usage.ts'
import { partOf, readTokens } from './chat/tokens.ts'
import { Counts, objectAt, quantitiesOf, tokensInBytes } from './reading.ts'

/**
 * `response.usage` of a `response.done`, whatever its status. Tokens that the details do not explain count as audio, the
 * most expensive kind; cached tokens without details are text first, then images, then audio. Usage events do not name a model, so the session's model is used.
 */
export function realtimeUsage(usage: unknown, model: string | null): Usage {
  const counts = new Counts()
  const stated = objectAt(usage)
  const detailsOf = (side: 'input' | 'output'): JsonObject => {
    const details = objectAt(stated[`${side}_token_details`])
    const [text, audio, image] = ['text_tokens', 'audio_tokens', 'image_tokens'].map(
      (name) => counts.read(details[name]) ?? 0,
    ) as [number, number, number]
    const rest = (counts.read(stated[`${side}_tokens`]) ?? 0) - text - image
    if (rest !== audio) counts.doubt()
    const own = { ...details, audio_tokens: Math.max(audio, rest) }
    const cached = counts.read(details['cached_tokens']) ?? 0
    if (cached === 0 || isObject(details['cached_tokens_details'])) return own
    counts.doubt()
    const image_tokens = Math.min(image, Math.max(0, cached - text))
    const audio_tokens = Math.max(0, cached - text - image)
    return { ...own, cached_tokens_details: { image_tokens, audio_tokens } }
  }
  const details = { input_token_details: detailsOf('input'), output_token_details: detailsOf('output') }
  const tokens = readTokens({ ...stated, ...details }, counts)
  if (tokens.input === null || tokens.output === null) counts.doubt()
  return { ...NO_USAGE, parts: [partOf(null, tokens)], modelServed: model, suspect: counts.suspect }
}

export function statesTotals(usage: unknown): boolean {
  const { input_tokens: read, output_tokens: written } = objectAt(usage)
  const counts = new Counts()
  return counts.read(read) !== null && counts.read(written) !== null
}

export interface CutResponse {
  /** The usage of the previous response; null for the first of a session. */
  readonly before: Usage | null
  readonly inputAudioMs: number
  /** Length of the client's messages since then, without audio. */
  readonly inputTextBytes: number
  readonly outputAudioMs: number
  readonly outputTextBytes: number
}

/** Usage of a response that was cut. Its input is the previous response's input (cached) and output, plus all later messages. */
export function cutResponseUsage(
  cut: CutResponse,
  model: string | null,
  contextWindow: number | null = null,
): Usage {
  const read = cut.before?.parts[0]?.quantities ?? {}
  const within = (tokens: number) => Math.min(tokens, contextWindow ?? tokens)
  const sum = (...counts: readonly (number | undefined)[]) =>
    counts.reduce<number>((total, count) => total + (count ?? 0), 0)
  const quantities = quantitiesOf({
    cache_read_tokens: sum(read.input_tokens, read.cache_read_tokens),
    audio_cache_read_tokens: sum(read.audio_input_tokens, read.audio_cache_read_tokens),
    image_cache_read_tokens: sum(read.image_input_tokens, read.image_cache_read_tokens),
    input_tokens: sum(read.output_tokens, within(tokensInBytes(cut.inputTextBytes))),
    audio_input_tokens: sum(read.audio_output_tokens, within(heardTokens(cut.inputAudioMs))),
    output_tokens: tokensInBytes(cut.outputTextBytes),
    audio_output_tokens: outputAudioTokens(cut.outputAudioMs),
  })
  const { output_tokens: _words, audio_output_tokens: _sound, ...prompt } = quantities
  const part = { model: null, quantities, promptTokens: sum(...Object.values(prompt)) }
  return { ...NO_USAGE, parts: [part], modelServed: model, suspect: true }
}

/** `usage` of a `conversation.item.input_audio_transcription.completed`, rated like a transcription over HTTP. */
export function transcriptionUsage(usage: unknown, model: string | null): Usage {
  const counts = new Counts()
  const tokens = readTranscription(objectAt(usage), counts)
  if (tokens.input === null || tokens.output === null) counts.doubt()
  return { ...NO_USAGE, parts: [partOf(null, tokens)], modelServed: model, suspect: counts.suspect }
}
