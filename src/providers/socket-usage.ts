import { NO_USAGE, type Usage } from '../kernel/usage.ts'
import { isObject } from '../metering/json-shape.ts'
import { inputAudioTokens, outputAudioTokens } from './chat/audio.ts'
import { readTranscription } from './chat/closing-usage.ts'
import { partOf, type ReportedTokens, readTokens } from './chat/tokens.ts'
import { asObject, Counts, quantitiesOf, tokensInBytes } from './reading.ts'

/** The usage of a response of any status. Tokens that no detail explains are audio, the most expensive kind. */
export function realtimeUsage(usage: unknown, model: string | null): Usage {
  const counts = new Counts()
  const stated = asObject(usage)
  const { input_token_details: input, output_token_details: output } = stated
  if (!isObject(input) || !isObject(output)) counts.markSuspect()
  const plain = { input: 'audio_input_tokens', output: 'audio_output_tokens' } as const
  const details = {
    input_token_details: withCached(withUnexplained(input, stated['input_tokens'], counts), counts),
    output_token_details: withUnexplained(output, stated['output_tokens'], counts),
  }
  return usageOf(readTokens({ ...stated, ...details }, counts, plain), model, counts)
}

function withUnexplained(details: unknown, total: unknown, counts: Counts): unknown {
  if (!isObject(details)) return details
  const tokensOf = (name: string) => counts.read(details[`${name}_tokens`]) ?? 0
  const unexplained = (counts.read(total) ?? 0) - tokensOf('text') - tokensOf('audio') - tokensOf('image')
  if (unexplained > 0) counts.markSuspect()
  return unexplained > 0 ? { ...details, audio_tokens: tokensOf('audio') + unexplained } : details
}

/** Cached tokens without details count as text, whose discount is smallest, and those beyond the text as audio. */
function withCached(details: unknown, counts: Counts): unknown {
  if (!isObject(details) || isObject(details['cached_tokens_details'])) return details
  const cached = counts.read(details['cached_tokens']) ?? 0
  if (cached === 0) return details
  counts.markSuspect()
  const audio = cached - (counts.read(details['text_tokens']) ?? 0)
  return { ...details, cached_tokens_details: { audio_tokens: Math.max(0, audio) } }
}

/** Usage events do not name a model. */
function usageOf(tokens: ReportedTokens, model: string | null, counts: Counts): Usage {
  if (tokens.input === null || tokens.output === null) counts.markSuspect()
  return { ...NO_USAGE, parts: [partOf(null, tokens)], modelServed: model, suspect: counts.suspect }
}

export function statesTotals(usage: unknown): boolean {
  const { input_tokens: read, output_tokens: written } = asObject(usage)
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

/** The input of a cut response is the previous one's input (cached) and output, plus all later messages. */
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
    audio_input_tokens: sum(read.audio_output_tokens, within(inputAudioTokens(cut.inputAudioMs))),
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
  return usageOf(readTranscription(asObject(usage), counts), model, counts)
}
