import type { JsonObject } from '../json.ts'
import { countTokens, cutToTokens, splitIntoDeltas } from '../tokens.ts'

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** An event of a stream, before it has its sequence number. */
export interface ItemEvent {
  readonly type: string
  readonly fields: JsonObject
  readonly tokens: number
  readonly isDelta: boolean
}

/** One item of a response's output: as JSON in any state, and as the events that write it. */
export interface OutputItem {
  readonly id: string
  /** The output tokens that the item counts. */
  readonly tokens: number
  /** Whether the output limit broke this item off. */
  readonly isCut: boolean
  readonly isReasoning?: boolean
  /** Whether the item is a tool that upstream ran, and whose result it then read. */
  readonly isServer?: boolean
  /** The tokens that the image model used for the item. */
  readonly image?: { readonly input: number; readonly output: number }
  json(status: ItemStatus): JsonObject
  events(): Iterable<ItemEvent>
  /** The beginning of the item that is worth `tokens` tokens; null for an item that can only be whole or not there. */
  cutTo(tokens: number): OutputItem | null
}

/** The item as it stands at the end of the response. */
export function finishedItem(item: OutputItem): JsonObject {
  return item.json(item.isCut ? 'incomplete' : 'completed')
}

export function messageItem(
  id: string,
  kind: 'output_text' | 'refusal',
  text: string,
  isCut: boolean,
  tokens = countTokens(text),
): OutputItem {
  const part = (words: string): JsonObject =>
    kind === 'refusal'
      ? { type: 'refusal', refusal: words }
      : { type: 'output_text', annotations: [], logprobs: [], text: words }
  const name = kind === 'refusal' ? 'response.refusal' : 'response.output_text'
  const place = { item_id: id, content_index: 0 }
  const extra = kind === 'refusal' ? {} : { logprobs: [] }
  return {
    id,
    tokens,
    isCut,
    json: (status) => ({
      id,
      type: 'message',
      status,
      role: 'assistant',
      content: status === 'in_progress' ? [] : [part(text)],
    }),
    *events() {
      yield event('response.content_part.added', { ...place, part: part('') })
      for (const delta of splitIntoDeltas(text))
        yield written(`${name}.delta`, { ...place, delta, ...extra }, delta)
      const whole = kind === 'refusal' ? { refusal: text } : { text, logprobs: [] }
      yield event(`${name}.done`, { ...place, ...whole })
      yield event('response.content_part.done', { ...place, part: part(text) })
    },
    cutTo: (left) => messageItem(id, kind, cutToTokens(text, left), true),
  }
}

/** Reasoning stays hidden; a summary shows if the request asked for one. */
export function reasoningItem(
  id: string,
  summary: string | null,
  tokens: number,
  isCut: boolean,
): OutputItem {
  const part = (text: string): JsonObject => ({ type: 'summary_text', text })
  return {
    id,
    tokens,
    isCut,
    isReasoning: true,
    json: (status) => ({
      id,
      type: 'reasoning',
      summary: summary === null || status === 'in_progress' ? [] : [part(summary)],
    }),
    *events() {
      if (summary === null) return
      const place = { item_id: id, summary_index: 0 }
      const name = 'response.reasoning_summary'
      yield { ...event(`${name}_part.added`, { ...place, part: part('') }), tokens }
      for (const delta of splitIntoDeltas(summary)) {
        yield { ...written(`${name}_text.delta`, { ...place, delta }, delta), tokens: 0 }
      }
      yield event(`${name}_text.done`, { ...place, text: summary })
      yield event(`${name}_part.done`, { ...place, part: part(summary) })
    },
    cutTo: (left) => reasoningItem(id, summary === null ? null : cutToTokens(summary, left), left, true),
  }
}

export function event(type: string, fields: JsonObject): ItemEvent {
  return { type, fields, tokens: 0, isDelta: false }
}

export function written(type: string, fields: JsonObject, delta: string): ItemEvent {
  return { type, fields, tokens: countTokens(delta), isDelta: true }
}
