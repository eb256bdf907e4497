import type { JsonObject } from '../json.ts'
import { finishedItem } from './output-items.ts'
import type { ResponsePlan } from './response-plan.ts'

export type ResponseState = 'queued' | 'in_progress' | 'final'

/** The response object while it is being written, or when it is done. */
export function responseJson(plan: ResponsePlan, state: ResponseState): JsonObject {
  const isFinal = state === 'final'
  const isComplete = isFinal && !plan.isIncomplete
  // A request can ask for usage to be left out; before the end it is null for everybody.
  const usage = isFinal ? plan.usage : null
  return {
    id: plan.id,
    object: 'response',
    created_at: plan.createdAt,
    status: isFinal ? (plan.isIncomplete ? 'incomplete' : 'completed') : state,
    access_programs: null,
    completed_at: isComplete ? plan.createdAt : null,
    error: null,
    incomplete_details: isFinal && plan.isIncomplete ? { reason: 'max_output_tokens' } : null,
    output: isFinal ? plan.items.map(finishedItem) : [],
    ...plan.echo,
    ...(isFinal ? { tool_usage: toolUsage } : {}),
    ...(usage === undefined ? {} : { usage }),
  }
}

const toolUsage = {
  image_gen: {
    input_tokens: 0,
    input_tokens_details: { image_tokens: 0, text_tokens: 0 },
    output_tokens: 0,
    output_tokens_details: { image_tokens: 0, text_tokens: 0 },
    total_tokens: 0,
  },
  web_search: { num_requests: 0 },
}
