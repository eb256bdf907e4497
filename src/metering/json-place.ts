/** The answer for a name that is not watched, but that a server may read as a watched name. */
export const AMBIGUOUS: unique symbol = Symbol('ambiguous')

const BACKSLASH = 0x5c
/** The bit in which an ASCII letter differs from the same one in the other case. */
const CASE_BIT = 0x20

interface Watched<Name> {
  readonly name: Name
  readonly bytes: Buffer
}

/**
 * The names a scanner looks for, and the names that some servers would take for one of them: Go's encoding/json and
 * .NET's web defaults ignore letter case (Go even takes U+017F for `s` and U+212A for `k`), parsers in C end a name
 * at U+0000, and a lone surrogate is kept, replaced or dropped depending on the parser.
 */
export class WatchedNames<Name extends string> {
  readonly #exact = new Map<string, Name>()
  readonly #folded = new Set<string>()
  /** By their length in bytes. */
  readonly #byLength = new Map<number, Watched<Name>[]>()

  constructor(names: Iterable<Name>) {
    for (const name of names) {
      this.#exact.set(name, name)
      this.#folded.add(fold(name))
      const bytes = Buffer.from(name)
      this.#byLength.set(bytes.length, [...(this.#byLength.get(bytes.length) ?? []), { name, bytes }])
    }
  }

  find(name: string): Name | undefined {
    return this.#exact.get(name)
  }

  /** True for a name that is not watched, but that a server may read as a watched name. */
  isAmbiguous(name: string): boolean {
    if (this.#exact.has(name)) return false
    return name.includes('\0') || !name.isWellFormed() || this.#folded.has(fold(name))
  }

  /**
   * The watched name that stands between the quotes, as it is written, or null. Nearly every name is told apart by its
   * bytes, without making a string of it: a name that some parser could take for a watched name has as many bytes and the
   * same letters, or it has other than ASCII characters, or escapes. The grammar has refused control characters before.
   */
  read(bytes: Buffer, from: number, to: number): Name | null | typeof AMBIGUOUS {
    const candidates = this.#byLength.get(to - from)
    let seemsWatched = false
    for (let k = 0; candidates !== undefined && k < candidates.length; k++) {
      const candidate = candidates[k] as Watched<Name>
      const likeness = compare(candidate.bytes, bytes, from)
      if (likeness === 'same') return candidate.name
      seemsWatched ||= likeness === 'similar'
    }
    if (!seemsWatched && isPlain(bytes, from, to)) return null
    return this.readText(bytes.toString('utf8', from, to))
  }

  /** Does what `read` does, for a name that is at hand as text with its escapes. */
  readText(text: string): Name | null | typeof AMBIGUOUS {
    const name = text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
    return this.isAmbiguous(name) ? AMBIGUOUS : (this.find(name) ?? null)
  }
}

/** Upper case comes first, because it folds the letters that are their own lower case, such as U+017F. */
function fold(name: string): string {
  return name.toUpperCase().toLowerCase()
}

function compare(name: Buffer, bytes: Buffer, from: number): 'same' | 'similar' | 'other' {
  let differences = 0
  for (let i = 0; i < name.length; i++) {
    differences |= (name[i] as number) ^ (bytes[from + i] as number)
    if ((differences & ~CASE_BIT) !== 0) return 'other'
  }
  return differences === 0 ? 'same' : 'similar'
}

function isPlain(bytes: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number
    if (byte >= 0x80 || byte === BACKSLASH) return false
  }
  return true
}

/** A value is there that was not read: no selector reads it, it is too long, or it is a container that is not looked into. */
export const UNREAD: unique symbol = Symbol('unread')

/** No escape has more characters. */
const ESCAPE_CHARS_MAX = 6

/**
 * A string, without its quotes, or an object as it is written, maybe cut off. The text is parsed when it is asked
 * for: a model's output is long, and hardly ever asked for.
 */
export class Written {
  readonly #json: string
  readonly #type: 'string' | 'object'

  constructor(json: string, type: 'string' | 'object') {
    this.#json = json
    this.#type = type
  }

  /** The string without its escapes, or the object without blanks; an object that was cut off is given as it is written. */
  get text(): string {
    const json = this.#json
    if (this.#type === 'object') return parsed(json, (value) => JSON.stringify(value)) ?? json
    // The end of a string that was cut off may be half an escape.
    for (let cut = 0; cut < ESCAPE_CHARS_MAX; cut++) {
      const text = parsed(`"${json.slice(0, json.length - cut)}"`, String)
      if (text !== null) return text
    }
    return json
  }
}

function parsed(json: string, make: (value: unknown) => string): string | null {
  try {
    return make(JSON.parse(json))
  } catch {
    return null
  }
}

/** The value found at a place; an object or array has only the members and elements that are looked at. */
export type Picked =
  | string
  | number
  | boolean
  | null
  | typeof UNREAD
  | Written
  | PickedObject
  | readonly Picked[]

export interface PickedObject {
  readonly [name: string]: Picked
}

/**
 * - `nothing`: only whether the value is null.
 * - `text`: a string.
 * - `scalar`: a string, a number or a boolean.
 * - `output`: a string that a model wrote; a long string is cut off where the room ends.
 * - `written`: an object as it is written, within the same room.
 * - `bytes`: no value. The bytes of whatever stands at the place are handed over as they pass.
 */
type Reads = 'nothing' | 'text' | 'scalar' | 'output' | 'written' | 'bytes'

/** A place in a JSON text, and the places to be read in an object or an array that stands there. */
export interface Place {
  readonly members: PlaceMembers | null
  readonly elements: Place | null
  /** Each element is handed over as it ends, and not kept. */
  readonly streams: boolean
  /** Only elements are kept that are objects with one of the members that are looked at. */
  readonly sparse: boolean
  /** How a value is read that is not looked into. */
  readonly reads: Reads
}

/** A place where only a string can be read. */
export const TEXT: Place = { members: null, elements: null, streams: false, sparse: false, reads: 'text' }

/** A place of which is only read whether anything but null stands there. */
export const PRESENCE: Place = { ...TEXT, reads: 'nothing' }
export const SCALAR: Place = { ...TEXT, reads: 'scalar' }
export const OUTPUT: Place = { ...TEXT, reads: 'output' }
export const WRITTEN: Place = { ...TEXT, reads: 'written' }

export function objectOf(members: Readonly<Record<string, Place>>): Place {
  return { ...TEXT, members: new PlaceMembers(new Map(Object.entries(members))) }
}

/** Members of an object that are scalars, by their names with blanks between them. */
export function scalars(names: string): Record<string, Place> {
  return Object.fromEntries(names.split(' ').map((name) => [name, SCALAR]))
}

export function arrayOf(elements: Place): Place {
  return { ...TEXT, elements }
}

/** An array of any length whose elements are handed over one by one. */
export function streamOf(elements: Place): Place {
  return { ...TEXT, elements, streams: true }
}

export function sparseArrayOf(elements: Place): Place {
  return { ...TEXT, elements, sparse: true }
}

/** The bytes of the value at the place are handed over as they pass, whether the value is looked into or not. */
export function handedOver(place: Place): Place {
  return { ...place, reads: 'bytes' }
}

/** An object whose named members are captured as they are written: with their spans, and not looked into. */
export function capturing(names: Iterable<string>): Place {
  return { ...TEXT, members: new PlaceMembers(new Map(Array.from(names, (name) => [name, null]))) }
}

export interface FoundMember {
  readonly name: string
  readonly bytes: Buffer
  /** Null for a member that is captured as it is written. */
  readonly place: Place | null
}

/** The members of an object that are looked at. */
export class PlaceMembers {
  readonly #names: WatchedNames<string>
  readonly #found = new Map<string, FoundMember>()
  /** By their length in bytes. */
  readonly #byLength: (readonly FoundMember[])[] = []

  constructor(members: ReadonlyMap<string, Place | null>) {
    this.#names = new WatchedNames(members.keys())
    for (const [name, place] of members) {
      const bytes = Buffer.from(name)
      const found = { name, bytes, place }
      this.#found.set(name, found)
      while (this.#byLength.length <= bytes.length) this.#byLength.push([])
      this.#byLength[bytes.length] = [...(this.#byLength[bytes.length] ?? []), found]
    }
  }

  /** The member whose name stands between the quotes; null for a member that is not looked at. */
  find(bytes: Buffer, from: number, to: number): FoundMember | typeof AMBIGUOUS | null {
    const found = this.findPlain(bytes, from, to)
    if (found !== null) return found
    const name = this.#names.read(bytes, from, to)
    return name === null || name === AMBIGUOUS ? name : (this.#found.get(name) ?? null)
  }

  /** Does what `find` does, for a name without escapes, and never answers AMBIGUOUS. */
  findPlain(bytes: Buffer, from: number, to: number): FoundMember | null {
    const candidates = this.#byLength[to - from]
    if (candidates === undefined) return null
    for (let k = 0; k < candidates.length; k++) {
      const candidate = candidates[k] as FoundMember
      let i = 0
      while (i < candidate.bytes.length && bytes[from + i] === candidate.bytes[i]) i++
      if (i === candidate.bytes.length) return candidate
    }
    return null
  }

  /** Does what `find` does, for a name that is at hand as text with its escapes. */
  findWritten(text: string, tolerant: boolean): FoundMember | typeof AMBIGUOUS | null {
    const name = tolerant ? (JSON.parse(`"${text}"`) as string) : this.#names.readText(text)
    return name === null || name === AMBIGUOUS ? name : (this.#found.get(name) ?? null)
  }
}
