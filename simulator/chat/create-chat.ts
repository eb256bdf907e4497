import type { Call } from '../call.ts'
import type { ToolDefinition } from '../choose-tools.ts'
import { type Generated, generate } from '../generate.ts'
import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import { choicesMax } from '../limits.ts'
import type { Model } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { doneFrame, eventFrame, type Frame, jsonReply, type Reply, streamReply } from '../reply.ts'
import { countTokens, splitIntoPieces, splitIntoWords } from '../text.ts'
import { readCache, readPrompt } from './chat-prompt.ts'
import { chatErrorFrame } from './chat-wire.ts'
import {
  invalid,
  missing,
  obfuscate,
  parseChatBody,
  readChoices,
  readSchema,
  readTier,
  readTokenLimit,
  readToolWish,
  reported,
  requireModel,
  thinkingTokens,
} from './read-fields.ts'

interface Choice {
  readonly text: string
  readonly toolCalls: readonly { id: string; kind: string; name: string; argumentsJson: string }[]
  readonly finishReason: string
}

const finishReasons = {
  end: 'stop',
  length: 'length',
  'stop-sequence': 'stop',
  tool: 'tool_calls',
} as const satisfies Record<Generated['finish'], string>

/** POST /v1/chat/completions */
export function createChat(call: Call): Reply {
  const { identity, behaviours } = call
  const body = parseChatBody(call)
  const model = requireModel(body['model'], 'v1/chat/completions', 'chat')
  requireMessages(body['messages'])
  const { stop, stream_options: options } = body
  const isStream = body['stream'] === true
  if (isObject(options) && !isStream) {
    const param = 'stream_options'
    throw new Refusal(400, "'stream_options' is only allowed when 'stream' is enabled.", { param })
  }
  const prompt = readPrompt(asArray(body['messages']), asArray(body['tools']))
  const request = {
    ...{ model, behaviours, ...prompt },
    outputTokensMax: readOutputLimit(body, model),
    thinkingTokens: thinkingTokens(model, body['reasoning_effort']),
    stopSequences: typeof stop === 'string' ? [stop] : asArray(stop).map(asText),
    schema: readSchema(body['response_format'], 'response_format'),
    tools: readTools(body['tools']),
    toolWish: readToolWish(body['tool_choice']),
    parallelTools: body['parallel_tool_calls'] !== false,
  }
  const written = Array.from({ length: readChoices(body['n'], choicesMax) }, (_, choice) =>
    generate({ ...request, choice }),
  )
  const sum = (name: 'outputTokens' | 'thinkingTokens'): number =>
    written.reduce((total, each) => total + each[name], 0)
  const tokens = sum('outputTokens')
  const usage = reported(
    {
      prompt_tokens: prompt.tokens,
      completion_tokens: tokens,
      total_tokens: prompt.tokens + tokens,
      prompt_tokens_details: { audio_tokens: 0, ...readCache(call, model, prompt) },
      completion_tokens_details: {
        reasoning_tokens: sum('thinkingTokens'),
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    behaviours,
  )
  const choices = written.map(({ text, toolCalls, finish }) => ({
    text,
    toolCalls: toolCalls.map(({ tool, argumentsJson }) => ({
      ...{ id: `call_${identity.base62(24)}`, kind: tool.kind, name: tool.name, argumentsJson },
    })),
    finishReason: finishReasons[finish],
  }))
  const common = {
    id: `chatcmpl-${identity.base62(29)}`,
    object: isStream ? 'chat.completion.chunk' : 'chat.completion',
    created: Math.floor(identity.now().getTime() / 1000),
    model: behaviours.model ?? model.snapshot,
    service_tier: behaviours.tier ?? readTier(body['service_tier']),
    system_fingerprint: `fp_${identity.hex(10)}`,
  }
  if (isStream) {
    const shown = isObject(options) && options['include_usage'] === true ? usage : {}
    const pad = obfuscate(options, identity.base62(24))
    return streamReply(streamChat(common, choices, shown, pad), chatErrorFrame, model.pace)
  }
  return jsonReply({ ...common, choices: choices.map(choiceJson), ...usage }, { pace: model.pace, tokens })
}

function requireMessages(messages: unknown): void {
  if (messages === undefined) throw missing('messages')
  if (!Array.isArray(messages) || messages.length === 0) throw invalid('messages', 'an array of objects')
  for (const [index, message] of messages.entries()) {
    const role = isObject(message) ? message['role'] : undefined
    if (typeof role !== 'string') throw missing(`messages[${index}].role`)
  }
}

function readOutputLimit(body: JsonObject, model: Model): number {
  const limit = readTokenLimit(body, 'max_completion_tokens', 1, model)
  const older = readTokenLimit(body, 'max_tokens', 1, model)
  if (older !== null && model.reasons) {
    const message = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    throw new Refusal(400, message, { param: 'max_tokens', code: 'unsupported_parameter' })
  }
  return limit ?? older ?? model.outputTokensMax
}

function readTools(tools: unknown): ToolDefinition[] {
  return asArray(tools).map((tool, index) => {
    const kind = isObject(tool) && tool['type'] === 'custom' ? 'custom' : 'function'
    const definition = isObject(tool) ? tool[kind] : undefined
    const { name, parameters = {} } = isObject(definition) ? definition : ({} as JsonObject)
    if (typeof name !== 'string') throw missing(`tools[${index}].${kind}.name`)
    return { name, kind, schema: kind === 'custom' ? undefined : parameters }
  })
}

function choiceJson({ text, toolCalls, finishReason }: Choice, index: number): object {
  const calls = toolCalls.map(({ id, kind, name, argumentsJson }) =>
    kind === 'custom'
      ? { id, type: kind, custom: { name, input: argumentsJson } }
      : { id, type: kind, function: { name, arguments: argumentsJson } },
  )
  const message = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
    annotations: [],
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
  return { index, message, logprobs: null, finish_reason: finishReason }
}

/** The chunks of a completion. Choices come one after the other, which clients may not rely on. */
function* streamChat(
  common: JsonObject,
  choices: readonly Choice[],
  usage: JsonObject,
  pad: (delta: string) => JsonObject,
): Generator<Frame> {
  // Only a client that asked for usage sees the member, as null until the last chunk.
  const nothingYet = Object.keys(usage).length === 0 ? {} : { usage: null }
  const chunk = (index: number, delta: JsonObject, words: string, finish_reason: string | null): Frame => {
    const part = [{ index, delta, logprobs: null, finish_reason }]
    const data = { ...common, choices: part, ...nothingYet, ...pad(words) }
    return eventFrame(null, data, countTokens(words), words !== '')
  }
  for (const [index, choice] of choices.entries()) {
    const content = choice.toolCalls.length > 0 ? null : ''
    yield chunk(index, { role: 'assistant', content, refusal: null }, '', null)
    for (const word of splitIntoWords(choice.text)) yield chunk(index, { content: word }, word, null)
    for (const [nth, { id, kind, name, argumentsJson }] of choice.toolCalls.entries()) {
      const member = kind === 'custom' ? 'input' : 'arguments'
      const opening = { index: nth, id, type: kind, [kind]: { name, [member]: '' } }
      yield chunk(index, { tool_calls: [opening] }, '', null)
      for (const piece of splitIntoPieces(argumentsJson)) {
        yield chunk(index, { tool_calls: [{ index: nth, [kind]: { [member]: piece } }] }, piece, null)
      }
    }
    yield chunk(index, {}, '', choice.finishReason)
  }
  if (Object.keys(usage).length > 0) {
    yield eventFrame(null, { ...common, choices: [], ...usage, ...pad('') })
  }
  yield doneFrame
}
