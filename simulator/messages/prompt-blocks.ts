import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import type { CacheLifetime, PromptBlock } from '../prompt-cache.ts'
import { countTokens } from '../text.ts'

/** Tokens that a turn costs beside its words. */
const tokensPerMessage = 4
/** Images and documents carry encoded bytes, which do not show how many tokens they are. */
const tokensPerAttachment = 1_500

/** The prompt in the order in which it is cached: tools, then system, then messages. */
export function promptBlocks(body: JsonObject): PromptBlock[] {
  const blocks: PromptBlock[] = []
  for (const tool of asArray(body['tools'])) blocks.push(toBlock(tool, 'tool', 0))
  for (const part of partsOf(body['system'])) blocks.push(toBlock(part, 'system', 0))
  for (const message of asArray(body['messages'])) {
    if (!isObject(message)) continue
    for (const [index, part] of partsOf(message['content']).entries()) {
      blocks.push(toBlock(part, asText(message['role']), index === 0 ? tokensPerMessage : 0))
    }
  }
  // A mark on the request itself stands for a mark on its last block.
  const last = blocks.at(-1)
  const whole = lifetimeOf(body['cache_control'])
  if (last !== undefined && whole !== null) blocks[blocks.length - 1] = { ...last, breakpoint: whole }
  return blocks
}

/** The text of the last user turn, and whether that turn brings a tool's result. */
export function lastUserTurn(body: JsonObject): { topic: string; isToolResult: boolean } {
  const turn = asArray(body['messages']).findLast((each) => isObject(each) && each['role'] === 'user')
  const parts = partsOf(isObject(turn) ? turn['content'] : undefined)
  return {
    topic: parts.map(textOf).filter(Boolean).join(' '),
    isToolResult: parts.some((part) => isObject(part) && part['type'] === 'tool_result'),
  }
}

function partsOf(content: unknown): readonly unknown[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : asArray(content)
}

function textOf(part: unknown): string {
  return isObject(part) && part['type'] === 'text' ? asText(part['text']) : ''
}

function toBlock(part: unknown, role: string, moreTokens: number): PromptBlock {
  const { cache_control: mark, ...rest } = isObject(part) ? part : ({} as JsonObject)
  return {
    text: () => `${role}:${JSON.stringify(rest)}`,
    tokens: countBlock(rest) + moreTokens,
    breakpoint: lifetimeOf(mark),
  }
}

function countBlock(block: JsonObject): number {
  const { source } = block
  const isEncoded = isObject(source) && source['type'] !== 'text' && source['type'] !== 'content'
  if (isEncoded) return tokensPerAttachment
  return countTokens(block['type'] === 'text' ? textOf(block) : JSON.stringify(block))
}

function lifetimeOf(mark: unknown): CacheLifetime | null {
  if (!isObject(mark)) return null
  return mark['ttl'] === '1h' ? '1h' : '5m'
}
