import type { FoundMember, Picked, Place } from './json-place.ts'
import { AMBIGUOUS } from './watched-names.ts'

/** A container that is open and looked into. Exactly one of `object` and `array` is there. */
interface Frame {
  readonly outer: Frame | null
  readonly place: Place
  readonly object: Map<string, Picked> | null
  readonly array: Picked[] | null
  /** How many values were kept when it was opened. */
  readonly valuesBefore: number
  /** The member whose value is due, if it is to be kept. */
  member: FoundMember | null
}

/** What was found at the places that are looked into. */
export interface Selection {
  readonly value: Picked
  /** The places of members given more than once; the first counts here, parsers differ. */
  readonly duplicates: readonly string[]
}

const NONE: readonly string[] = []

/** Puts together what a walker finds where it looks into a text, and keeps no more than it may. */
export class PickedTree {
  readonly #root: Place
  readonly #onElement: ((element: Picked) => void) | null
  readonly #valuesMax: number
  #frame: Frame | null = null
  #duplicates: Set<string> | null = null
  #values = 0
  #value: Picked = null

  constructor(root: Place, onElement: ((element: Picked) => void) | null, valuesMax: number) {
    this.#root = root
    this.#onElement = onElement
    this.#valuesMax = valuesMax
  }

  get inObject(): boolean {
    return this.#frame !== null && this.#frame.object !== null
  }

  /** What is to be read of the value that is due; null if it is not looked at, or captured. */
  get place(): Place | null {
    const frame = this.#frame
    if (frame === null) return this.#root
    if (frame.object === null) return frame.place.elements
    return frame.member === null ? null : frame.member.place
  }

  get picked(): Selection {
    return { value: this.#value, duplicates: this.#duplicates === null ? NONE : [...this.#duplicates] }
  }

  /** The name of a member stands between `from` and `to`. */
  name(bytes: Buffer, from: number, to: number): FoundMember | typeof AMBIGUOUS | null {
    const frame = this.#frame
    const found = frame?.place.members?.find(bytes, from, to) ?? null
    if (frame === null || found === AMBIGUOUS) return found
    frame.member = found?.place == null ? null : found
    if (frame.member !== null && frame.object?.has(frame.member.name) === true) {
      this.#duplicates ??= new Set()
      this.#duplicates.add(pathOf(frame))
      frame.member = null
    }
    return found
  }

  /** False if that is more than is kept. */
  open(place: Place, isObject: boolean): boolean {
    this.#frame = {
      outer: this.#frame,
      place,
      object: isObject ? new Map() : null,
      array: isObject ? null : [],
      valuesBefore: this.#values,
      member: null,
    }
    return this.#count()
  }

  /** Takes the value that was due. False if that is more than is kept. */
  add(value: Picked): boolean {
    const frame = this.#frame
    if (frame === null || (frame.object !== null && frame.member === null)) return true
    return this.#put(frame, value) ? this.#count() : true
  }

  /** Ends the container at hand. True if it is the outermost one. */
  close(): boolean {
    const closed = this.#frame
    if (closed === null) return true
    const value = closed.object ?? closed.array
    this.#frame = closed.outer
    if (closed.outer === null) {
      this.#value = value
      return true
    }
    if (!this.#put(closed.outer, value)) this.#values = closed.valuesBefore
    return false
  }

  clear(): void {
    this.#frame = null
    this.#duplicates = null
    this.#values = 0
    this.#value = null
  }

  /** Whether the value was kept. */
  #put(frame: Frame, value: Picked): boolean {
    if (frame.array === null) {
      if (frame.member !== null) frame.object?.set(frame.member.name, value)
      return frame.member !== null
    }
    if (frame.place.streams) {
      this.#onElement?.(value)
      return false
    }
    if (frame.place.sparse && !(value instanceof Map && value.size > 0)) return false
    frame.array.push(value)
    return true
  }

  #count(): boolean {
    this.#values++
    return this.#values <= this.#valuesMax
  }
}

/** The way from the outermost container to the member at hand. */
function pathOf(frame: Frame): string {
  const outer = frame.outer === null ? '' : pathOf(frame.outer)
  if (frame.array !== null) return `${outer}[]`
  return `${outer}${outer === '' ? '' : '.'}${frame.member?.name ?? ''}`
}
