/**
 * Compiles a literal of our own that reads `from`, and may call `functions`. To set 32 members by computed names takes
 * 1.4 µs, a literal 0.06 µs, and each call is eight such records on its way to the database and back.
 */
export function compileLiteral<From, Made>(
  literal: string,
  functions: readonly unknown[] = [],
): (from: From) => Made {
  return new Function('functions', `return (from) => (${literal})`)(functions) as (from: From) => Made
}

/** Compiles the list of these members. */
export function compileList<Name extends string>(members: readonly Name[]) {
  const literal = `[${members.map((member) => `from.${member}`).join(', ')}]`
  return compileLiteral(literal) as <Value>(from: Readonly<Record<Name, Value>>) => Value[]
}
