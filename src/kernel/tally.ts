/** Counts by name. A name whose count is 0 takes no memory. */
export class Tally {
  readonly #counts = new Map<string, number>()

  countOf(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  /** Returns false, and adds nothing, if the count has reached `max`. */
  add(name: string, max = Infinity): boolean {
    const count = this.countOf(name)
    if (count >= max) return false
    this.#counts.set(name, count + 1)
    return true
  }

  remove(name: string): void {
    const count = this.countOf(name)
    if (count > 1) this.#counts.set(name, count - 1)
    else this.#counts.delete(name)
  }
}
