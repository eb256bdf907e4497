/** A stream of choices that the seed alone determines (Mulberry32: small, and the same everywhere). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  below(count: number): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * count)
  }

  from(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  oneIn(count: number): boolean {
    return this.below(count) === 0
  }

  nanos(least: bigint, most: bigint): bigint {
    return least + BigInt(this.below(Number(most - least) + 1))
  }

  pick<T>(choices: readonly T[]): T {
    const chosen = choices[this.below(choices.length)]
    if (chosen === undefined) throw new Error('there is nothing to pick from')
    return chosen
  }

  weighted<T>(choices: readonly (readonly [number, T])[]): T {
    let rest = this.below(choices.reduce((sum, [weight]) => sum + weight, 0))
    for (const [weight, choice] of choices) {
      if (rest < weight) return choice
      rest -= weight
    }
    throw new Error('there is nothing to choose from')
  }
}
