import type { Call } from '../call.ts'
import { chooseTools } from '../choose-tools.ts'
import { type Generated, generate } from '../generate.ts'
import type { Identity } from '../identity.ts'
import type { JsonObject } from '../json.ts'
import type { CacheCounts } from '../prompt-cache.ts'
import { resultBlock } from './message-tools.ts'
import { lastUserTurn, promptBlocks } from './prompt-blocks.ts'
import type { MessagesRequest } from './validate-messages.ts'

export type ContentBlock =
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'text'; text: string }
  | { type: 'tool_use'; id: string; name: string; toolset: string | null; argumentsJson: string }
  | { type: 'server_tool_use'; id: string; name: string; argumentsJson: string }
  | { type: 'server_tool_result'; block: JsonObject }

/** Everything about an answer that is decided before the first byte is sent. */
export interface MessagePlan {
  readonly id: string
  readonly model: string
  readonly blocks: readonly ContentBlock[]
  readonly stopReason: string
  readonly stopSequence: string | null
  readonly stopDetails: JsonObject | null
  readonly cache: CacheCounts
  /** Tools that upstream has run, by kind. */
  readonly serverTools: readonly string[]
  /** The container in which code was run. */
  readonly container: JsonObject | null
  readonly outputTokens: number
  readonly thinkingTokens: number
  readonly speed: string
  readonly geo: string
  readonly tier: string
}

const containerMs = 300_000

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
    tools: chooseTools(
      request.tools,
      request.toolWish,
      turn.topic,
      turn.isToolResult,
      request.parallelTools,
      behaviours.call,
    ),
    saysWhyBeforeTools: request.toolWish.kind === 'auto',
    refuses: behaviours.refusal === true,
  })
  const serverTools = written.serverCalls.map(({ tool }) => tool.kind)
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
    serverTools,
    container: serverTools.includes('code_execution') ? containerJson(identity) : null,
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
  for (const tool of written.serverCalls) {
    const id = `srvtoolu_01${call.identity.base62(22)}`
    blocks.push({ type: 'server_tool_use', id, name: tool.tool.name, argumentsJson: tool.argumentsJson })
    blocks.push({ type: 'server_tool_result', block: resultBlock(tool, id, call.identity) })
  }
  if (written.text !== '') blocks.push({ type: 'text', text: written.text })
  for (const { tool, argumentsJson } of written.toolCalls) {
    const id = `toolu_01${call.identity.base62(22)}`
    const toolset = /^(\w+)_toolset$/.exec(tool.kind)?.[1] ?? null
    blocks.push({ type: 'tool_use', id, name: tool.name, toolset, argumentsJson })
  }
  return blocks
}

function containerJson(identity: Identity): JsonObject {
  const expiresAt = new Date(identity.now().getTime() + containerMs).toISOString()
  return { id: `container_01${identity.base62(22)}`, expires_at: expiresAt, skills: null }
}
