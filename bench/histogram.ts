/** Buckets are half a percent wide, so that any number of values takes the same memory. */
const BUCKETS_PER_E = 200
const BUCKETS = Math.ceil(Math.log(1e13) * BUCKETS_PER_E)

/** Durations in nanoseconds. */
export class Histogram {
  readonly #counts = new Uint32Array(BUCKETS)
  #count = 0
  #sum = 0
  #max = 0

  record(nanoseconds: number): void {
    const bucket = nanoseconds <= 1 ? 0 : Math.floor(Math.log(nanoseconds) * BUCKETS_PER_E)
    const index = Math.min(bucket, BUCKETS - 1)
    this.#counts[index] = (this.#counts[index] ?? 0) + 1
    this.#count += 1
    this.#sum += nanoseconds
    if (nanoseconds > this.#max) this.#max = nanoseconds
  }

  get count(): number {
    return this.#count
  }

  get meanMs(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count / 1e6
  }

  get maxMs(): number {
    return this.#max / 1e6
  }

  /** The milliseconds that this share of the values did not exceed. */
  quantileMs(share: number): number {
    const rank = Math.ceil(this.#count * share)
    let seen = 0
    for (const [bucket, count] of this.#counts.entries()) {
      seen += count
      if (count > 0 && seen >= rank) return Math.exp((bucket + 0.5) / BUCKETS_PER_E) / 1e6
    }
    return 0
  }
}
