import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import type { CacheLifetime, PromptBlock } from '../prompt-cache.ts'
import { Refusal } from '../refusal.ts'
import { countTokens } from '../tokens.ts'
import type { MessagesBody } from './validate-messages.ts'

/** Tokens that a turn costs beside its words. */
const tokensPerMessage = 4
/** Images and documents carry encoded bytes, which do not tell how many tokens they are. */
const tokensPerAttachment = 1_500
const breakpointsMax = 4

/** The prompt in the order in which it is cached: tools, then system, then messages. */
export function promptBlocks(body: MessagesBody): PromptBlock[] {
  const blocks: PromptBlock[] = []
  for (const tool of asArray(body.tools)) blocks.push(toBlock(tool, 'tool'))
  for (const part of parts(body.system)) blocks.push(toBlock(part, 'system'))
  for (const message of asArray(body.messages)) {
    if (!isObject(message)) continue
    const { role, content } = message as { role?: unknown; content?: unknown }
    for (const [index, part] of parts(content).entries()) {
      const block = toBlock(part, asText(role))
      blocks.push(index === 0 ? { ...block, tokens: block.tokens + tokensPerMessage } : block)
    }
  }
  const marked = blocks.filter((block) => block.breakpoint !== null).length
  if (marked > breakpointsMax) {
    throw new Refusal(
      400,
      `A maximum of ${breakpointsMax} blocks with cache_control may be provided. Found ${marked}.`,
    )
  }
  // A mark on the request itself stands for a mark on its last block.
  const last = blocks.at(-1)
  const whole = lifetimeOf(body.cache_control)
  if (last !== undefined && whole !== null) blocks[blocks.length - 1] = { ...last, breakpoint: whole }
  return blocks
}

export function countPromptTokens(body: MessagesBody): number {
  return promptBlocks(body).reduce((sum, block) => sum + block.tokens, 0)
}

/** The text of the last user turn, and whether that turn brings a tool's result. */
export function lastUserTurn(body: MessagesBody): { topic: string; isToolResult: boolean } {
  const message = asArray(body.messages).findLast((turn) => isObject(turn) && turn['role'] === 'user')
  const content = parts(isObject(message) ? message['content'] : undefined)
  return {
    topic: content.map(textOf).filter(Boolean).join(' '),
    isToolResult: content.some((part) => isObject(part) && part['type'] === 'tool_result'),
  }
}

function parts(content: unknown): readonly unknown[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : asArray(content)
}

function textOf(part: unknown): string {
  return isObject(part) && part['type'] === 'text' ? asText(part['text']) : ''
}

function toBlock(part: unknown, place: string): PromptBlock {
  if (!isObject(part)) return { text: () => `${place}:${JSON.stringify(part)}`, tokens: 1, breakpoint: null }
  const { cache_control: mark, ...rest } = part as JsonObject & { cache_control?: unknown }
  return {
    text: () => `${place}:${JSON.stringify(rest)}`,
    tokens: countBlock(rest),
    breakpoint: lifetimeOf(mark),
  }
}

function countBlock(block: JsonObject): number {
  const source = block['source']
  const isEncoded = isObject(source) && source['type'] !== 'text' && source['type'] !== 'content'
  if (isEncoded) return tokensPerAttachment
  return countTokens(block['type'] === 'text' ? textOf(block) : JSON.stringify(block))
}

function lifetimeOf(mark: unknown): CacheLifetime | null {
  if (!isObject(mark)) return null
  return mark['ttl'] === '1h' ? '1h' : '5m'
}
