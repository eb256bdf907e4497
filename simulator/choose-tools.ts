import type { ToolDefinition } from './generate.ts'
import { Refusal } from './refusal.ts'

export type ToolWish = { kind: 'auto' } | { kind: 'none' } | { kind: 'any' } | { kind: 'named'; name: string }

/**
 * The tools the "model" calls: the tools that the user's last words name, or the first tool if the words ask for "a
 * tool"; when forced, the forced tool; the tools that the behaviour `call` demands instead of all these. A turn that
 * brings a tool's result is answered with words.
 */
export function chooseTools(
  tools: readonly ToolDefinition[],
  wish: ToolWish,
  topic: string,
  isToolResult: boolean,
  parallel: boolean,
  demanded: readonly string[] | undefined,
): ToolDefinition[] {
  if (demanded !== undefined) return isToolResult ? [] : demanded.map((name) => requireTool(tools, name))
  const [first] = tools
  if (first === undefined || wish.kind === 'none') return []
  if (wish.kind === 'named') {
    return tools.filter(({ name, kind }) => name === wish.name || kind === wish.name).slice(0, 1)
  }
  const words = topic.toLowerCase()
  const named = tools.filter((tool) => mentions(words, tool.name))
  const wanted = named.length > 0 ? named : wish.kind === 'any' || /\btools?\b/.test(words) ? [first] : []
  if (wish.kind === 'auto' && isToolResult) return []
  return parallel ? wanted : wanted.slice(0, 1)
}

function requireTool(tools: readonly ToolDefinition[], name: string): ToolDefinition {
  const found = tools.find((tool) => tool.name === name) ?? tools.find((tool) => tool.kind === name)
  if (found === undefined)
    throw new Refusal(400, `x-simulator: call names '${name}', which is no declared tool`)
  return found
}

const verbs: ReadonlySet<string> = new Set(
  'get set list find search fetch look lookup up do run make create read write call use tool the a'.split(
    ' ',
  ),
)

/** `get_weather` is mentioned by its name, by "get weather", and by the word that matters in it, "weather". */
function mentions(words: string, name: string): boolean {
  const parts = name
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
  if (words.includes(name.toLowerCase()) || words.includes(parts.join(' '))) return true
  const spoken = new Set(words.split(/[^a-z\d]+/))
  return parts.some((part) => part.length > 2 && !verbs.has(part) && spoken.has(part))
}
