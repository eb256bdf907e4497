import type { JsonObject } from '../json.ts'
import { type Pace, tokensMs, type WorkClock } from '../pace.ts'
import type { TurnEvent } from '../reply.ts'
import type { OutputItem } from './output-items.ts'

/** Everything about a response that is decided before the first byte is sent. */
export interface ResponsePlan {
  readonly id: string
  readonly createdAt: number
  /** The members of the response object that the request decides. */
  readonly echo: JsonObject
  readonly isBackground: boolean
  readonly items: readonly OutputItem[]
  readonly ending: 'completed' | 'incomplete' | 'cancelled'
  /** The member `usage` of a response with these items, if usage is reported. */
  readonly usageOf: (items: readonly OutputItem[]) => JsonObject
  /** The padding of a delta. */
  readonly pad: (delta: string) => JsonObject
}

/** A response that can be fetched, or continued by a later turn. */
export interface StoredResponse {
  plan: ResponsePlan
  /** The input, that of earlier turns included. */
  readonly turns: readonly unknown[]
  /** Work in the background; null for a response that is final. */
  work: { readonly startedMs: number; readonly pace: Pace } | null
}

type ResponseState = 'queued' | 'in_progress' | 'final'

const queuedMs = 1_000

export function outputTokensOf(items: readonly OutputItem[]): number {
  return items.reduce((sum, item) => sum + item.tokens, 0)
}

export function stateOf({ plan, work }: StoredResponse, clock: WorkClock): ResponseState {
  if (work === null) return 'final'
  const elapsedMs = clock.elapsedMs(work.startedMs)
  const workMs = work.pace.firstByteMs + tokensMs(work.pace, outputTokensOf(plan.items))
  return elapsedMs < queuedMs ? 'queued' : elapsedMs < queuedMs + workMs ? 'in_progress' : 'final'
}

/** Ends background work; only the items that were done by then remain. */
export function cancelWork(stored: StoredResponse, clock: WorkClock): void {
  const { work, plan } = stored
  if (work === null || stateOf(stored, clock) === 'final') return
  let leftMs = clock.elapsedMs(work.startedMs) - queuedMs - work.pace.firstByteMs
  const items = plan.items.filter((item) => {
    leftMs -= tokensMs(work.pace, item.tokens)
    return leftMs >= 0
  })
  stored.plan = { ...plan, items, ending: 'cancelled' }
  stored.work = null
}

/** The response object while it is being written, or when it is done. */
export function responseJson(plan: ResponsePlan, state: ResponseState): JsonObject {
  const isFinal = state === 'final'
  const { items, ending } = plan
  const searches = items.filter((item) => item.kind === 'search').length
  return {
    id: plan.id,
    object: 'response',
    created_at: plan.createdAt,
    status: isFinal ? ending : state,
    access_programs: null,
    completed_at: isFinal && ending === 'completed' ? plan.createdAt : null,
    error: null,
    incomplete_details: isFinal && ending === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    output: isFinal ? items.map((item) => item.whole) : [],
    ...plan.echo,
    ...(isFinal ? { tool_usage: { web_search: { num_requests: searches } } } : {}),
    ...(isFinal ? plan.usageOf(items) : { usage: null }),
  }
}

/** The events of a response, in upstream's order, each with its sequence number. */
export function* writeResponse(plan: ResponsePlan): Generator<TurnEvent> {
  let sequence = 0
  const numbered = (type: string, fields: JsonObject, tokens = 0, isDelta = false): TurnEvent => {
    const event = { type, ...fields, sequence_number: sequence }
    sequence += 1
    return { event, tokens, isDelta }
  }
  const opening = responseJson(plan, plan.isBackground ? 'queued' : 'in_progress')
  yield numbered('response.created', { response: opening })
  if (plan.isBackground) yield numbered('response.queued', { response: opening })
  yield numbered('response.in_progress', { response: responseJson(plan, 'in_progress') })
  for (const [index, item] of plan.items.entries()) {
    const at = { output_index: index }
    yield numbered('response.output_item.added', { ...at, item: item.opening })
    for (const { event, tokens, isDelta } of item.events) {
      const { type, ...fields } = event
      const padding = isDelta ? plan.pad(String(event['delta'])) : {}
      yield numbered(type, { ...at, ...fields, ...padding }, tokens, isDelta)
    }
    // Hidden output takes its time too.
    const hiddenTokens = item.events.some(({ isDelta }) => isDelta) ? 0 : item.tokens
    yield numbered('response.output_item.done', { ...at, item: item.whole }, hiddenTokens)
  }
  yield numbered(`response.${plan.ending}`, { response: responseJson(plan, 'final') })
}
