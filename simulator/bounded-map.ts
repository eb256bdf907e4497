/** A map that forgets its oldest entries when it holds too many or when they weigh too much. */
export class BoundedMap<Value> {
  readonly #entries = new Map<string, { value: Value; bytes: number }>()
  readonly #entriesMax: number
  readonly #bytesMax: number
  #bytes = 0

  constructor(entriesMax: number, bytesMax: number = Number.POSITIVE_INFINITY) {
    this.#entriesMax = entriesMax
    this.#bytesMax = bytesMax
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  set(key: string, value: Value, bytes = 0): void {
    this.delete(key)
    this.#entries.set(key, { value, bytes })
    this.#bytes += bytes
    for (const [oldest] of this.#entries) {
      if (this.#entries.size <= this.#entriesMax && this.#bytes <= this.#bytesMax) break
      this.delete(oldest)
    }
  }

  /** Makes an entry the youngest again. */
  touch(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#entries.set(key, entry)
  }

  delete(key: string): boolean {
    const entry = this.#entries.get(key)
    if (entry === undefined) return false
    this.#bytes -= entry.bytes
    return this.#entries.delete(key)
  }

  /** The values, oldest first. */
  values(): Value[] {
    return [...this.#entries.values()].map((entry) => entry.value)
  }
}
