import { asArray, asText, isObject } from '../json.ts'
import { countTokens } from '../tokens.ts'

const tokensPerMessage = 4
/** Pictures, audio and files carry encoded bytes, which do not tell how many tokens they are. */
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
    const { words, attachments } = readContent(turn['content'])
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
  const { role } = turn
  return role === 'tool' || role === 'function' || asText(turn['type']).endsWith('_call_output')
}

function readContent(content: unknown): { words: string; attachments: number } {
  if (typeof content === 'string') return { words: content, attachments: 0 }
  const words: string[] = []
  let attachments = 0
  for (const part of asArray(content)) {
    const text = isObject(part) ? part['text'] : undefined
    if (typeof text === 'string') words.push(text)
    else attachments += 1
  }
  return { words: words.join(' '), attachments }
}
