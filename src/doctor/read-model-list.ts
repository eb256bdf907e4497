const NAMES_MAX = 10_000
const NAME_CHARS_MAX = 200

/** The ids of a list of models, in the shape that both providers and most local servers give. Null: it is none. */
export function readModelList(body: Buffer): string[] | null {
  let json: unknown
  try {
    json = JSON.parse(body.toString('utf8'))
  } catch {
    return null
  }
  const data = memberOf(json, 'data')
  if (!Array.isArray(data)) return null
  const names = data.slice(0, NAMES_MAX).map((entry: unknown) => memberOf(entry, 'id'))
  const good = names.filter(
    (name) => typeof name === 'string' && name !== '' && name.length <= NAME_CHARS_MAX,
  )
  return [...new Set(good as string[])]
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}
