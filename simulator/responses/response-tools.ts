import { missing, unplayedTool } from '../chat/chat-body.ts'
import type { ToolDefinition } from '../generate.ts'
import { asArray, asText, isObject, type JsonObject } from '../json.ts'

/** The arguments of a call that is always the same. */
function always(value: unknown): JsonObject {
  return { const: value }
}

const words = { type: 'object', properties: { query: { type: 'string' } } }

/** Tools that need no name, by type: the schema of a call's arguments, and whether upstream runs the tool itself. */
const builtIn: ReadonlyMap<string, { schema: JsonObject; isServer: boolean }> = new Map([
  ['local_shell', { schema: always(['ls', '-la']), isServer: false }],
  ['shell', { schema: always(['ls -la']), isServer: false }],
  [
    'apply_patch',
    {
      schema: always({ type: 'update_file', path: 'README.md', diff: '@@\n-A line\n+A better line\n' }),
      isServer: false,
    },
  ],
  ['computer', { schema: always({ type: 'screenshot' }), isServer: false }],
  ['computer_use_preview', { schema: always({ type: 'screenshot' }), isServer: false }],
  ['web_search', { schema: words, isServer: true }],
  ['web_search_preview', { schema: words, isServer: true }],
  ['file_search', { schema: words, isServer: true }],
  ['code_interpreter', { schema: always("print('Hello from the simulator.')"), isServer: true }],
  ['image_generation', { schema: words, isServer: true }],
])

/** Tools that coding agents declare, accepted and never called: `tool_search` only tells where other tools are found. */
const silent: readonly string[] = ['tool_search']
const played: readonly string[] = ['function', 'custom', 'namespace', ...builtIn.keys(), ...silent]

export function readTools(tools: unknown, at = 'tools'): ToolDefinition[] {
  return asArray(tools).flatMap((tool, index) => {
    if (!isObject(tool) || typeof tool['type'] !== 'string') throw missing(`${at}[${index}].type`)
    const place = `${at}[${index}]`
    // Some types are also known by the date of their version.
    const kind = tool['type'].replace(/_\d{4}_\d{2}_\d{2}$/, '')
    if (silent.includes(kind)) return []
    const found = builtIn.get(kind)
    if (found !== undefined) {
      const isServer = found.isServer || (kind === 'shell' && isInContainer(tool))
      return [{ name: tool['type'], kind, schema: found.schema, isServer }]
    }
    const name = asText(tool['name'])
    if (!played.includes(kind)) throw unplayedTool(`${place}.type`, tool['type'], played)
    if (name === '') throw missing(`${place}.name`)
    if (kind === 'namespace') return readTools(tool['tools'], `${place}.tools`)
    return [{ name, kind, schema: tool['parameters'], takesText: kind === 'custom' }]
  })
}

function isInContainer(tool: JsonObject): boolean {
  const environment = tool['environment']
  return isObject(environment) && asText(environment['type']).startsWith('container')
}
