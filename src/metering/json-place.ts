import { AMBIGUOUS, WatchedNames } from './watched-names.ts'

/** Something is there that was not read: a number, a literal, what is too long, or a container nobody looks into. */
export const UNREAD: unique symbol = Symbol('unread')

/** What a picker found at a place: of an object or array only what it was to look at. */
export type Picked = string | null | typeof UNREAD | PickedObject | readonly Picked[]

export type PickedObject = ReadonlyMap<string, Picked>

/** A place in a JSON text, and what is to be read if an object or an array stands there. */
export interface Place {
  readonly members: PlaceMembers | null
  readonly elements: Place | null
  /** Each element is handed over as it ends, and not kept. */
  readonly streams: boolean
  /** Of the elements only objects are kept that have one of the members. */
  readonly sparse: boolean
  /** A string that stands there is read. */
  readonly text: boolean
}

/** A place where only a string can be read. */
export const TEXT: Place = { members: null, elements: null, streams: false, sparse: false, text: true }

/** A place of which only is to be known whether there is anything but null. */
export const PRESENCE: Place = { ...TEXT, text: false }

export function objectAt(members: Readonly<Record<string, Place>>): Place {
  return { ...TEXT, members: new PlaceMembers(new Map(Object.entries(members))) }
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

/** An object of which members are captured as they are written: with their spans, and not looked into. */
export function capturing(names: Iterable<string>): Place {
  return { ...TEXT, members: new PlaceMembers(new Map(Array.from(names, (name) => [name, null]))) }
}

export interface FoundMember {
  readonly name: string
  /** Null for one that is captured as it is written. */
  readonly place: Place | null
}

/** The members of an object that are looked at. */
export class PlaceMembers {
  readonly #names: WatchedNames<string>
  readonly #found = new Map<string, FoundMember>()

  constructor(members: ReadonlyMap<string, Place | null>) {
    this.#names = new WatchedNames(members.keys())
    for (const [name, place] of members) this.#found.set(name, { name, place })
  }

  /** The member whose name stands between the quotes, null for one that nobody looks at. */
  find(bytes: Buffer, from: number, to: number): FoundMember | typeof AMBIGUOUS | null {
    const name = this.#names.read(bytes, from, to)
    return name === null || name === AMBIGUOUS ? name : (this.#found.get(name) ?? null)
  }
}
