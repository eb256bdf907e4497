import type { Call } from '../call.ts'
import { type ChatPrompt, readPrompt } from '../chat/chat-prompt.ts'
import { refusalText, reportsCacheWrites } from '../chat/plan-chat.ts'
import { chooseTools } from '../choose-tools.ts'
import { type Generated, generate } from '../generate.ts'
import { asArray, asText, type JsonObject, mergeJson } from '../json.ts'
import { countTokens } from '../tokens.ts'
import { messageItem, type OutputItem, reasoningItem } from './output-items.ts'
import { outputTokensOf, type ResponsePlan } from './response-plan.ts'
import { toolItems } from './tool-items.ts'
import type { ResponseRequest } from './validate-response.ts'

/** Tokens of the result that a tool which upstream runs gives the model to read. */
const tokensPerToolResult = 400

export function planResponse(call: Call, request: ResponseRequest): ResponsePlan {
  const { identity, behaviours } = call
  const { model, body } = request
  const prompt = readPromptOf(request)
  const written = generate({
    topic: prompt.topic,
    variant: model.snapshot,
    tokensWanted: behaviours.tokens,
    outputTokensMax: request.outputTokensMax,
    thinkingTokens: request.reasoningTokens,
    stopSequences: [],
    schema: request.schema,
    tools: chooseTools(
      request.tools,
      request.toolWish,
      prompt.topic,
      prompt.isToolResult,
      body.parallel_tool_calls !== false,
      behaviours.call,
    ),
    saysWhyBeforeTools: false,
    refuses: behaviours.refusal === true,
  })
  return {
    id: `resp_${identity.hex(48)}`,
    createdAt: Math.floor(identity.now().getTime() / 1000),
    echo: echoRequest(call, request),
    isBackground: request.isBackground,
    items: toItems(call, request, written),
    ending: written.finish === 'length' ? 'incomplete' : 'completed',
    usageOf: usageOf(call, request, prompt),
    padding: identity.base62(24),
  }
}

export function readPromptOf(request: ResponseRequest): ChatPrompt {
  const { body } = request
  return readPrompt(request.turns, asArray(body.tools), asText(body.instructions))
}

function toItems(call: Call, request: ResponseRequest, written: Generated): OutputItem[] {
  const { identity } = call
  const isCut = written.finish === 'length'
  const items: OutputItem[] = []
  const isLast = (left: number): boolean => isCut && left === 0
  if (written.thinking !== '') {
    const summary = request.showsSummary ? written.thinking : null
    const isAll = written.text === '' && written.toolCalls.length === 0
    items.push(reasoningItem(`rs_${identity.hex(48)}`, summary, written.thinkingTokens, isCut && isAll))
  }
  const id = `msg_${identity.hex(48)}`
  for (const tool of written.serverCalls) items.push(...toolItems(tool, identity, false))
  if (written.finish === 'refusal') {
    // The text that was written before the refusal is taken back, but its tokens count.
    const tokens = countTokens(written.text) + countTokens(refusalText)
    items.push(messageItem(id, 'refusal', refusalText, false, tokens))
  } else if (written.text !== '') {
    items.push(messageItem(id, 'output_text', written.text, isLast(written.toolCalls.length)))
  }
  for (const [index, tool] of written.toolCalls.entries()) {
    items.push(...toolItems(tool, identity, isLast(written.toolCalls.length - 1 - index)))
  }
  return items
}

function echoRequest(call: Call, request: ResponseRequest): JsonObject {
  const { body } = request
  const reasoning = (body.reasoning ?? {}) as { effort?: unknown; summary?: unknown }
  return {
    background: request.isBackground,
    instructions: body.instructions ?? null,
    max_output_tokens: request.statedLimit,
    max_tool_calls: null,
    model: call.behaviours.model ?? request.model.snapshot,
    parallel_tool_calls: body.parallel_tool_calls !== false,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: {
      effort: reasoning.effort ?? (request.model.reasons ? 'medium' : null),
      summary: reasoning.summary ?? null,
    },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: call.behaviours.tier ?? request.tier,
    store: request.isStored,
    temperature: body.temperature ?? 1,
    text: body.text ?? { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    user: body.user ?? null,
    metadata: body.metadata ?? {},
  }
}

function usageOf(call: Call, request: ResponseRequest, prompt: ChatPrompt): ResponsePlan['usageOf'] {
  const { model } = request
  const nowMs = call.identity.now().getTime()
  const cache = call.memory.promptCache.useAutomatic(model.snapshot, prompt.text, nowMs)
  if (call.behaviours.noUsage === true) return () => undefined
  const cached = Math.min(cache.read, prompt.tokens)
  const cacheWritten = reportsCacheWrites(model) ? Math.min(cache.written, prompt.tokens - cached) : 0
  return (items) => {
    const output = outputTokensOf(items)
    const input = prompt.tokens + items.filter((item) => item.isServer).length * tokensPerToolResult
    return mergeJson(
      {
        input_tokens: input,
        input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWritten },
        output_tokens: output,
        output_tokens_details: { reasoning_tokens: outputTokensOf(items.filter((item) => item.isReasoning)) },
        total_tokens: input + output,
      },
      call.behaviours.usage ?? {},
    )
  }
}
