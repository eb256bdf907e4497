import { NO_USAGE, type Usage } from '../kernel/usage.ts'
import type { JsonObject } from '../metering/json-shape.ts'
import { heardTokens, spokenTokens } from './chat/audio.ts'
import { readTranscription } from './chat/closing-usage.ts'
import { partOf, readTokens } from './chat/tokens.ts'
import { Counts, objectAt, quantitiesOf, tokensInBytes } from './reading.ts'

/**
 * `response.usage` of a `response.done`, whatever its status. The totals give the number of tokens, the details only their
 * kind: tokens without a detail count as audio, the most expensive kind. Usage events do not name a model, so the
 * session's model is used.
 */
export function realtimeUsage(usage: unknown, model: string | null): Usage {
  const counts = new Counts()
  const stated = objectAt(usage)
  const all = counts.read(stated['total_tokens'])
  const read = counts.read(stated['input_tokens'])
  const written = counts.read(stated['output_tokens'])
  const isWhole = read !== null && written !== null && (all ?? read + written) === read + written
  if (!isWhole) counts.doubt()
  const inputDetails = objectAt(stated['input_token_details'])
  const outputDetails = objectAt(stated['output_token_details'])
  const input = byModality(read ?? leftOf(all, written), inputDetails, counts)
  const output = byModality(written ?? leftOf(all, read), outputDetails, counts)
  const cached = cachedByModality(input, inputDetails, counts)
  const tokens = readTokens(
    {
      input_tokens: totalOf(input),
      input_token_details: {
        audio_tokens: input.audio,
        image_tokens: input.image,
        cached_tokens: totalOf(cached),
        cached_tokens_details: { audio_tokens: cached.audio, image_tokens: cached.image },
      },
      output_tokens: totalOf(output),
      output_token_details: { audio_tokens: output.audio, image_tokens: output.image },
    },
    counts,
  )
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
    audio_output_tokens: spokenTokens(cut.outputAudioMs),
  })
  const { output_tokens: _words, audio_output_tokens: _sound, ...prompt } = quantities
  const part = { model: null, quantities, promptTokens: sum(...Object.values(prompt)) }
  return { ...NO_USAGE, parts: [part], modelServed: model, suspect: true }
}

interface Modalities {
  readonly text: number
  readonly audio: number
  readonly image: number
}

function totalOf({ text, audio, image }: Modalities): number {
  return text + audio + image
}

function readModalities(details: JsonObject, counts: Counts): Modalities {
  return {
    text: counts.read(details['text_tokens']) ?? 0,
    audio: counts.read(details['audio_tokens']) ?? 0,
    image: counts.read(details['image_tokens']) ?? 0,
  }
}

function leftOf(all: number | null, other: number | null): number | null {
  return all === null ? null : Math.max(0, all - (other ?? 0))
}

/** If the details exceed the total, they are reduced to it, the cheapest first. Without a total, the details count. */
function byModality(total: number | null, details: JsonObject, counts: Counts): Modalities {
  const stated = readModalities(details, counts)
  const explained = totalOf(stated)
  const whole = total ?? explained
  if (explained !== whole) counts.doubt()
  const audio = Math.min(whole, stated.audio + Math.max(0, whole - explained))
  const image = Math.min(whole - audio, stated.image)
  return { text: whole - audio - image, audio, image }
}

/** If the details do not add up, text counts as cached first, then images, then audio. */
function cachedByModality(input: Modalities, details: JsonObject, counts: Counts): Modalities {
  const stated = readModalities(objectAt(details['cached_tokens_details']), counts)
  const explained = totalOf(stated)
  const total = counts.read(details['cached_tokens']) ?? explained
  let left = total
  const take = (most: number): number => {
    const taken = Math.min(most, left)
    left -= taken
    return taken
  }
  const text = take(Math.min(stated.text, input.text))
  const image = take(Math.min(stated.image, input.image))
  const audio = take(Math.min(stated.audio, input.audio))
  const more = { text: take(input.text - text), image: take(input.image - image) }
  const cached = {
    text: text + more.text,
    image: image + more.image,
    audio: audio + take(input.audio - audio),
  }
  const isOther =
    cached.text !== stated.text || cached.image !== stated.image || cached.audio !== stated.audio
  if (isOther || total !== explained) counts.doubt()
  return cached
}

/** `usage` of a `conversation.item.input_audio_transcription.completed`, rated like a transcription over HTTP. */
export function transcriptionUsage(usage: unknown, model: string | null): Usage {
  const counts = new Counts()
  const { parts, inputKnown, outputKnown } = readTranscription(objectAt(usage), counts)
  if (!inputKnown || !outputKnown) counts.doubt()
  const own = parts.map((part) => ({ ...part, model: null }))
  return { ...NO_USAGE, parts: own, modelServed: model, suspect: counts.suspect }
}
