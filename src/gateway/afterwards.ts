/** Work that goes on after its call was answered, so that a stop can wait for it. */
export class Afterwards {
  #count = 0

  get count(): number {
    return this.#count
  }

  /** `work` must not fail. */
  add(work: Promise<void>): void {
    this.#count += 1
    work.then(() => {
      this.#count -= 1
    })
  }
}
