/** Differences between two OpenAPI documents that break a program written for the first. */

type Json = Readonly<Record<string, unknown>>
type Side = 'request' | 'answer'

const members = (value: unknown) => Object.entries((value ?? {}) as Record<string, Json>)

export function breakingChanges(before: Json, after: Json): string[] {
  const found: string[] = []
  const follow = (document: Json, value: unknown): Json => {
    const { $ref } = (value ?? {}) as { $ref?: string }
    if ($ref === undefined) return (value ?? {}) as Json
    const path = $ref.slice(2).split('/')
    return follow(
      document,
      path.reduce<unknown>((at, name) => (at as Json)[name], document),
    )
  }

  function compareSchemas(
    place: string,
    side: Side,
    old: unknown,
    now: unknown,
    seen: readonly unknown[] = [],
  ): void {
    const [was, is] = [follow(before, old), follow(after, now)]
    if (seen.includes(was)) return
    if (was['type'] !== undefined && is['type'] !== undefined && String(was['type']) !== String(is['type']))
      found.push(`${place}: was ${was['type']}, is ${is['type']}`)
    const [some, others] = [was['enum'], is['enum']].map((values) => (values ?? []) as unknown[])
    if (side === 'request' && some !== undefined && others !== undefined && others.length > 0)
      for (const value of some.filter((each) => !others.includes(each)))
        found.push(`${place}: ${value} is refused`)
    const [needed, needs] = [was['required'], is['required']].map((names) => (names ?? []) as string[])
    for (const name of side === 'request' ? (needs ?? []) : (needed ?? []))
      if (side === 'request' ? !needed?.includes(name) : !needs?.includes(name))
        found.push(`${place}.${name}: ${side === 'request' ? 'is now required' : 'may now be absent'}`)
    const properties = is['properties'] as Json | undefined
    for (const [name, schema] of members(was['properties']))
      if (properties?.[name] === undefined) found.push(`${place}.${name}: is gone`)
      else compareSchemas(`${place}.${name}`, side, schema, properties[name], [...seen, was])
    if (was['items'] !== undefined)
      compareSchemas(`${place}[]`, side, was['items'], is['items'], [...seen, was])
  }

  function compareContents(place: string, side: Side, old: unknown, now: unknown): void {
    const contents = follow(after, now)['content'] as Json | undefined
    for (const [type, { schema }] of members(follow(before, old)['content']))
      if (contents?.[type] === undefined) found.push(`${place} ${type}: is gone`)
      else compareSchemas(place, side, schema, (contents[type] as Json)['schema'])
  }

  for (const [path, operations] of members(before['paths']))
    for (const [method, was] of members(operations)) {
      const place = `${method.toUpperCase()} ${path}`
      const is = (after['paths'] as Record<string, Json>)[path]?.[method] as Json | undefined
      if (is === undefined) {
        found.push(`${place}: is gone`)
        continue
      }
      const parametersOf = (document: Json, operation: Json) =>
        new Map(
          ((operation['parameters'] ?? []) as Json[])
            .map((each) => follow(document, each))
            .map((each) => [each['name'], each]),
        )
      const [old, now] = [parametersOf(before, was), parametersOf(after, is)]
      for (const [name, { schema }] of old)
        if (now.has(name)) compareSchemas(`${place}?${name}`, 'request', schema, now.get(name)?.['schema'])
        else found.push(`${place}?${name}: is gone`)
      for (const [name, { required }] of now)
        if (required === true && old.get(name)?.['required'] !== true)
          found.push(`${place}?${name}: is now required`)
      compareContents(`${place} body`, 'request', was['requestBody'], is['requestBody'])
      const responses = is['responses'] as Json
      for (const [status, response] of members(was['responses']))
        if (responses[status] === undefined) found.push(`${place} ${status}: is gone`)
        else compareContents(`${place} ${status}`, 'answer', response, responses[status])
    }
  return found
}
