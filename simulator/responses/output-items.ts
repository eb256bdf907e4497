import type { ToolCall } from '../generate.ts'
import type { Identity } from '../identity.ts'
import { asText, isObject, type JsonObject, parseJson } from '../json.ts'
import type { TurnEvent } from '../reply.ts'
import { countTokens, splitIntoPieces, splitIntoWords } from '../text.ts'

/** One item of a response's output: as a stream opens it, the events that write it, and when it is done. */
export interface OutputItem {
  readonly opening: JsonObject
  readonly events: readonly TurnEvent[]
  readonly whole: JsonObject
  /** The output tokens that the item counts. */
  readonly tokens: number
  readonly kind: 'reasoning' | 'message' | 'call' | 'search'
}

/** `isCut` says that the output limit broke the item off. */
function statusOf(isCut: boolean): JsonObject {
  return { status: isCut ? 'incomplete' : 'completed' }
}

export function messageItem(identity: Identity, text: string, isCut: boolean): OutputItem {
  const id = `msg_${identity.hex(48)}`
  const part = (words: string): JsonObject => ({
    ...{ type: 'output_text', annotations: [], logprobs: [], text: words },
  })
  const at = { item_id: id, content_index: 0 }
  const item = { id, type: 'message', role: 'assistant' }
  return {
    opening: { ...item, status: 'in_progress', content: [] },
    events: [
      plain('response.content_part.added', { ...at, part: part('') }),
      ...splitIntoWords(text).map((delta) => written('response.output_text', { ...at, logprobs: [] }, delta)),
      plain('response.output_text.done', { ...at, text, logprobs: [] }),
      plain('response.content_part.done', { ...at, part: part(text) }),
    ],
    whole: { ...item, ...statusOf(isCut), content: [part(text)] },
    tokens: countTokens(text),
    kind: 'message',
  }
}

/** Reasoning stays hidden; a summary shows if the request asked for one. */
export function reasoningItem(identity: Identity, thinking: string, isShown: boolean): OutputItem {
  const id = `rs_${identity.hex(48)}`
  const part = (text: string): JsonObject => ({ type: 'summary_text', text })
  const at = { item_id: id, summary_index: 0 }
  const name = 'response.reasoning_summary'
  const summary = [
    plain(`${name}_part.added`, { ...at, part: part('') }),
    ...splitIntoWords(thinking).map((delta) => written(`${name}_text`, at, delta)),
    plain(`${name}_text.done`, { ...at, text: thinking }),
    plain(`${name}_part.done`, { ...at, part: part(thinking) }),
  ]
  return {
    opening: { id, type: 'reasoning', summary: [] },
    events: isShown ? summary : [],
    whole: { id, type: 'reasoning', summary: isShown ? [part(thinking)] : [] },
    tokens: countTokens(thinking),
    kind: 'reasoning',
  }
}

/** A call that the client answers, with its arguments in pieces; or a search that upstream runs by itself. */
export function toolItem(identity: Identity, { tool, argumentsJson }: ToolCall, isCut: boolean): OutputItem {
  if (tool.isServer === true) return searchItem(identity, argumentsJson)
  const isCustom = tool.kind === 'custom'
  const id = `${isCustom ? 'ctc' : 'fc'}_${identity.hex(48)}`
  const type = isCustom ? 'custom_tool_call' : 'function_call'
  const name = isCustom ? 'response.custom_tool_call_input' : 'response.function_call_arguments'
  const member = isCustom ? 'input' : 'arguments'
  const item = { id, type, call_id: `call_${identity.base62(24)}`, name: tool.name }
  const named = isCustom ? {} : { name: tool.name }
  return {
    opening: { ...item, status: 'in_progress', [member]: '' },
    events: [
      ...splitIntoPieces(argumentsJson).map((delta) => written(name, { item_id: id }, delta)),
      plain(`${name}.done`, { item_id: id, ...named, [member]: argumentsJson }),
    ],
    whole: { ...item, ...statusOf(isCut), [member]: argumentsJson },
    tokens: countTokens(argumentsJson),
    kind: 'call',
  }
}

function searchItem(identity: Identity, argumentsJson: string): OutputItem {
  const id = `ws_${identity.hex(48)}`
  const given = parseJson(argumentsJson)
  const query = asText(isObject(given) ? given['query'] : '')
  const item = { id, type: 'web_search_call', action: { type: 'search', query, queries: [query] } }
  const stages = ['in_progress', 'searching', 'completed']
  return {
    opening: { ...item, status: 'in_progress' },
    events: stages.map((stage) => plain(`response.web_search_call.${stage}`, { item_id: id })),
    whole: { ...item, ...statusOf(false) },
    tokens: countTokens(argumentsJson),
    kind: 'search',
  }
}

function plain(type: string, fields: JsonObject): TurnEvent {
  return { event: { type, ...fields }, tokens: 0, isDelta: false }
}

function written(name: string, fields: JsonObject, delta: string): TurnEvent {
  return { event: { type: `${name}.delta`, ...fields, delta }, tokens: countTokens(delta), isDelta: true }
}
