import { isObject, type JsonObject } from '../json.ts'

/** The usage of all answers of a batch together, whichever endpoint gave them. */
export interface BatchUsage {
  readonly input: number
  readonly cached: number
  readonly output: number
  readonly reasoning: number
}

export const noUsage: BatchUsage = { input: 0, cached: 0, output: 0, reasoning: 0 }

/** Chat and older endpoints say prompt and completion where Responses says input and output. */
export function addUsage(sum: BatchUsage, usage: unknown): BatchUsage {
  const input = detailed(usage, 'prompt_tokens', 'input_tokens', 'cached_tokens')
  const output = detailed(usage, 'completion_tokens', 'output_tokens', 'reasoning_tokens')
  return {
    input: sum.input + input.total,
    cached: sum.cached + input.detail,
    output: sum.output + output.total,
    reasoning: sum.reasoning + output.detail,
  }
}

export function batchUsageJson(usage: BatchUsage): JsonObject {
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  }
}

function detailed(usage: unknown, older: string, newer: string, detail: string) {
  const found = isObject(usage) ? usage : {}
  const name = found[older] === undefined ? newer : older
  const details = found[`${name}_details`]
  return { total: Number(found[name] ?? 0), detail: Number((isObject(details) ? details[detail] : 0) ?? 0) }
}
