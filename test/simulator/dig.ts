import assert from 'node:assert/strict'

/** The member of a parsed JSON value at a path such as `choices.0.message.content`; undefined if absent. */
export function dig(value: unknown, path: string): unknown {
  let at = value
  for (const step of path.split('.')) {
    if (typeof at !== 'object' || at === null) return undefined
    at = Object.hasOwn(at, step) ? Reflect.get(at, step) : undefined
  }
  return at
}

export function digNumber(value: unknown, path: string): number {
  const found = dig(value, path)
  assert.ok(typeof found === 'number', `${path} is a number, not ${JSON.stringify(found)}`)
  return found
}

export function digText(value: unknown, path: string): string {
  const found = dig(value, path)
  assert.ok(typeof found === 'string', `${path} is a string, not ${JSON.stringify(found)}`)
  return found
}

export function digList(value: unknown, path: string): readonly unknown[] {
  const found = dig(value, path)
  assert.ok(Array.isArray(found), `${path} is a list, not ${JSON.stringify(found)}`)
  return found
}
