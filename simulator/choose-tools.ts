import type { Behaviours } from './behaviours.ts'
import { Refusal } from './refusal.ts'

export interface ToolDefinition {
  readonly name: string
  /** How the tool's surface writes a call of the tool. */
  readonly kind: string
  /** The JSON schema of the tool's arguments; undefined for a tool that takes plain text. */
  readonly schema: unknown
  /** Whether upstream runs the tool by itself and then goes on. */
  readonly isServer?: boolean
}

export type ToolWish = { kind: 'auto' } | { kind: 'none' } | { kind: 'any' } | { kind: 'named'; name: string }

export interface ToolChoice {
  readonly behaviours: Behaviours
  /** The last thing the user said. */
  readonly topic: string
  readonly isToolResult: boolean
  readonly tools: readonly ToolDefinition[]
  readonly toolWish: ToolWish
  readonly parallelTools: boolean
}

/**
 * The tools the "model" calls: the tools that the user's last words name, or the first tool if the words ask for "a
 * tool"; when forced, the forced tool; instead of all these, the tools that the behaviour `call` names. A turn that
 * brings a tool's result is answered with words.
 */
export function chooseTools(request: ToolChoice): ToolDefinition[] {
  const { tools, toolWish: wish, topic, isToolResult, behaviours } = request
  if (behaviours.call !== undefined) {
    return isToolResult ? [] : behaviours.call.map((name) => requireTool(tools, name))
  }
  const [first] = tools
  if (first === undefined || wish.kind === 'none' || (wish.kind === 'auto' && isToolResult)) return []
  if (wish.kind === 'named') {
    return tools.filter(({ name, kind }) => name === wish.name || kind === wish.name).slice(0, 1)
  }
  const words = topic.toLowerCase()
  const named = tools.filter((tool) => mentions(words, tool.name.toLowerCase()))
  const wanted = named.length > 0 ? named : wish.kind === 'any' || /\btools?\b/.test(words) ? [first] : []
  return request.parallelTools ? wanted : wanted.slice(0, 1)
}

function requireTool(tools: readonly ToolDefinition[], name: string): ToolDefinition {
  const found = tools.find((tool) => tool.name === name || tool.kind === name)
  if (found !== undefined) return found
  throw new Refusal(400, `x-simulator: call names '${name}', which is no declared tool`)
}

/** `get_weather` is mentioned by its name, and by the word that matters in it, "weather". */
function mentions(words: string, name: string): boolean {
  const [, ...nouns] = name.split(/[^a-z\d]+/)
  return words.includes(name) || nouns.some((noun) => noun.length > 2 && words.includes(noun))
}
