/** Counts observations by bucket. An observation takes a few nanoseconds and allocates nothing. */
export class Histogram {
  readonly bounds: readonly number[]
  /** One count per bucket, the count of larger observations, and the sum of all observations. */
  readonly #cells: Float64Array

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.#cells = new Float64Array(bounds.length + 2)
  }

  observe(value: number): void {
    const { bounds } = this
    const cells = this.#cells
    let at = 0
    while (at < bounds.length && value > (bounds[at] as number)) at += 1
    cells[at] = (cells[at] as number) + 1
    cells[bounds.length + 1] = (cells[bounds.length + 1] as number) + value
  }

  read(): { readonly atMost: readonly number[]; readonly count: number; readonly sum: number } {
    let count = 0
    const atMost = this.bounds.map((_, i) => {
      count += this.#cells[i] ?? 0
      return count
    })
    count += this.#cells[this.bounds.length] ?? 0
    return { atMost, count, sum: this.#cells[this.bounds.length + 1] ?? 0 }
  }
}
