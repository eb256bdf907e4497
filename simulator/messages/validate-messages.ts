import type { Call } from '../call.ts'
import type { ToolWish } from '../choose-tools.ts'
import type { ToolDefinition } from '../generate.ts'
import { asArray, asText, isIntegerIn, isObject, type JsonObject } from '../json.ts'
import { findModel, type Model } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { readTools } from './message-tools.ts'
import { readThinking, type Thinking } from './thinking.ts'

/** The members of a request body that the simulator looks at; the rest is accepted unread. */
export interface MessagesBody {
  model?: unknown
  messages?: unknown
  system?: unknown
  max_tokens?: unknown
  stream?: unknown
  stop_sequences?: unknown
  thinking?: unknown
  tools?: unknown
  tool_choice?: unknown
  cache_control?: unknown
  output_config?: unknown
  speed?: unknown
  inference_geo?: unknown
  temperature?: unknown
  top_p?: unknown
  top_k?: unknown
}

export interface MessagesRequest {
  readonly body: MessagesBody
  readonly model: Model
  readonly outputTokensMax: number
  readonly isStream: boolean
  readonly stopSequences: readonly string[]
  readonly thinking: Thinking
  readonly tools: readonly ToolDefinition[]
  readonly toolWish: ToolWish
  readonly parallelTools: boolean
  readonly schema: JsonObject | undefined
  readonly speed: 'standard' | 'fast'
  readonly geo: string
}

const versions: readonly string[] = ['2023-01-01', '2023-06-01', '2026-10-21']
const fastModels: readonly string[] = ['claude-opus-5-5', 'claude-opus-5', 'claude-opus-4-8']

export function requireVersion(call: Call): string {
  const version = call.headers['anthropic-version']
  if (typeof version !== 'string') throw new Refusal(400, 'anthropic-version: header is required')
  if (!versions.includes(version)) {
    throw new Refusal(400, `anthropic-version: "${version}" is not a valid version`)
  }
  return version
}

export function parseMessagesBody(call: Call): MessagesBody {
  let body: unknown
  try {
    body = JSON.parse(call.body.toString('utf8'))
  } catch {
    throw new Refusal(400, 'The request body is not valid JSON')
  }
  if (!isObject(body)) throw new Refusal(400, 'Input should be a valid dictionary')
  return body
}

/** The checks that both message creation and token counting need. */
export function requireModelAndMessages(body: MessagesBody): Model {
  if (body.model === undefined) throw new Refusal(400, 'model: Field required')
  if (typeof body.model !== 'string') throw new Refusal(400, 'model: Input should be a valid string')
  if (body.messages === undefined) throw new Refusal(400, 'messages: Field required')
  if (!Array.isArray(body.messages)) throw new Refusal(400, 'messages: Input should be a valid list')
  if (body.messages.length === 0) throw new Refusal(400, 'messages: at least one message is required')
  for (const [index, message] of body.messages.entries()) requireMessage(message, `messages.${index}`)
  const model = findModel('messages', body.model)
  if (model === undefined) throw new Refusal(404, `model: ${body.model}`)
  return model
}

function requireMessage(message: unknown, at: string): void {
  if (!isObject(message)) throw new Refusal(400, `${at}: Input should be a valid dictionary`)
  const { role, content } = message as { role?: unknown; content?: unknown }
  if (role === undefined) throw new Refusal(400, `${at}.role: Field required`)
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw new Refusal(400, `${at}.role: Input should be 'user' or 'assistant'`)
  }
  if (content === undefined) throw new Refusal(400, `${at}.content: Field required`)
  if (typeof content !== 'string' && !Array.isArray(content)) {
    throw new Refusal(400, `${at}.content: Input should be a valid string or list`)
  }
}

export function validateMessages(call: Call): MessagesRequest {
  const version = requireVersion(call)
  const body = parseMessagesBody(call)
  const model = requireModelAndMessages(body)
  if (body.max_tokens === undefined) throw new Refusal(400, 'max_tokens: Field required')
  if (!isIntegerIn(body.max_tokens, 0, Number.MAX_SAFE_INTEGER)) {
    throw new Refusal(400, 'max_tokens: Input should be a valid integer greater than or equal to 0')
  }
  if (body.max_tokens > model.outputTokensMax) {
    throw new Refusal(
      400,
      `max_tokens: ${body.max_tokens} > ${model.outputTokensMax}, which is the maximum allowed number of output tokens for ${model.id}`,
    )
  }
  if (body.stream !== undefined && typeof body.stream !== 'boolean') {
    throw new Refusal(400, 'stream: Input should be a valid boolean')
  }
  if (version === '2026-10-21') refuseSampling(body)
  return {
    body,
    model,
    outputTokensMax: body.max_tokens,
    isStream: body.stream === true,
    stopSequences: asArray(body.stop_sequences).map(asText),
    thinking: readThinking(body.thinking, body.max_tokens),
    tools: readTools(body.tools),
    toolWish: readToolWish(body.tool_choice),
    parallelTools: !isObject(body.tool_choice) || body.tool_choice['disable_parallel_tool_use'] !== true,
    schema: readSchema(body.output_config),
    speed: readSpeed(body.speed, model),
    geo: typeof body.inference_geo === 'string' ? body.inference_geo : 'global',
  }
}

/** The version of October 2026 took the sampling parameters away. */
function refuseSampling(body: MessagesBody): void {
  for (const name of ['temperature', 'top_p', 'top_k'] as const) {
    if (body[name] !== undefined) throw new Refusal(400, `${name}: Extra inputs are not permitted`)
  }
}

function readToolWish(choice: unknown): ToolWish {
  const { type, name } = (isObject(choice) ? choice : {}) as { type?: unknown; name?: unknown }
  if (type === 'none' || type === 'any') return { kind: type }
  return type === 'tool' ? { kind: 'named', name: asText(name) } : { kind: 'auto' }
}

function readSchema(config: unknown): JsonObject | undefined {
  const { format } = (isObject(config) ? config : {}) as { format?: unknown }
  const { schema } = (isObject(format) ? format : {}) as { schema?: unknown }
  return isObject(schema) ? schema : undefined
}

function readSpeed(speed: unknown, model: Model): 'standard' | 'fast' {
  if (speed === undefined || speed === null || speed === 'standard') return 'standard'
  if (speed !== 'fast') throw new Refusal(400, "speed: Input should be 'standard' or 'fast'")
  if (fastModels.includes(model.id)) return 'fast'
  // claude-opus-4-6 accepts the parameter and runs at standard speed; other models without fast mode refuse it.
  if (model.id === 'claude-opus-4-6') return 'standard'
  throw new Refusal(400, `speed: fast mode is not supported for ${model.id}`)
}
