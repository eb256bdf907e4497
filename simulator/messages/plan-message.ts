import type { Call } from '../call.ts'
import { chooseTools } from '../choose-tools.ts'
import { type Generated, generate } from '../generate.ts'
import type { JsonObject } from '../json.ts'
import type { CacheCounts } from '../prompt-cache.ts'
import { lastUserTurn, promptBlocks } from './prompt-blocks.ts'
import type { MessagesRequest } from './validate-messages.ts'

export type ContentBlock =
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'text'; text: string }
  | { type: 'tool_use'; id: string; name: string; argumentsJson: string }

/** Everything about an answer that is decided before the first byte is sent. */
export interface MessagePlan {
  readonly id: string
  readonly model: string
  readonly blocks: readonly ContentBlock[]
  readonly stopReason: string
  readonly stopSequence: string | null
  readonly stopDetails: JsonObject | null
  readonly cache: CacheCounts
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
  refusal: 'refusal',
} as const satisfies Record<Generated['finish'], string>

export function planMessage(call: Call, request: MessagesRequest): MessagePlan {
  const { identity, behaviours, memory } = call
  const { body, model, thinking } = request
  const cache = memory.promptCache.useMarked(model.snapshot, promptBlocks(body), identity.now().getTime())
  const turn = lastUserTurn(body)
  const written = generate({
    topic: turn.topic,
    variant: model.snapshot,
    tokensWanted: behaviours.tokens,
    outputTokensMax: request.outputTokensMax,
    thinkingTokens: thinking.kind === 'on' ? thinking.tokens : 0,
    stopSequences: request.stopSequences,
    schema: request.schema,
    tools: chooseTools(request.tools, request.toolWish, turn.topic, turn.isToolResult, request.parallelTools),
    saysWhyBeforeTools: request.toolWish.kind === 'auto',
    refuses: behaviours.refusal === true,
  })
  return {
    id: `msg_01${identity.base62(22)}`,
    model: behaviours.model ?? model.snapshot,
    blocks: toBlocks(call, written, thinking.kind === 'on' && thinking.isShown),
    stopReason: stopReasons[written.finish],
    stopSequence: written.stopSequence,
    stopDetails:
      written.finish === 'refusal'
        ? { type: 'refusal', category: null, explanation: 'The simulator was asked to refuse.' }
        : null,
    cache,
    outputTokens: written.outputTokens,
    thinkingTokens: written.thinkingTokens,
    speed: behaviours.speed ?? request.speed,
    geo: behaviours.geo ?? request.geo,
    tier: behaviours.tier ?? 'standard',
  }
}

function toBlocks(call: Call, written: Generated, isThinkingShown: boolean): ContentBlock[] {
  const blocks: ContentBlock[] = []
  if (written.thinking !== '') {
    const signature = Buffer.from(call.identity.hex(96), 'hex').toString('base64')
    blocks.push({ type: 'thinking', thinking: isThinkingShown ? written.thinking : '', signature })
  }
  if (written.text !== '') blocks.push({ type: 'text', text: written.text })
  for (const tool of written.toolCalls) {
    blocks.push({ type: 'tool_use', id: `toolu_01${call.identity.base62(22)}`, ...tool })
  }
  return blocks
}
