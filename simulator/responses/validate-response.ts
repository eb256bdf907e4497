import type { Call } from '../call.ts'
import {
  invalid,
  missing,
  parseChatBody,
  readBoolean,
  readSchema,
  readStreamOptions,
  readTier,
  readTokenLimit,
  readToolWish,
  reasoningTokens,
  requireModel,
} from '../chat/chat-body.ts'
import type { ToolWish } from '../choose-tools.ts'
import type { ToolDefinition } from '../generate.ts'
import { asText, isObject, type JsonObject } from '../json.ts'
import type { Model } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { finishedItem } from './output-items.ts'
import type { StoredResponse } from './response-store.ts'
import { readTools } from './response-tools.ts'

export interface ResponseBody {
  model?: unknown
  input?: unknown
  instructions?: unknown
  max_output_tokens?: unknown
  stream?: unknown
  stream_options?: unknown
  store?: unknown
  background?: unknown
  tools?: unknown
  tool_choice?: unknown
  parallel_tool_calls?: unknown
  text?: unknown
  reasoning?: unknown
  service_tier?: unknown
  previous_response_id?: unknown
  conversation?: unknown
  prompt?: unknown
  metadata?: unknown
  temperature?: unknown
  top_p?: unknown
  truncation?: unknown
  user?: unknown
  safety_identifier?: unknown
  prompt_cache_key?: unknown
}

export interface ResponseRequest {
  readonly body: ResponseBody
  readonly model: Model
  /** The earlier turns that this request continues, then its own turns. */
  readonly turns: readonly unknown[]
  /** Bytes of memory that keeping the turns costs. */
  readonly turnsBytes: number
  readonly outputTokensMax: number
  readonly statedLimit: number | null
  readonly isStream: boolean
  readonly obfuscates: boolean
  readonly isBackground: boolean
  readonly isStored: boolean
  readonly reasoningTokens: number
  readonly showsSummary: boolean
  readonly tools: readonly ToolDefinition[]
  readonly toolWish: ToolWish
  readonly schema: JsonObject | undefined
  readonly tier: string
}

/** Upstream refuses smaller limits on this endpoint. */
const outputTokensMin = 16
/** A stored prompt names its own model; the simulator stores no prompts and takes this model. */
const promptModel = 'gpt-6.1-sol'

export function validateResponse(call: Call): ResponseRequest {
  const body: ResponseBody = parseChatBody(call)
  const name = body.model ?? (isObject(body.prompt) ? promptModel : undefined)
  if (name === undefined) throw missing('model')
  const model = requireModel(name, 'v1/responses', ['chat', 'responses'])
  const own = readInput(body)
  const earlier = findEarlier(call, body.previous_response_id)
  const isStream = readBoolean(body.stream, 'stream')
  const isBackground = readBoolean(body.background, 'background')
  if (isBackground && body.store === false) {
    throw new Refusal(400, "Background responses need 'store' to be true.", { param: 'background' })
  }
  const statedLimit =
    readTokenLimit(body.max_output_tokens, 'max_output_tokens', outputTokensMin, model) ?? null
  const { effort, summary } = (isObject(body.reasoning) ? body.reasoning : {}) as {
    effort?: unknown
    summary?: unknown
  }
  return {
    body,
    model,
    turns: [...(earlier?.turns ?? []), ...(earlier?.plan.items.map(finishedItem) ?? []), ...own],
    turnsBytes: (earlier?.bytes ?? 0) + call.body.length,
    outputTokensMax: statedLimit ?? model.outputTokensMax,
    statedLimit,
    isStream,
    obfuscates: readStreamOptions(body.stream_options, isStream).obfuscates,
    isBackground,
    isStored: body.store !== false,
    reasoningTokens: reasoningTokens(model, effort),
    showsSummary: typeof summary === 'string',
    tools: readTools(body.tools),
    toolWish: readToolWish(body.tool_choice),
    schema: readSchema(isObject(body.text) ? body.text['format'] : undefined, 'text.format'),
    tier: readTier(body.service_tier),
  }
}

function readInput(body: ResponseBody): readonly unknown[] {
  const { input } = body
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  if (Array.isArray(input)) return input
  if (input !== undefined && input !== null) throw invalid('input', 'a string or an array')
  if (
    body.prompt !== undefined ||
    body.previous_response_id !== undefined ||
    body.conversation !== undefined
  ) {
    return []
  }
  throw missing('input')
}

function findEarlier(call: Call, id: unknown): StoredResponse | undefined {
  if (id === undefined || id === null) return undefined
  const earlier = call.memory.responses.find(asText(id))
  if (earlier === undefined) {
    throw new Refusal(400, `Previous response with id '${asText(id)}' not found.`, {
      param: 'previous_response_id',
      code: 'previous_response_not_found',
    })
  }
  return earlier
}
