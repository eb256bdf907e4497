import type { Call } from '../call.ts'
import type { ToolWish } from '../choose-tools.ts'
import type { ToolDefinition } from '../generate.ts'
import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import { choicesMax } from '../limits.ts'
import type { Model } from '../models.ts'
import { Refusal } from '../refusal.ts'
import {
  invalid,
  missing,
  parseChatBody,
  readBoolean,
  readChoices,
  readStops,
  readStreamOptions,
  readTier,
  readTokenLimit,
  readToolWish,
  reasoningTokens,
  requireModel,
  type StreamOptions,
} from './chat-body.ts'

export interface ChatBody {
  model?: unknown
  messages?: unknown
  n?: unknown
  stream?: unknown
  stream_options?: unknown
  max_tokens?: unknown
  max_completion_tokens?: unknown
  stop?: unknown
  tools?: unknown
  tool_choice?: unknown
  parallel_tool_calls?: unknown
  response_format?: unknown
  reasoning_effort?: unknown
  service_tier?: unknown
}

export interface ChatRequest {
  readonly body: ChatBody
  readonly model: Model
  readonly choices: number
  readonly isStream: boolean
  readonly streamOptions: StreamOptions
  readonly outputTokensMax: number
  readonly reasoningTokens: number
  readonly stops: readonly string[]
  readonly tools: readonly ToolDefinition[]
  readonly toolWish: ToolWish
  readonly parallelTools: boolean
  readonly schema: JsonObject | undefined
  readonly tier: string
}

const roles: readonly unknown[] = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

export function validateChat(call: Call): ChatRequest {
  const body: ChatBody = parseChatBody(call)
  const model = requireModel(body.model, 'v1/chat/completions', ['chat'])
  requireMessages(body.messages)
  const isStream = readBoolean(body.stream, 'stream')
  return {
    body,
    model,
    choices: readChoices(body.n, choicesMax),
    isStream,
    streamOptions: readStreamOptions(body.stream_options, isStream),
    outputTokensMax: readOutputLimit(body, model),
    reasoningTokens: reasoningTokens(model, body.reasoning_effort),
    stops: readStops(body.stop),
    tools: readTools(body.tools),
    toolWish: readToolWish(body.tool_choice),
    parallelTools: body.parallel_tool_calls !== false,
    schema: readSchema(body.response_format),
    tier: readTier(body.service_tier),
  }
}

function requireMessages(messages: unknown): void {
  if (messages === undefined) throw missing('messages')
  if (!Array.isArray(messages)) throw invalid('messages', 'an array of objects')
  if (messages.length === 0) {
    throw new Refusal(
      400,
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      { param: 'messages', code: 'empty_array' },
    )
  }
  for (const [index, message] of messages.entries()) {
    if (!isObject(message)) throw invalid(`messages[${index}]`, 'an object')
    const role = message['role']
    if (role === undefined) throw missing(`messages[${index}].role`)
    if (!roles.includes(role)) {
      throw new Refusal(400, `Invalid value: '${String(role)}'. Supported values are: ${quote(roles)}.`, {
        param: `messages[${index}].role`,
        code: 'invalid_value',
      })
    }
  }
}

function quote(values: readonly unknown[]): string {
  return values.map((value) => `'${String(value)}'`).join(', ')
}

function readOutputLimit(body: ChatBody, model: Model): number {
  if (body.max_tokens !== undefined && body.max_tokens !== null && model.reasons) {
    throw new Refusal(
      400,
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      { param: 'max_tokens', code: 'unsupported_parameter' },
    )
  }
  return (
    readTokenLimit(body.max_completion_tokens, 'max_completion_tokens', 1, model) ??
    readTokenLimit(body.max_tokens, 'max_tokens', 1, model) ??
    model.outputTokensMax
  )
}

function readTools(tools: unknown): ToolDefinition[] {
  const definitions: ToolDefinition[] = []
  for (const [index, tool] of asArray(tools).entries()) {
    const definition = isObject(tool) ? tool['function'] : undefined
    if (!isObject(definition)) throw missing(`tools[${index}].function`)
    const name = asText(definition['name'])
    if (name === '') throw missing(`tools[${index}].function.name`)
    definitions.push({ name, schema: definition['parameters'] })
  }
  return definitions
}

/** A structured answer: by its schema, or any object for the older JSON mode. */
function readSchema(format: unknown): JsonObject | undefined {
  if (!isObject(format)) return undefined
  if (format['type'] === 'json_object') return { type: 'object', properties: { answer: { type: 'string' } } }
  const named = format['json_schema']
  const schema = isObject(named) ? named['schema'] : undefined
  return isObject(schema) ? schema : undefined
}
