import type { Behaviours } from '../behaviours.ts'
import type { Call } from '../call.ts'
import { type JsonObject, mergeJson } from '../json.ts'
import { eventFrame, type Frame, jsonReply, type Reply, streamReply } from '../reply.ts'
import { countTokens } from '../text.ts'
import { parseMessagesBody, readMessagesRequest, requireModelAndMessages } from './messages-request.ts'
import { messagesErrorFrame } from './messages-wire.ts'
import { type MessagePlan, planMessage } from './plan-message.ts'
import { promptBlocks } from './prompt-blocks.ts'

/** Tokens of a search's result, which the model reads as input. */
const tokensPerSearch = 400

/** POST /v1/messages */
export function createMessage(call: Call): Reply {
  const request = readMessagesRequest(call)
  const plan = planMessage(call, request)
  const { pace } = request.model
  if (request.isStream) return streamReply(streamMessage(plan, call.behaviours), messagesErrorFrame, pace)
  const message = {
    ...messageJson(plan),
    content: plan.blocks.map((block) => block.whole),
    ...endOf(plan),
    ...reported(usageOf(plan, plan), call.behaviours),
  }
  return jsonReply(message, { pace, tokens: plan.outputTokens })
}

/** POST /v1/messages/count_tokens */
export function countMessageTokens(call: Call): Reply {
  const body = parseMessagesBody(call)
  requireModelAndMessages(body)
  return jsonReply({ input_tokens: promptBlocks(body).reduce((sum, block) => sum + block.tokens, 0) })
}

/** The events of a message, in upstream's order. */
function* streamMessage(plan: MessagePlan, behaviours: Behaviours): Generator<Frame> {
  const event = (data: JsonObject & { type: string }, text?: string): Frame =>
    eventFrame(data.type, data, countTokens(text ?? ''), text !== undefined)
  const { output_tokens: _, output_tokens_details: __, ...over } = behaviours.usage ?? {}
  // The start reports the whole input, and one output token as a placeholder.
  const begun = { outputTokens: Math.min(1, plan.outputTokens), thinkingTokens: 0, searches: 0 }
  const startUsage = reported(usageOf(plan, begun), { ...behaviours, usage: over })
  const none = { content: [], stop_reason: null, stop_sequence: null, stop_details: null, container: null }
  yield event({ type: 'message_start', message: { ...messageJson(plan), ...none, ...startUsage } })
  for (const [index, { opening, deltas }] of plan.blocks.entries()) {
    yield event({ type: 'content_block_start', index, content_block: opening })
    if (index === 0) yield event({ type: 'ping' })
    for (const { delta, text } of deltas) yield event({ type: 'content_block_delta', index, delta }, text)
    yield event({ type: 'content_block_stop', index })
  }
  const { cache_creation, service_tier, inference_geo, speed, ...cumulative } = usageOf(plan, plan)
  const usage = reported(cumulative, behaviours)
  yield event({ type: 'message_delta', delta: endOf(plan), ...usage })
  yield event({ type: 'message_stop' })
}

function messageJson({ id, model }: MessagePlan): JsonObject {
  return { id, type: 'message', role: 'assistant', model, diagnostics: null }
}

function endOf({ stopReason, stopSequence }: MessagePlan): JsonObject {
  return { stop_reason: stopReason, stop_sequence: stopSequence, stop_details: null, container: null }
}

function reported(usage: JsonObject, { noUsage, usage: over }: Behaviours): JsonObject {
  return noUsage === true ? {} : { usage: mergeJson(usage, over ?? {}) }
}

function usageOf(
  { cache, tier, geo, speed }: MessagePlan,
  {
    outputTokens,
    thinkingTokens,
    searches,
  }: Pick<MessagePlan, 'outputTokens' | 'thinkingTokens' | 'searches'>,
): JsonObject {
  return {
    input_tokens: cache.uncached + searches * tokensPerSearch,
    cache_creation_input_tokens: cache.written5m + cache.written1h,
    cache_read_input_tokens: cache.read,
    cache_creation: {
      ephemeral_5m_input_tokens: cache.written5m,
      ephemeral_1h_input_tokens: cache.written1h,
    },
    output_tokens: outputTokens,
    output_tokens_details: { thinking_tokens: thinkingTokens },
    server_tool_use: searches === 0 ? null : { web_search_requests: searches, web_fetch_requests: 0 },
    service_tier: tier,
    inference_geo: geo,
    speed,
  }
}
