import type { Call } from '../call.ts'
import { type ChatPrompt, readCache, readPrompt } from '../chat/chat-prompt.ts'
import {
  invalid,
  missing,
  obfuscate,
  parseChatBody,
  readSchema,
  readTier,
  readTokenLimit,
  readToolWish,
  reported,
  requireModel,
  thinkingTokens,
} from '../chat/read-fields.ts'
import type { ToolDefinition } from '../choose-tools.ts'
import { type Generated, generate } from '../generate.ts'
import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import { Refusal } from '../refusal.ts'
import { messageItem, type OutputItem, reasoningItem, toolItem } from './output-items.ts'
import { outputTokensOf, type ResponsePlan, type StoredResponse } from './response-plan.ts'

export type ResponseRequest = ReturnType<typeof readResponseRequest>

/** Upstream refuses smaller limits on this endpoint. */
const outputTokensMin = 16
/** A stored prompt names its own model; the simulator stores no prompts and takes this model. */
const promptModel = 'gpt-6.1-sol'
/** Tokens of a search's result, which the model reads as input. */
const tokensPerSearch = 400

export function readResponseRequest(call: Call) {
  const body = parseChatBody(call)
  const name = body['model'] ?? (isObject(body['prompt']) ? promptModel : undefined)
  const model = requireModel(name, 'v1/responses', 'chat', 'responses')
  const isBackground = body['background'] === true
  const isStored = body['store'] !== false
  if (isBackground && !isStored) {
    throw new Refusal(400, "Background responses need 'store' to be true.", { param: 'background' })
  }
  const earlier = findEarlier(call, body['previous_response_id'] ?? null)
  const own = readInput(body)
  const turns = [...(earlier?.turns ?? []), ...(earlier?.plan.items.map((item) => item.whole) ?? []), ...own]
  const reasoning = isObject(body['reasoning']) ? body['reasoning'] : ({} as JsonObject)
  const format = isObject(body['text']) ? body['text']['format'] : undefined
  const statedLimit = readTokenLimit(body, 'max_output_tokens', outputTokensMin, model)
  return {
    body,
    model,
    /** The earlier turns that this request continues, then its own turns. */
    turns,
    prompt: readPrompt(turns, asArray(body['tools']), asText(body['instructions'])),
    statedLimit,
    outputTokensMax: statedLimit ?? model.outputTokensMax,
    isStream: body['stream'] === true,
    isBackground,
    isStored,
    reasoning,
    thinkingTokens: thinkingTokens(model, reasoning['effort']),
    tools: [...readTools(body['tools']), ...turns.flatMap(additionalTools)],
    toolWish: readToolWish(body['tool_choice']),
    parallelTools: body['parallel_tool_calls'] !== false,
    schema: readSchema(format, 'text.format'),
  }
}

function readInput(body: JsonObject): readonly unknown[] {
  const { input, prompt, previous_response_id, conversation } = body
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  if (Array.isArray(input)) return input
  if (input !== undefined && input !== null) throw invalid('input', 'a string or an array')
  if ((prompt ?? previous_response_id ?? conversation) === undefined) throw missing('input')
  return []
}

function findEarlier({ memory }: Call, id: unknown): StoredResponse | undefined {
  if (id === null) return undefined
  const earlier = memory.responses.get(asText(id)) ?? memory.unstored?.get(asText(id))
  if (earlier !== undefined) return earlier
  const details = { param: 'previous_response_id', code: 'previous_response_not_found' }
  throw new Refusal(400, `Previous response with id '${asText(id)}' not found.`, details)
}

/** Functions and custom tools of the client, and searches that upstream runs itself. Other tools are never called. */
function readTools(tools: unknown): ToolDefinition[] {
  return asArray(tools).flatMap((tool, index): ToolDefinition[] => {
    const { type, name, parameters = {}, tools: nested } = isObject(tool) ? tool : ({} as JsonObject)
    if (typeof type !== 'string') throw missing(`tools[${index}].type`)
    if (type === 'namespace') return readTools(nested)
    if (type.startsWith('web_search')) {
      const schema = { type: 'object', properties: { query: { type: 'string' } } }
      return [{ name: type, kind: 'web_search', schema, isServer: true }]
    }
    if (type !== 'function' && type !== 'custom') return []
    if (typeof name !== 'string') throw missing(`tools[${index}].name`)
    return [{ name, kind: type, schema: type === 'custom' ? undefined : parameters }]
  })
}

/** Tools that coding agents send as an input item instead of in `tools`. */
function additionalTools(turn: unknown): ToolDefinition[] {
  return isObject(turn) && turn['type'] === 'additional_tools' ? readTools(turn['tools']) : []
}

export function planResponse(call: Call, request: ResponseRequest): ResponsePlan {
  const { identity, behaviours } = call
  const written = generate({ ...request, ...request.prompt, behaviours })
  return {
    id: `resp_${identity.hex(48)}`,
    createdAt: Math.floor(identity.now().getTime() / 1000),
    echo: echoRequest(call, request),
    isBackground: request.isBackground,
    items: toItems(call, request, written),
    ending: written.finish === 'length' ? 'incomplete' : 'completed',
    usageOf: usageOf(call, request, request.prompt),
    pad: obfuscate(request.body['stream_options'], identity.base62(24)),
  }
}

function toItems({ identity }: Call, { reasoning }: ResponseRequest, written: Generated): OutputItem[] {
  const isCut = written.finish === 'length'
  const { thinking, serverCalls, text, toolCalls } = written
  const isShown = typeof reasoning['summary'] === 'string'
  return [
    ...(thinking === '' ? [] : [reasoningItem(identity, thinking, isShown)]),
    ...serverCalls.map((each) => toolItem(identity, each, false)),
    ...(text === '' ? [] : [messageItem(identity, text, isCut && toolCalls.length === 0)]),
    ...toolCalls.map((each) => toolItem(identity, each, isCut && each === toolCalls.at(-1))),
  ]
}

function echoRequest({ behaviours }: Call, request: ResponseRequest): JsonObject {
  const { body, model, reasoning } = request
  const effort = reasoning['effort'] ?? (model.reasons ? 'medium' : null)
  return {
    background: request.isBackground,
    instructions: body['instructions'] ?? null,
    max_output_tokens: request.statedLimit,
    max_tool_calls: null,
    model: behaviours.model ?? model.snapshot,
    parallel_tool_calls: request.parallelTools,
    previous_response_id: body['previous_response_id'] ?? null,
    prompt_cache_key: body['prompt_cache_key'] ?? null,
    reasoning: { effort, summary: reasoning['summary'] ?? null },
    safety_identifier: body['safety_identifier'] ?? null,
    service_tier: behaviours.tier ?? readTier(body['service_tier']),
    store: request.isStored,
    temperature: body['temperature'] ?? 1,
    text: body['text'] ?? { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_logprobs: 0,
    top_p: body['top_p'] ?? 1,
    truncation: body['truncation'] ?? 'disabled',
    user: body['user'] ?? null,
    metadata: body['metadata'] ?? {},
  }
}

function usageOf(call: Call, { model }: ResponseRequest, prompt: ChatPrompt): ResponsePlan['usageOf'] {
  const cache = readCache(call, model, prompt)
  return (items) => {
    const output = outputTokensOf(items)
    const searches = items.filter((item) => item.kind === 'search').length
    const input = prompt.tokens + searches * tokensPerSearch
    const thought = outputTokensOf(items.filter((item) => item.kind === 'reasoning'))
    const usage = {
      input_tokens: input,
      input_tokens_details: cache,
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: thought },
      total_tokens: input + output,
    }
    return reported(usage, call.behaviours)
  }
}
