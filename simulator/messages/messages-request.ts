import type { Call } from '../call.ts'
import type { ToolDefinition, ToolWish } from '../choose-tools.ts'
import { asArray, asText, isIntegerIn, isObject, type JsonObject, parseJson } from '../json.ts'
import { findModel, type Model } from '../models.ts'
import { Refusal } from '../refusal.ts'

export type MessagesRequest = ReturnType<typeof readMessagesRequest>

const enabledThinkingTokens = 48
const adaptiveThinkingTokens = 24

/** The body of a request that has a version header. */
export function parseMessagesBody(call: Call): JsonObject {
  requireVersion(call)
  const body = parseJson(call.body.toString('utf8'))
  if (!isObject(body)) throw new Refusal(400, 'The request body is not valid JSON')
  return body
}

export function requireVersion({ headers }: Call): void {
  if (headers['anthropic-version'] === undefined) {
    throw new Refusal(400, 'anthropic-version: header is required')
  }
}

/** The checks that both message creation and token counting need. */
export function requireModelAndMessages(body: JsonObject): Model {
  const { model: name, messages } = body
  if (typeof name !== 'string') throw new Refusal(400, 'model: Field required')
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new Refusal(400, 'messages: at least one message is required')
  }
  for (const [index, message] of messages.entries()) {
    const { role, content } = isObject(message) ? message : ({} as JsonObject)
    if (role !== 'user' && role !== 'assistant' && role !== 'system') {
      throw new Refusal(400, `messages.${index}.role: Input should be 'user' or 'assistant'`)
    }
    if (typeof content !== 'string' && !Array.isArray(content)) {
      throw new Refusal(400, `messages.${index}.content: Input should be a valid string or list`)
    }
  }
  const model = findModel('messages', name)
  if (model === undefined) throw new Refusal(404, `model: ${name}`)
  return model
}

export function readMessagesRequest(call: Call) {
  const body = parseMessagesBody(call)
  const model = requireModelAndMessages(body)
  const { max_tokens: outputTokensMax, tool_choice: choice, thinking } = body
  if (!isIntegerIn(outputTokensMax, 0, Number.MAX_SAFE_INTEGER)) {
    throw new Refusal(400, 'max_tokens: Field required, a non-negative integer')
  }
  if (outputTokensMax > model.outputTokensMax) {
    throw new Refusal(
      400,
      `max_tokens: ${outputTokensMax} > ${model.outputTokensMax}, which is the maximum allowed number of output tokens for ${model.id}`,
    )
  }
  const { type } = isObject(thinking) ? thinking : ({} as JsonObject)
  return {
    body,
    model,
    outputTokensMax,
    isStream: body['stream'] === true,
    stopSequences: asArray(body['stop_sequences']).map(asText),
    thinkingTokens:
      type === 'enabled' ? enabledThinkingTokens : type === 'adaptive' ? adaptiveThinkingTokens : 0,
    tools: readTools(body['tools']),
    toolWish: readToolWish(choice),
    parallelTools: !isObject(choice) || choice['disable_parallel_tool_use'] !== true,
    schema: readSchema(body['output_config']),
    speed: body['speed'] === 'fast' ? 'fast' : 'standard',
    geo: asText(body['inference_geo']) || 'global',
  }
}

/** Functions of the client, and searches that upstream runs itself. Other tools are accepted and never called. */
function readTools(tools: unknown): ToolDefinition[] {
  return asArray(tools).flatMap((tool, index) => {
    const { type = 'custom', name, input_schema } = isObject(tool) ? tool : ({} as JsonObject)
    if (typeof name !== 'string') throw new Refusal(400, `tools.${index}.name: Field required`)
    if (type === 'custom') return [{ name, kind: 'custom', schema: input_schema ?? {} }]
    if (!asText(type).startsWith('web_search_')) return []
    const schema = { type: 'object', properties: { query: { type: 'string' } } }
    return [{ name, kind: 'web_search', schema, isServer: true }]
  })
}

function readToolWish(choice: unknown): ToolWish {
  const { type, name } = isObject(choice) ? choice : ({} as JsonObject)
  if (type === 'none' || type === 'any') return { kind: type }
  return type === 'tool' ? { kind: 'named', name: asText(name) } : { kind: 'auto' }
}

function readSchema(config: unknown): JsonObject | undefined {
  const format = isObject(config) ? config['format'] : undefined
  const schema = isObject(format) ? format['schema'] : undefined
  return isObject(schema) ? schema : undefined
}
