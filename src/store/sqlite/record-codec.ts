import { compileLiteral } from '../compile-literal.ts'

/** A record as a list without the names of its members, for JSON. The first element names its kind. */
export type List = unknown[]

/** How a member crosses. JSON has no bigint and no bytes, so these are converted. `optional`: undefined, never null. */
type Wire<Value> =
  | ([Extract<Value, bigint | Uint8Array | undefined>] extends [never] ? 'plain' : never)
  | (undefined extends Value ? 'optional' : never)
  | { encode(value: Value): unknown; decode(value: never): Value }

interface Codec<Of> {
  encode(record: Of): List
  decode(list: List): Of
}

/** A member without a wire would be lost, so the compiler asks for each. */
export function codecOf<Of>(
  kind: string,
  wires: { readonly [Name in keyof Of]-?: Wire<Of[Name]> },
): Codec<Of> {
  const members = Object.entries<Wire<unknown>>(wires)
  const encoded = members.map(([name, wire], i) =>
    typeof wire === 'string' ? `from.${name}` : `functions[${i}].encode(from.${name})`,
  )
  const decoded = members.map(([name, wire], i) => {
    const value = `from[${i + 1}]`
    if (wire === 'optional') return `${name}: ${value} ?? undefined`
    return `${name}: ${wire === 'plain' ? value : `functions[${i}].decode(${value})`}`
  })
  const functions = Object.values(wires)
  return {
    encode: compileLiteral(`[${[JSON.stringify(kind), ...encoded].join(', ')}]`, functions),
    decode: compileLiteral(`{ ${decoded.join(', ')} }`, functions),
  }
}

/** Members of JSON values. */
export function plain<Name extends string>(names: readonly Name[]): Readonly<Record<Name, 'plain'>> {
  return Object.fromEntries(names.map((name) => [name, 'plain'])) as Record<Name, 'plain'>
}

export const AMOUNT = { encode: String, decode: (text: string): bigint => BigInt(text) }

export const BYTES = {
  encode: ({ buffer, byteOffset, length }: Uint8Array): string =>
    Buffer.from(buffer, byteOffset, length).toString('latin1'),
  decode: (text: string): Uint8Array => Buffer.from(text, 'latin1'),
}
