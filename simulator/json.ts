export type JsonObject = { [key: string]: unknown }

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isIntegerIn(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The value of a JSON text; undefined for a text that is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** `over` laid over `base`: objects member by member, everything else replaced, null included. */
export function mergeJson(base: JsonObject, over: JsonObject): JsonObject {
  const merged: JsonObject = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const before = merged[key]
    // defineProperty, because assigning to "__proto__" would set the prototype instead of a member.
    Object.defineProperty(merged, key, {
      value: isObject(before) && isObject(value) ? mergeJson(before, value) : value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  return merged
}
