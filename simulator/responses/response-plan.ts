import type { JsonObject } from '../json.ts'
import type { OutputItem } from './output-items.ts'

/** Everything about a response that is decided before the first byte is sent. */
export interface ResponsePlan {
  readonly id: string
  readonly createdAt: number
  /** The members of the response object that the request decides. */
  readonly echo: JsonObject
  readonly isBackground: boolean
  readonly items: readonly OutputItem[]
  /** `steered` is a response that a socket's client has interrupted with more input. */
  readonly ending: 'completed' | 'incomplete' | 'cancelled' | 'steered'
  /** The usage of a response with these items, or undefined when the request asked for none to be reported. */
  readonly usageOf: (items: readonly OutputItem[]) => JsonObject | undefined
  readonly padding: string
}

export function outputTokensOf(items: readonly OutputItem[]): number {
  return items.reduce((sum, item) => sum + item.tokens, 0)
}

/** The response as it stands when it is broken off after `tokens` tokens of output. */
export function cutPlan(
  plan: ResponsePlan,
  tokens: number,
  ending: 'cancelled' | 'steered' = 'cancelled',
): ResponsePlan {
  const items: OutputItem[] = []
  let left = tokens
  for (const item of plan.items) {
    const kept = item.tokens <= left ? item : item.cutTo(left)
    if (kept !== null && (kept.tokens > 0 || left > 0)) items.push(kept)
    if (kept !== item) break
    left -= item.tokens
  }
  return { ...plan, items, ending }
}
