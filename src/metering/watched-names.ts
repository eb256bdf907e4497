/**
 * The names a scanner looks for, and the names that some servers would take for one of them: Go's encoding/json and
 * .NET's web defaults ignore letter case (Go even takes U+017F for `s` and U+212A for `k`), parsers in C end a name
 * at U+0000, and a lone surrogate is kept, replaced or dropped depending on the parser.
 */
export class WatchedNames<Name extends string> {
  readonly #exact = new Map<string, Name>()
  readonly #folded = new Set<string>()

  constructor(names: Iterable<Name>) {
    for (const name of names) {
      this.#exact.set(name, name)
      this.#folded.add(fold(name))
    }
  }

  find(name: string): Name | undefined {
    return this.#exact.get(name)
  }

  /** True for a name that is not watched, but that a server may read as one that is. */
  isAmbiguous(name: string): boolean {
    if (this.#exact.has(name)) return false
    return name.includes('\0') || !name.isWellFormed() || this.#folded.has(fold(name))
  }
}

/** Upper case first: it is what folds the letters whose lower case is themselves, such as U+017F. */
function fold(name: string): string {
  return name.toUpperCase().toLowerCase()
}
