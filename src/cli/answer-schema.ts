/**
 * Reads the members of an answer that a command needs. The management API's own schemas would do, but zod takes 100 ms
 * to load, and a command that asks over HTTP needs nothing else of it.
 */
export type Schema<T> = (value: unknown) => T

export type Infer<S> = S extends Schema<infer T> ? T : never

/** The answer is not what a gateway of this version gives. */
export class WrongAnswer extends Error {}

export const string: Schema<string> = (value) => {
  if (typeof value !== 'string') throw new WrongAnswer()
  return value
}

export const boolean: Schema<boolean> = (value) => {
  if (typeof value !== 'boolean') throw new WrongAnswer()
  return value
}

export const nullable =
  <T>(schema: Schema<T>): Schema<T | null> =>
  (value) =>
    value === null ? null : schema(value)

export const optional =
  <T>(schema: Schema<T>): Schema<T | undefined> =>
  (value) =>
    value === undefined ? undefined : schema(value)

export const array =
  <T>(schema: Schema<T>): Schema<T[]> =>
  (value) => {
    if (!Array.isArray(value)) throw new WrongAnswer()
    return value.map(schema)
  }

export const object =
  <T extends object>(members: { readonly [K in keyof T]: Schema<T[K]> }): Schema<T> =>
  (value) => {
    if (typeof value !== 'object' || value === null) throw new WrongAnswer()
    const names = Object.keys(members) as (keyof T)[]
    const read = names.map((name) => [name, members[name]((value as Partial<T>)[name])])
    return Object.fromEntries(read) as T
  }

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/** JSON whose numbers stay the texts that they are, because a double cannot hold every nanodollar. */
export function parseExact(text: string): unknown {
  const revive: Reviver = (_, value, { source }) =>
    typeof value === 'number' ? (source ?? String(value)) : value
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown)
}
