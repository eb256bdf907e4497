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
  readSchema,
  readStops,
  readStreamOptions,
  readTier,
  readTokenLimit,
  readToolWish,
  reasoningTokens,
  requireModel,
  type StreamOptions,
  unplayedTool,
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
  functions?: unknown
  function_call?: unknown
  modalities?: unknown
  web_search_options?: unknown
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
  /** Whether upstream looks the answer up on the web; usage does not count the search. */
  readonly searches: boolean
  readonly tier: string
}

const roles: readonly unknown[] = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

export function validateChat(call: Call): ChatRequest {
  const body: ChatBody = parseChatBody(call)
  const model = requireModel(body.model, 'v1/chat/completions', ['chat'])
  requireMessages(body.messages)
  if (asArray(body.modalities).includes('audio')) {
    throw new Refusal(400, 'This is the simulator: its chats do not speak. Leave modalities out.', {
      param: 'modalities',
    })
  }
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
    tools: [...readTools(body.tools), ...readFunctions(body.functions)],
    toolWish: readToolWish(body.tool_choice ?? body.function_call),
    // The older form, `functions`, has room for one call.
    parallelTools: body.parallel_tool_calls !== false && body.functions === undefined,
    schema: readSchema(body.response_format, 'response_format'),
    searches: /-search-/.test(model.id) || isObject(body.web_search_options),
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
    const kind = isObject(tool) ? (tool['type'] ?? 'function') : 'function'
    if (kind !== 'function' && kind !== 'custom') {
      throw unplayedTool(`tools[${index}].type`, kind, ['function', 'custom'])
    }
    const definition = isObject(tool) ? tool[kind] : undefined
    if (!isObject(definition)) throw missing(`tools[${index}].${kind}`)
    const name = asText(definition['name'])
    if (name === '') throw missing(`tools[${index}].${kind}.name`)
    definitions.push({ name, kind, schema: definition['parameters'], takesText: kind === 'custom' })
  }
  return definitions
}

/** The older form, `functions`, which `tools` replaced; its calls are answered in the older form too. */
function readFunctions(functions: unknown): ToolDefinition[] {
  return asArray(functions).map((definition, index) => {
    const name = isObject(definition) ? asText(definition['name']) : ''
    if (name === '') throw missing(`functions[${index}].name`)
    return { name, kind: 'legacy', schema: isObject(definition) ? definition['parameters'] : undefined }
  })
}
