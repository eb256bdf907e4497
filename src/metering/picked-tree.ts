import type { FoundMember, Picked, Place } from './json-place.ts'

/** A container that is open and looked into. Exactly one of `object` and `array` is there. */
interface Frame {
  readonly place: Place
  readonly object: Map<string, Picked> | null
  readonly array: Picked[] | null
  /** How many values were kept when it was opened. */
  readonly valuesBefore: number
  /** The member whose value is due, if somebody looks at it. */
  member: FoundMember | null
}

/** Puts together what a picker finds, and keeps no more than it may. */
export class PickedTree {
  readonly #root: Place
  readonly #onElement: (element: Picked) => void
  readonly #valuesMax: number
  readonly #frames: Frame[] = []
  readonly #duplicates = new Set<string>()
  #values = 0
  #value: Picked = null

  constructor(root: Place, onElement: (element: Picked) => void, valuesMax: number) {
    this.#root = root
    this.#onElement = onElement
    this.#valuesMax = valuesMax
  }

  get inObject(): boolean {
    return this.#frames.at(-1)?.object != null
  }

  /** What is to be read of the value that is due; null if nobody looks at it. */
  get place(): Place | null {
    const frame = this.#frames.at(-1)
    if (frame === undefined) return this.#root
    return frame.object === null ? frame.place.elements : (frame.member?.place ?? null)
  }

  /** The name of a member stands between `from` and `to`. False if it could be read as another one. */
  name(bytes: Buffer, from: number, to: number): boolean {
    const frame = this.#frames.at(-1)
    const found = frame?.place.members?.find(bytes, from, to) ?? null
    if (frame === undefined || found === 'ambiguous') return false
    frame.member = found
    if (found !== null && frame.object?.has(found.name) === true) {
      this.#duplicates.add(this.#path())
      frame.member = null
    }
    return true
  }

  open(place: Place, isObject: boolean): boolean {
    this.#frames.push({
      place,
      object: isObject ? new Map() : null,
      array: isObject ? null : [],
      valuesBefore: this.#values,
      member: null,
    })
    return this.#count()
  }

  /** Takes the value that was due. False if that is more than is kept. */
  add(value: Picked): boolean {
    const frame = this.#frames.at(-1)
    if (frame === undefined || (frame.object !== null && frame.member === null)) return true
    if (this.#put(frame, value)) return this.#count()
    return true
  }

  /** Ends the container at hand. True if it is the outermost one. */
  close(): boolean {
    const closed = this.#frames.pop()
    const value = closed?.object ?? closed?.array ?? null
    const frame = this.#frames.at(-1)
    if (frame === undefined) {
      this.#value = value
      return true
    }
    if (!this.#put(frame, value)) this.#values = closed?.valuesBefore ?? 0
    return false
  }

  /** What was put together, and starts anew. */
  take(): { readonly value: Picked; readonly duplicates: readonly string[] } {
    const value: Picked = this.#value
    const duplicates = [...this.#duplicates]
    this.clear()
    return { value, duplicates }
  }

  clear(): void {
    this.#frames.length = 0
    this.#duplicates.clear()
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
      this.#onElement(value)
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

  #path(): string {
    let path = ''
    for (const { array, member } of this.#frames) {
      path += array === null ? `${path === '' ? '' : '.'}${member?.name ?? ''}` : '[]'
    }
    return path
  }
}
