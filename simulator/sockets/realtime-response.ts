import type { Behaviours } from '../behaviours.ts'
import { readToolWish } from '../chat/chat-body.ts'
import { chooseTools } from '../choose-tools.ts'
import { type Generated, generate, type ToolDefinition } from '../generate.ts'
import type { Identity } from '../identity.ts'
import { asArray, asText, isObject, type JsonObject, mergeJson } from '../json.ts'
import { countTokens, splitIntoDeltas, splitIntoPieces } from '../tokens.ts'
import type { ConversationItem, Counts } from './conversation.ts'
import { soundPiece, speak, tokensPerPiece } from './spoken-audio.ts'
import { deltaEvent, plainEvent, type TurnEvent } from './write-turn.ts'

export type CancelReason = 'client_cancelled' | 'turn_detected'

export interface RealtimePlan {
  readonly id: string
  /** Null for a response that is out of band. */
  readonly conversationId: string | null
  readonly config: JsonObject
  readonly isSpoken: boolean
  readonly format: unknown
  readonly written: Generated
  readonly itemIds: readonly string[]
  readonly callIds: readonly string[]
  readonly isCut: boolean
  readonly input: Counts
  readonly cached: Counts
  readonly behaviours: Behaviours
}

export interface PlanRequest {
  readonly id: string
  readonly config: JsonObject
  readonly conversationId: string | null
  readonly items: readonly ConversationItem[]
  readonly input: Counts
  readonly cached: Counts
  readonly behaviours: Behaviours
  readonly identity: Identity
}

/** Output tokens, of text and sound, for each token of spoken words; the last piece of sound may take a few more. */
const spokenTokensPerToken = 1 + (4 * 4 * tokensPerPiece) / 15
const argumentsPieceLength = 12

export function planRealtime(request: PlanRequest): RealtimePlan {
  const { config, items, behaviours, identity } = request
  const topic = items.findLast((item) => item.isUser && item.words !== '')?.words ?? ''
  const isSpoken = !asArray(config['output_modalities']).includes('text')
  const limit = typeof config['max_output_tokens'] === 'number' ? config['max_output_tokens'] : 4_096
  const textMax = isSpoken ? Math.floor((limit - tokensPerPiece) / spokenTokensPerToken) : limit
  const written = generate({
    topic,
    variant: asText(config['model']),
    tokensWanted: behaviours.tokens,
    outputTokensMax: Math.max(0, textMax),
    thinkingTokens: 0,
    stopSequences: [],
    schema: undefined,
    tools: chooseTools(
      readFunctions(config['tools']),
      readToolWish(config['tool_choice']),
      topic,
      items.at(-1)?.json['type'] === 'function_call_output',
      config['parallel_tool_calls'] !== false,
      behaviours.call,
    ),
    saysWhyBeforeTools: false,
    refuses: behaviours.refusal === true,
  })
  const output = isObject(config['audio']) ? config['audio']['output'] : undefined
  return {
    id: request.id,
    conversationId: request.conversationId,
    config,
    isSpoken,
    format: isObject(output) ? output['format'] : undefined,
    written,
    itemIds: [written.text, ...written.toolCalls].map(() => `item_${identity.base62(21)}`),
    callIds: written.toolCalls.map(() => `call_${identity.base62(16)}`),
    isCut: written.finish === 'length',
    input: request.input,
    cached: request.cached,
    behaviours,
  }
}

function readFunctions(tools: unknown): ToolDefinition[] {
  return asArray(tools).flatMap((tool) =>
    isObject(tool) && tool['type'] === 'function'
      ? [{ name: asText(tool['name']), kind: 'function', schema: tool['parameters'] ?? { type: 'object' } }]
      : [],
  )
}

export interface Progress {
  /** Why the response is to end now, asked before each delta. */
  readonly cancelled: () => CancelReason | undefined
  /** Takes an item into the conversation, and returns the id of the item before it. */
  readonly addItem: (item: ConversationItem) => string | null
}

/** The events of a response, from response.created to response.done. */
export function* writeRealtime(plan: RealtimePlan, progress: Progress): Generator<TurnEvent> {
  const { id, written } = plan
  const output: JsonObject[] = []
  const spent = { text: 0, audio: 0 }
  yield plainEvent('response.created', { response: responseJson(plan, 'in_progress', null, [], null) })

  const parts = [
    ...(written.text === '' ? [] : [messagePart(plan)]),
    ...written.toolCalls.map((_, index) => callPart(plan, index)),
  ]
  let reason: CancelReason | undefined
  for (const [index, part] of parts.entries()) {
    reason = progress.cancelled()
    if (reason !== undefined) break
    const place = { response_id: id, output_index: index }
    const opened = part.json('in_progress', '')
    yield plainEvent('response.output_item.added', { ...place, item: opened })
    let words = ''
    let pieces = 0
    const said = (): ConversationItem => ({
      json: part.json(reason !== undefined || part.isCut ? 'incomplete' : 'completed', words),
      counts: { text: countTokens(words), audio: pieces * tokensPerPiece, image: 0 },
      words,
      isUser: false,
      bytes: words.length,
    })
    const before = plan.conversationId === null ? null : progress.addItem({ ...said(), json: opened })
    if (plan.conversationId !== null) {
      yield plainEvent('conversation.item.added', { previous_item_id: before, item: opened })
    }
    for (const event of part.events(place)) {
      reason = event.isDelta ? progress.cancelled() : reason
      if (reason !== undefined) break
      yield event
      if (event.event['type'] === 'response.output_audio.delta') pieces += 1
      else if (event.isDelta) words += asText(event.event['delta'])
    }
    const item = said()
    output.push(item.json)
    spent.text += item.counts.text
    spent.audio += item.counts.audio
    if (plan.conversationId !== null) progress.addItem(item)
    yield plainEvent('response.output_item.done', { ...place, item: item.json })
    if (plan.conversationId !== null) {
      yield plainEvent('conversation.item.done', { previous_item_id: before, item: item.json })
    }
    if (reason !== undefined) break
  }
  const status = reason !== undefined ? 'cancelled' : plan.isCut ? 'incomplete' : 'completed'
  const why = reason ?? (plan.isCut ? 'max_output_tokens' : undefined)
  const details = { type: status, ...(why === undefined ? {} : { reason: why }) }
  const response = responseJson(plan, status, details, output, usageOf(plan, spent))
  yield plainEvent('response.done', { response })
}

interface Part {
  readonly isCut: boolean
  json(status: string, words: string): JsonObject
  events(place: JsonObject): Iterable<TurnEvent>
}

function messagePart(plan: RealtimePlan): Part {
  const { written, isSpoken, format } = plan
  const { text } = written
  const id = plan.itemIds[0]
  const content = (words: string): JsonObject =>
    isSpoken ? { type: 'output_audio', transcript: words } : { type: 'output_text', text: words }
  const part = (words: string): JsonObject =>
    isSpoken ? { type: 'audio', transcript: words } : { type: 'text', text: words }
  return {
    isCut: plan.isCut,
    json: (status, words) => ({
      id,
      object: 'realtime.item',
      type: 'message',
      status,
      role: 'assistant',
      content: status === 'in_progress' ? [] : [content(words)],
    }),
    *events(responsePlace) {
      const place = { ...responsePlace, item_id: id, content_index: 0 }
      yield plainEvent('response.content_part.added', { ...place, part: part('') })
      const name = isSpoken ? 'response.output_audio_transcript' : 'response.output_text'
      const word = (delta: string): TurnEvent =>
        deltaEvent(`${name}.delta`, { ...place, delta }, countTokens(delta))
      const sound = (): TurnEvent =>
        deltaEvent('response.output_audio.delta', { ...place, delta: soundPiece(format) }, tokensPerPiece)
      yield* isSpoken ? speak(text, word, sound) : splitIntoDeltas(text).map(word)
      if (isSpoken) yield plainEvent('response.output_audio.done', place)
      yield plainEvent(`${name}.done`, { ...place, ...(isSpoken ? { transcript: text } : { text }) })
      yield plainEvent('response.content_part.done', { ...place, part: part(text) })
    },
  }
}

function callPart(plan: RealtimePlan, index: number): Part {
  const id = plan.itemIds[index + 1]
  const callId = plan.callIds[index]
  const call = plan.written.toolCalls[index]
  const name = call?.tool.name ?? ''
  const argumentsJson = call?.argumentsJson ?? ''
  return {
    isCut: plan.isCut && index === plan.written.toolCalls.length - 1,
    json: (status, words) => ({
      id,
      object: 'realtime.item',
      type: 'function_call',
      status,
      call_id: callId,
      name,
      arguments: words,
    }),
    *events(responsePlace) {
      const place = { ...responsePlace, item_id: id, call_id: callId }
      const type = 'response.function_call_arguments'
      for (const delta of splitIntoPieces(argumentsJson, argumentsPieceLength)) {
        yield deltaEvent(`${type}.delta`, { ...place, delta }, countTokens(delta))
      }
      yield plainEvent(`${type}.done`, { ...place, name, arguments: argumentsJson })
    },
  }
}

function responseJson(
  plan: RealtimePlan,
  status: string,
  statusDetails: JsonObject | null,
  output: readonly JsonObject[],
  usage: JsonObject | null | undefined,
): JsonObject {
  const { config } = plan
  const audio = isObject(config['audio']) ? config['audio'] : {}
  return {
    object: 'realtime.response',
    id: plan.id,
    status,
    status_details: statusDetails,
    output,
    conversation_id: plan.conversationId,
    output_modalities: plan.isSpoken ? ['audio'] : ['text'],
    max_output_tokens: config['max_output_tokens'] ?? 'inf',
    audio: { output: audio['output'] ?? {} },
    metadata: config['metadata'] ?? null,
    ...(usage === undefined ? {} : { usage }),
  }
}

function usageOf(
  { input, cached, behaviours }: RealtimePlan,
  spent: { text: number; audio: number },
): JsonObject | undefined {
  if (behaviours.noUsage === true) return undefined
  const inputTokens = input.text + input.audio + input.image
  const outputTokens = spent.text + spent.audio
  const details = (counts: Counts): JsonObject => ({
    text_tokens: counts.text,
    audio_tokens: counts.audio,
    image_tokens: counts.image,
  })
  const usage = {
    total_tokens: inputTokens + outputTokens,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    input_token_details: {
      ...details(input),
      cached_tokens: cached.text + cached.audio + cached.image,
      cached_tokens_details: details(cached),
    },
    output_token_details: { text_tokens: spent.text, audio_tokens: spent.audio },
  }
  return mergeJson(usage, behaviours.usage ?? {})
}
