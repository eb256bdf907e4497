import type { Behaviours } from '../behaviours.ts'
import { type JsonObject, mergeJson } from '../json.ts'
import { tokensPerToolResult } from './message-tools.ts'
import type { MessagePlan } from './plan-message.ts'

/** Members that a request cannot override in `message_start`, and members that `message_delta` leaves out. */
const outputMembers: readonly string[] = ['output_tokens', 'output_tokens_details']
const startMembers: readonly string[] = ['cache_creation', 'service_tier', 'inference_geo', 'speed']

/** The usage of a complete message, or undefined when the request asked for none to be reported. */
export function finalUsage(plan: MessagePlan, behaviours: Behaviours): JsonObject | undefined {
  if (behaviours.noUsage === true) return undefined
  return mergeJson(inputUsage(plan, plan.outputTokens), behaviours.usage ?? {})
}

/** The usage that `message_start` reports: the whole input, and one output token as a placeholder. */
export function startUsage(plan: MessagePlan, behaviours: Behaviours): JsonObject | undefined {
  if (behaviours.noUsage === true) return undefined
  const over = without(behaviours.usage ?? {}, outputMembers)
  return mergeJson(
    inputUsage({ ...plan, thinkingTokens: 0, serverTools: [] }, Math.min(1, plan.outputTokens)),
    over,
  )
}

/** The usage that `message_delta` reports: cumulative figures, without the split, the tier, the place and the speed. */
export function deltaUsage(plan: MessagePlan, behaviours: Behaviours): JsonObject | undefined {
  const usage = finalUsage(plan, behaviours)
  return usage === undefined ? undefined : without(usage, startMembers)
}

function inputUsage(plan: MessagePlan, outputTokens: number): JsonObject {
  const { cache, serverTools } = plan
  const count = (kind: string): number => serverTools.filter((tool) => tool === kind).length
  return {
    // The results of upstream's own tools are read as input, so the end counts more input than the beginning.
    input_tokens: cache.uncached + serverTools.length * tokensPerToolResult,
    cache_creation_input_tokens: cache.written5m + cache.written1h,
    cache_read_input_tokens: cache.read,
    cache_creation: {
      ephemeral_5m_input_tokens: cache.written5m,
      ephemeral_1h_input_tokens: cache.written1h,
    },
    output_tokens: outputTokens,
    output_tokens_details: { thinking_tokens: plan.thinkingTokens },
    server_tool_use:
      serverTools.length === 0
        ? null
        : { web_search_requests: count('web_search'), web_fetch_requests: count('web_fetch') },
    service_tier: plan.tier,
    inference_geo: plan.geo,
    speed: plan.speed,
  }
}

function without(usage: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(usage).filter(([name]) => !names.includes(name)))
}
