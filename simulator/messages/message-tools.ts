import type { ToolCall, ToolDefinition } from '../generate.ts'
import type { Identity } from '../identity.ts'
import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import { Refusal } from '../refusal.ts'

/** The arguments of a tool of a dated type, and whether upstream runs the tool itself. */
interface Played {
  readonly schema: JsonObject
  readonly isServer: boolean
  /** The name under which the tool is called; otherwise the name that it was declared with. */
  readonly name?: string
}

const query = { type: 'object', properties: { query: { type: 'string' } } }
const screenshot: Played = { schema: { const: {} }, isServer: false, name: 'screenshot' }

const played: ReadonlyMap<string, Played> = new Map([
  ['bash', { schema: { const: { command: 'ls -la' } }, isServer: false }],
  ['text_editor', { schema: { const: { command: 'view', path: '/repo/README.md' } }, isServer: false }],
  ['memory', { schema: { const: { command: 'view', path: '/memories' } }, isServer: false }],
  ['computer', { schema: { const: { action: 'screenshot' } }, isServer: false }],
  ['computer_toolset', screenshot],
  ['browser_toolset', screenshot],
  ['web_search', { schema: query, isServer: true }],
  ['web_fetch', { schema: { const: { url: 'https://simulator.example/' } }, isServer: true }],
  ['code_execution', { schema: { const: { command: 'ls' } }, isServer: true, name: 'bash_code_execution' }],
  ['tool_search_tool_regex', { schema: query, isServer: true }],
  ['tool_search_tool_bm25', { schema: query, isServer: true }],
])

/** Tools with a schema of their own, and tools that upstream knows by a type with a date in it. */
export function readTools(tools: unknown): ToolDefinition[] {
  return asArray(tools).map((tool, index) => {
    if (!isObject(tool)) throw new Refusal(400, `tools.${index}: Input should be a valid dictionary`)
    const type = asText(tool['type'] ?? 'custom')
    const kind = type.replace(/_\d{8}$/, '')
    const known = played.get(kind)
    if (known === undefined && kind !== 'custom') throw unplayed(index, type)
    const name = known?.name ?? tool['name']
    if (typeof name !== 'string') throw new Refusal(400, `tools.${index}.name: Field required`)
    return { name, kind, schema: known?.schema ?? tool['input_schema'], isServer: known?.isServer ?? false }
  })
}

function unplayed(index: number, type: string): Refusal {
  const names = ['custom', ...played.keys()].join(', ')
  return new Refusal(
    400,
    `tools.${index}.type: This is the simulator: it does not play '${type}'. It plays ${names}, of any date.`,
  )
}

/** Tokens of the result that a tool which upstream runs gives the model to read. */
export const tokensPerToolResult = 400

/** The block with the result of a tool that upstream has run. */
export function resultBlock({ tool }: ToolCall, useId: string, identity: Identity): JsonObject {
  const url = 'https://simulator.example/'
  const result = { tool_use_id: useId, caller: { type: 'direct' } }
  switch (tool.kind) {
    case 'web_search': {
      const page = { type: 'web_search_result', title: 'Simulator', url, page_age: null }
      const content = [{ ...page, encrypted_content: identity.base62(64) }]
      return { type: 'web_search_tool_result', ...result, content }
    }
    case 'web_fetch': {
      const source = { type: 'text', media_type: 'text/plain', data: 'A page of the simulator.' }
      const document = { type: 'document', source, title: 'Simulator', citations: null }
      const content = { type: 'web_fetch_result', url, retrieved_at: null, content: document }
      return { type: 'web_fetch_tool_result', ...result, content }
    }
    case 'code_execution': {
      const ran = { stdout: 'README.md\n', stderr: '', return_code: 0, content: [] }
      const content = { type: 'bash_code_execution_result', ...ran }
      return { type: 'bash_code_execution_tool_result', tool_use_id: useId, content }
    }
    default: {
      const content = { type: 'tool_search_tool_search_result', tool_references: [] }
      return { type: 'tool_search_tool_result', tool_use_id: useId, content }
    }
  }
}
