import type { JsonObject } from '../json.ts'
import { finishedItem, type OutputItem } from './output-items.ts'
import type { ResponsePlan } from './response-plan.ts'

export type ResponseState = 'queued' | 'in_progress' | 'final'

/** The response object while it is being written, or when it is done. */
export function responseJson(plan: ResponsePlan, state: ResponseState): JsonObject {
  const isFinal = state === 'final'
  // A request can ask for usage to be left out; before the end usage is null for every request.
  const usage = isFinal ? plan.usageOf(plan.items) : null
  return {
    id: plan.id,
    object: 'response',
    created_at: plan.createdAt,
    status: isFinal ? statusOf(plan) : state,
    access_programs: null,
    completed_at: isFinal && plan.ending === 'completed' ? plan.createdAt : null,
    error: null,
    incomplete_details: isFinal ? incompleteDetails(plan) : null,
    output: isFinal ? plan.items.map(finishedItem) : [],
    ...plan.echo,
    ...(isFinal ? { tool_usage: toolUsage(plan.items) } : {}),
    ...(usage === undefined ? {} : { usage }),
  }
}

function statusOf({ ending }: ResponsePlan): string {
  return ending === 'steered' ? 'incomplete' : ending
}

function incompleteDetails({ ending }: ResponsePlan): JsonObject | null {
  if (ending === 'steered') return { reason: 'steered' }
  return ending === 'incomplete' ? { reason: 'max_output_tokens' } : null
}

function toolUsage(items: readonly OutputItem[]): JsonObject {
  const input = items.reduce((sum, { image }) => sum + (image?.input ?? 0), 0)
  const output = items.reduce((sum, { image }) => sum + (image?.output ?? 0), 0)
  const searches = items.filter((item) => item.json('completed')['type'] === 'web_search_call')
  return {
    image_gen: {
      input_tokens: input,
      input_tokens_details: { image_tokens: 0, text_tokens: input },
      output_tokens: output,
      output_tokens_details: { image_tokens: output, text_tokens: 0 },
      total_tokens: input + output,
    },
    web_search: { num_requests: searches.length },
  }
}
