import type { Call } from '../call.ts'
import { type Generated, generate } from '../generate.ts'
import { isObject, type JsonObject, parseJson } from '../json.ts'
import type { CacheCounts } from '../prompt-cache.ts'
import { splitIntoPieces, splitIntoWords } from '../text.ts'
import type { MessagesRequest } from './messages-request.ts'
import { lastUserTurn, promptBlocks } from './prompt-blocks.ts'

/** A block of content: whole, as a stream opens it, and the deltas that fill it. */
interface ContentBlock {
  readonly whole: JsonObject
  readonly opening: JsonObject
  readonly deltas: readonly { readonly delta: JsonObject; readonly text: string }[]
}

/** Everything about an answer that is decided before the first byte is sent. */
export interface MessagePlan {
  readonly id: string
  readonly model: string
  readonly blocks: readonly ContentBlock[]
  readonly stopReason: string
  readonly stopSequence: string | null
  readonly cache: CacheCounts
  /** Searches that upstream has made. */
  readonly searches: number
  readonly outputTokens: number
  readonly thinkingTokens: number
  readonly speed: string
  readonly geo: string
  readonly tier: string
}

const stopReasons = {
  end: 'end_turn',
  length: 'max_tokens',
  'stop-sequence': 'stop_sequence',
  tool: 'tool_use',
} as const satisfies Record<Generated['finish'], string>

export function planMessage(call: Call, request: MessagesRequest): MessagePlan {
  const { identity, behaviours, memory } = call
  const { body, model, speed, geo } = request
  const cache = memory.promptCache.useMarked(model.snapshot, promptBlocks(body), identity.now().getTime())
  const announcesTools = request.toolWish.kind === 'auto'
  const written = generate({ ...request, ...lastUserTurn(body), behaviours, announcesTools })
  return {
    id: `msg_01${identity.base62(22)}`,
    model: behaviours.model ?? model.snapshot,
    blocks: toBlocks(call, written, body['thinking']),
    stopReason: stopReasons[written.finish],
    stopSequence: written.stopSequence,
    cache,
    searches: written.serverCalls.length,
    outputTokens: written.outputTokens,
    thinkingTokens: written.thinkingTokens,
    speed,
    geo,
    tier: behaviours.tier ?? 'standard',
  }
}

function toBlocks({ identity }: Call, written: Generated, thinking: unknown): ContentBlock[] {
  const blocks: ContentBlock[] = []
  if (written.thinking !== '') {
    const isHidden = isObject(thinking) && thinking['display'] === 'omitted'
    blocks.push(thinkingBlock(isHidden ? '' : written.thinking, identity.base62(128)))
  }
  for (const { tool, argumentsJson } of written.serverCalls) {
    const id = `srvtoolu_01${identity.base62(22)}`
    blocks.push(callBlock('server_tool_use', id, tool.name, argumentsJson))
    const page = { title: 'Simulator', url: 'https://simulator.example/', page_age: null }
    const found = { type: 'web_search_result', ...page, encrypted_content: identity.base62(64) }
    const caller = { type: 'direct' }
    const result = { type: 'web_search_tool_result', tool_use_id: id, caller, content: [found] }
    blocks.push({ whole: result, opening: result, deltas: [] })
  }
  if (written.text !== '') blocks.push(textBlock(written.text))
  for (const { tool, argumentsJson } of written.toolCalls) {
    blocks.push(callBlock('tool_use', `toolu_01${identity.base62(22)}`, tool.name, argumentsJson))
  }
  return blocks
}

function thinkingBlock(thinking: string, signature: string): ContentBlock {
  const words = splitIntoWords(thinking)
  return {
    whole: { type: 'thinking', thinking, signature },
    opening: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...words.map((text) => ({ delta: { type: 'thinking_delta', thinking: text }, text })),
      { delta: { type: 'signature_delta', signature }, text: '' },
    ],
  }
}

function textBlock(whole: string): ContentBlock {
  return {
    whole: { type: 'text', text: whole, citations: null },
    opening: { type: 'text', text: '', citations: null },
    deltas: splitIntoWords(whole).map((text) => ({ delta: { type: 'text_delta', text }, text })),
  }
}

function callBlock(type: string, id: string, name: string, argumentsJson: string): ContentBlock {
  const caller = { type: 'direct' }
  const pieces = ['', ...splitIntoPieces(argumentsJson)]
  return {
    // Arguments that the output limit cut are no JSON; a whole message shows them as empty.
    whole: { type, id, name, input: parseJson(argumentsJson) ?? {}, caller },
    opening: { type, id, name, input: {}, caller },
    deltas: pieces.map((text) => ({ delta: { type: 'input_json_delta', partial_json: text }, text })),
  }
}
