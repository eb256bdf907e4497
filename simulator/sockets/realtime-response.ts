import { audioFormats } from '../audio-formats.ts'
import type { Behaviours } from '../behaviours.ts'
import { reported } from '../chat/read-fields.ts'
import { asArray, asText, type JsonObject } from '../json.ts'
import type { TurnEvent } from '../reply.ts'
import { composeAnswer, countTokens, cutToTokens, seedFromText, splitIntoWords } from '../text.ts'
import type { Counts, RealtimeItem } from './realtime-items.ts'

interface RealtimePlan {
  readonly id: string
  readonly itemId: string
  /** Null for a response that is out of band. */
  readonly conversationId: string | null
  readonly config: JsonObject
  readonly topic: string
  readonly input: Counts
  readonly cached: Counts
  readonly behaviours: Behaviours
  /** Asked before each delta. */
  readonly isCancelled: () => boolean
  readonly addItem: (item: RealtimeItem) => void
}

const outputTokensMax = 4_096
/** Each word is spoken as one piece of sound: a quarter of a second. */
const tokensPerPiece = 5
const sound = audioFormats.get('pcm')?.piece.toString('base64') ?? ''

/** The events of a response, from response.created to response.done: text, or speech with its transcript. */
export function* writeRealtime(plan: RealtimePlan): Generator<TurnEvent> {
  const { id, itemId, config, behaviours } = plan
  const isSpoken = !asArray(config['output_modalities']).includes('text')
  const limit =
    typeof config['max_output_tokens'] === 'number' ? config['max_output_tokens'] : outputTokensMax
  const whole = composeAnswer(
    plan.topic,
    seedFromText(plan.topic, asText(config['model'])),
    behaviours.tokens,
  )
  // Each word of speech takes its own tokens and those of its sound.
  const text = cutToTokens(whole, isSpoken ? Math.floor(limit / (1 + tokensPerPiece)) : limit)

  let words = ''
  let pieces = 0
  let isCancelled = false
  const part = (written: string): JsonObject =>
    isSpoken ? { type: 'audio', transcript: written } : { type: 'text', text: written }
  const itemJson = (status: string): JsonObject => ({
    id: itemId,
    object: 'realtime.item',
    type: 'message',
    status,
    role: 'assistant',
    content:
      status === 'in_progress' ? [] : [{ ...part(words), type: isSpoken ? 'output_audio' : 'output_text' }],
  })
  const inOutput = { response_id: id, output_index: 0 }
  const inItem = { ...inOutput, item_id: itemId, content_index: 0 }

  yield plain('response.created', {
    response: responseJson(plan, isSpoken, 'in_progress', null, [], { usage: null }),
  })
  yield plain('response.output_item.added', { ...inOutput, item: itemJson('in_progress') })
  if (plan.conversationId !== null) {
    yield plain('conversation.item.added', { previous_item_id: null, item: itemJson('in_progress') })
  }
  yield plain('response.content_part.added', { ...inItem, part: part('') })
  const name = isSpoken ? 'response.output_audio_transcript' : 'response.output_text'
  for (const delta of splitIntoWords(text)) {
    isCancelled = plan.isCancelled()
    if (isCancelled) break
    yield { event: { type: `${name}.delta`, ...inItem, delta }, tokens: countTokens(delta), isDelta: true }
    words += delta
    if (!isSpoken) continue
    const event = { type: 'response.output_audio.delta', ...inItem, delta: sound }
    yield { event, tokens: tokensPerPiece, isDelta: true }
    pieces += 1
  }
  const isCut = text.length < whole.length
  const status = isCancelled ? 'cancelled' : isCut ? 'incomplete' : 'completed'
  if (isSpoken) yield plain('response.output_audio.done', inItem)
  yield plain(`${name}.done`, { ...inItem, ...(isSpoken ? { transcript: words } : { text: words }) })
  yield plain('response.content_part.done', { ...inItem, part: part(words) })
  const json = itemJson(status === 'completed' ? 'completed' : 'incomplete')
  const counts = { text: countTokens(words), audio: pieces * tokensPerPiece }
  if (plan.conversationId !== null) plan.addItem({ json, counts, words })
  yield plain('response.output_item.done', { ...inOutput, item: json })
  if (plan.conversationId !== null) {
    yield plain('conversation.item.done', { previous_item_id: null, item: json })
  }
  const reason = isCancelled ? 'client_cancelled' : isCut ? 'max_output_tokens' : undefined
  const details = { type: status, ...(reason === undefined ? {} : { reason }) }
  const response = responseJson(plan, isSpoken, status, details, [json], usageOf(plan, counts))
  yield plain('response.done', { response })
}

function plain(type: string, fields: JsonObject): TurnEvent {
  return { event: { type, ...fields }, tokens: 0, isDelta: false }
}

function responseJson(
  { id, conversationId, config }: RealtimePlan,
  isSpoken: boolean,
  status: string,
  statusDetails: JsonObject | null,
  output: readonly JsonObject[],
  usage: JsonObject,
): JsonObject {
  return {
    object: 'realtime.response',
    id,
    status,
    status_details: statusDetails,
    output,
    conversation_id: conversationId,
    output_modalities: isSpoken ? ['audio'] : ['text'],
    max_output_tokens: config['max_output_tokens'] ?? 'inf',
    metadata: config['metadata'] ?? null,
    ...usage,
  }
}

function usageOf({ input, cached, behaviours }: RealtimePlan, output: Counts): JsonObject {
  const details = ({ text, audio }: Counts): JsonObject => ({
    text_tokens: text,
    audio_tokens: audio,
    image_tokens: 0,
  })
  const inputTokens = input.text + input.audio
  const outputTokens = output.text + output.audio
  const usage = {
    total_tokens: inputTokens + outputTokens,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    input_token_details: {
      ...details(input),
      cached_tokens: cached.text + cached.audio,
      cached_tokens_details: details(cached),
    },
    output_token_details: { text_tokens: output.text, audio_tokens: output.audio },
  }
  return reported(usage, behaviours)
}
