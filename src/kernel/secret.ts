import { inspect } from 'node:util'

/**
 * A value that must not reach a log, an error or a page. It prints as a placeholder wherever it is printed;
 * only `reveal()` gives it up, and every call of that is worth a look in review.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [inspect.custom](): string {
    return '[secret]'
  }
}
