/** A map that drops its oldest entries when it holds too many. */
export class BoundedMap<Value> extends Map<string, Value> {
  readonly #entriesMax: number

  constructor(entriesMax: number) {
    super()
    this.#entriesMax = entriesMax
  }

  override set(key: string, value: Value): this {
    this.delete(key)
    super.set(key, value)
    for (const oldest of this.keys()) {
      if (this.size <= this.#entriesMax) break
      this.delete(oldest)
    }
    return this
  }

  newestFirst(): Value[] {
    return [...this.values()].reverse()
  }
}
