import {
  arrayOf,
  objectOf,
  type Picked,
  type Place,
  SCALAR,
  sparseArrayOf,
  streamOf,
  TEXT,
  UNREAD,
} from '../../src/metering/json-place.ts'

/** A specification of the members to pick, written apart from the code under test. */
export type Spec =
  | 'text'
  | 'scalar'
  | { readonly members?: Readonly<Record<string, Spec>>; readonly list?: ListSpec }
export type ListSpec = readonly [kind: 'kept' | 'streamed' | 'sparse', elements: Spec]

export function placeOf(spec: Spec): Place {
  if (spec === 'text') return TEXT
  if (spec === 'scalar') return SCALAR
  const { members, list } = spec
  const inner = members === undefined ? {} : mapValues(members, placeOf)
  const asObject = members === undefined ? TEXT : objectOf(inner)
  if (list === undefined) return asObject
  const [kind, elements] = list
  const make = { kept: arrayOf, streamed: streamOf, sparse: sparseArrayOf }[kind]
  return { ...make(placeOf(elements)), members: asObject.members }
}

function mapValues<A, B>(from: Readonly<Record<string, A>>, map: (a: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, map(value)]))
}

/** A JSON value in which objects are lists of members, so that members that are given twice are there twice. */
type Parsed =
  | { readonly members: readonly (readonly [string, Parsed])[] }
  | readonly Parsed[]
  | string
  | null
  | number
  | boolean

/** Parses a text that JSON.parse accepts. */
export function parseAll(text: string): Parsed {
  let i = 0
  const token = (pattern: RegExp): string => {
    pattern.lastIndex = i
    const [found] = pattern.exec(text) ?? []
    if (found === undefined) throw new Error(`unexpected at ${i}`)
    i += found.length
    return found
  }
  const space = () => token(/[ \t\n\r]*/y)
  const string = () => JSON.parse(token(/"(?:[^"\\]|\\.)*"/y)) as string
  function listOf<T>(end: string, item: () => T): T[] {
    const items: T[] = []
    i++
    space()
    while (text[i] !== end) {
      items.push(item())
      space()
      if (text[i] === ',') i++
      space()
    }
    i++
    return items
  }
  function value(): Parsed {
    space()
    if (text[i] === '"') return string()
    if (text[i] === '[') return listOf(']', value)
    if (text[i] !== '{') return JSON.parse(token(/[^\s,\]}]+/y)) as Parsed
    const member = (): readonly [string, Parsed] => {
      const name = string()
      space()
      i++
      return [name, value()]
    }
    return { members: listOf('}', member) }
  }
  return value()
}

export interface Expected {
  readonly value: Picked
  readonly duplicates: readonly string[]
  readonly streamed: readonly Picked[]
  readonly ambiguous: boolean
}

/** A tolerant walker takes the last of members that are given twice, and no name for another. */
export function expectedPick(parsed: Parsed, spec: Spec, tolerant = false): Expected {
  const duplicates = new Set<string>()
  const streamed: Picked[] = []
  let ambiguous = false
  function pick(at: Parsed, what: Spec, path: string): Picked {
    if (typeof at === 'string' || at === null) return at
    if (typeof at !== 'object') return what === 'scalar' ? at : UNREAD
    if (what === 'text' || what === 'scalar') return UNREAD
    if ('members' in at) {
      if (what.members === undefined) return UNREAD
      const found: Record<string, Picked> = {}
      for (const [name, inner] of at.members) {
        const wanted = Object.hasOwn(what.members, name) ? what.members[name] : undefined
        const here = path === '' ? name : `${path}.${name}`
        if (wanted === undefined) ambiguous ||= !tolerant && confusable(name, Object.keys(what.members))
        else {
          if (Object.hasOwn(found, name)) duplicates.add(here)
          if (tolerant || !Object.hasOwn(found, name)) found[name] = pick(inner, wanted, here)
        }
      }
      return found
    }
    if (what.list === undefined) return UNREAD
    const [kind, elements] = what.list
    const all = at.map((element) => pick(element, elements, `${path}[]`))
    if (kind === 'streamed') streamed.push(...all)
    if (kind === 'sparse') return all.filter((element) => isFilled(element))
    return kind === 'streamed' ? [] : all
  }
  const value = pick(parsed, spec, '')
  return { value, duplicates: [...duplicates], streamed, ambiguous }
}

function isFilled(element: Picked): boolean {
  const isObject = typeof element === 'object' && element !== null && !Array.isArray(element)
  return isObject && Object.keys(element).length > 0
}

function confusable(name: string, watched: readonly string[]): boolean {
  if (name.includes('\0') || /[\ud800-\udfff]/u.test(name)) return true
  return watched.some((w) => new RegExp(`^${w}$`, 'iu').test(name) || w.toUpperCase() === name.toUpperCase())
}
