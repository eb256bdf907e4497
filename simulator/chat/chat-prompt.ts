import type { Call } from '../call.ts'
import { asText, isObject } from '../json.ts'
import type { Model } from '../models.ts'
import { countTokens } from '../text.ts'
import { textOfParts } from './read-fields.ts'

const tokensPerMessage = 4
/** Pictures, audio and files carry encoded bytes, which do not show how many tokens they are. */
const tokensPerAttachment = 850

export interface ChatPrompt {
  /** Everything the model reads, in the order in which a cached prefix grows. */
  readonly text: string
  readonly tokens: number
  /** The last thing the user said. */
  readonly topic: string
  readonly isToolResult: boolean
}

/** Reads messages of the Chat endpoint, or input items of Responses: both are turns with parts. */
export function readPrompt(turns: readonly unknown[], tools: readonly unknown[], system = ''): ChatPrompt {
  let text = tools.length === 0 ? system : `${JSON.stringify(tools)}${system}`
  let tokens = countTokens(text)
  let topic = ''
  for (const turn of turns) {
    if (!isObject(turn)) continue
    const { words, attachments } = textOfParts(turn['content'])
    const rest = JSON.stringify({ ...turn, content: undefined })
    text += `${rest}${words}`
    tokens += tokensPerMessage + countTokens(words) + attachments * tokensPerAttachment
    // Calls and results of tools have their text in other members than `content`.
    if (turn['content'] === undefined || turn['tool_calls'] !== undefined) tokens += countTokens(rest)
    if (turn['role'] === 'user' && words !== '') topic = words
  }
  return { text, tokens, topic, isToolResult: isToolResult(turns.at(-1)) }
}

function isToolResult(turn: unknown): boolean {
  if (!isObject(turn)) return false
  return turn['role'] === 'tool' || asText(turn['type']).endsWith('_call_output')
}

/** Tokens of the prompt that come from the cache, and that are written to it. */
export function readCache(
  call: Call,
  model: Model,
  prompt: ChatPrompt,
): { cached_tokens: number; cache_write_tokens: number } {
  const nowMs = call.identity.now().getTime()
  const { read, written } = call.memory.promptCache.useAutomatic(model.snapshot, prompt.text, nowMs)
  const cached = Math.min(read, prompt.tokens)
  // Cache writes are reported since the 5.6 family, with which they began to cost.
  const isReported = /^gpt-(5\.6|6)/.test(model.id)
  return {
    cached_tokens: cached,
    cache_write_tokens: isReported ? Math.min(written, prompt.tokens - cached) : 0,
  }
}
