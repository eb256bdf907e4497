import { asArray, asText, isObject, type JsonObject } from './json.ts'
import { schemaDepthMax, schemaNodesMax } from './limits.ts'

interface Schema {
  type?: unknown
  enum?: unknown
  const?: unknown
  default?: unknown
  properties?: unknown
  items?: unknown
  minItems?: unknown
  minimum?: unknown
  anyOf?: unknown
  oneOf?: unknown
  allOf?: unknown
  $ref?: unknown
}

/**
 * A value that fits a JSON schema, for tool arguments and structured answers. Strings take the last
 * capitalised word of the topic ("the weather in Paris" → "Paris"), so that the result reads naturally.
 */
export function sampleFromSchema(schema: unknown, topic: string): unknown {
  const root = isObject(schema) ? schema : {}
  let nodes = 0

  const sample = (part: unknown, name: string, depth: number): unknown => {
    nodes += 1
    // A schema may refer to itself; a bounded sample ends where a real model would have ended too.
    if (!isObject(part) || depth > schemaDepthMax || nodes > schemaNodesMax) return null
    const node: Schema = part
    if (node.const !== undefined) return node.const
    if (Array.isArray(node.enum)) return node.enum[0] ?? null
    if (node.default !== undefined) return node.default
    if (typeof node.$ref === 'string') return sample(resolve(root, node.$ref), name, depth + 1)
    const alternative = asArray(node.anyOf)[0] ?? asArray(node.oneOf)[0] ?? asArray(node.allOf)[0]
    if (alternative !== undefined) return sample(alternative, name, depth + 1)
    switch (Array.isArray(node.type) ? node.type[0] : node.type) {
      case 'string':
        return nameOf(topic) ?? `a ${name}`
      case 'integer':
      case 'number':
        return typeof node.minimum === 'number' ? Math.ceil(node.minimum) : 1
      case 'boolean':
        return true
      case 'null':
        return null
      case 'array': {
        const count = typeof node.minItems === 'number' ? Math.min(node.minItems, 8) : 1
        return Array.from({ length: count }, () => sample(node.items, name, depth + 1))
      }
      default:
        return sampleObject(node.properties, depth)
    }
  }

  const sampleObject = (properties: unknown, depth: number): JsonObject => {
    const entries = isObject(properties) ? Object.entries(properties) : []
    return Object.fromEntries(entries.map(([name, part]) => [name, sample(part, name, depth + 1)]))
  }

  return sample(root, 'value', 0)
}

function resolve(root: JsonObject, reference: string): unknown {
  let at: unknown = root
  for (const step of reference.replace(/^#\/?/, '').split('/').filter(Boolean)) {
    at = isObject(at) ? at[step.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined
  }
  return at
}

function nameOf(topic: string): string | undefined {
  const words = asText(topic)
    .slice(0, 2_000)
    .match(/(?<=\S\s+)\p{Lu}[\p{L}\d-]+/gu)
  return words?.at(-1)
}
