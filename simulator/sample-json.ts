import { asArray, isObject, type JsonObject } from './json.ts'
import { schemaDepthMax } from './limits.ts'

/**
 * A value that fits a JSON schema, for tool arguments and structured answers. Strings take the last
 * capitalised word of the topic ("the weather in Paris" → "Paris").
 */
export function sampleFromSchema(schema: unknown, topic: string): unknown {
  const root = isObject(schema) ? schema : {}
  const word = topic
    .slice(0, 2_000)
    .match(/(?<=\S\s+)\p{Lu}[\p{L}\d-]+/gu)
    ?.at(-1)

  const sample = (node: unknown, name: string, depth: number): unknown => {
    // A schema may refer to itself.
    if (!isObject(node) || depth > schemaDepthMax) return null
    if (node['const'] !== undefined) return node['const']
    if (Array.isArray(node['enum'])) return node['enum'][0] ?? null
    if (typeof node['$ref'] === 'string') return sample(resolve(root, node['$ref']), name, depth + 1)
    const alternative = asArray(node['anyOf'])[0] ?? asArray(node['oneOf'])[0] ?? asArray(node['allOf'])[0]
    if (alternative !== undefined) return sample(alternative, name, depth + 1)
    const { type, minimum, properties } = node
    switch (Array.isArray(type) ? type[0] : type) {
      case 'string':
        return word ?? `a ${name}`
      case 'integer':
      case 'number':
        return typeof minimum === 'number' ? Math.ceil(minimum) : 1
      case 'boolean':
        return true
      case 'null':
        return null
      case 'array':
        return [sample(node['items'], name, depth + 1)]
      default: {
        const entries = isObject(properties) ? Object.entries(properties) : []
        return Object.fromEntries(entries.map(([key, part]) => [key, sample(part, key, depth + 1)]))
      }
    }
  }
  return sample(root, 'value', 0)
}

function resolve(root: JsonObject, reference: string): unknown {
  let at: unknown = root
  for (const step of reference.split('/').slice(1)) at = isObject(at) ? at[step] : undefined
  return at
}
