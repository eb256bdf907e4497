/** Answers for a name that is not watched, but that a server may read as one that is. */
export const AMBIGUOUS: unique symbol = Symbol('ambiguous')

const BACKSLASH = 0x5c
/** The bit in which an ASCII letter differs from the same one in the other case. */
const CASE_BIT = 0x20

interface Watched<Name> {
  readonly name: Name
  readonly bytes: Buffer
}

/**
 * The names a scanner looks for, and the names that some servers would take for one of them: Go's encoding/json and
 * .NET's web defaults ignore letter case (Go even takes U+017F for `s` and U+212A for `k`), parsers in C end a name
 * at U+0000, and a lone surrogate is kept, replaced or dropped depending on the parser.
 */
export class WatchedNames<Name extends string> {
  readonly #exact = new Map<string, Name>()
  readonly #folded = new Set<string>()
  /** By their length in bytes. */
  readonly #byLength = new Map<number, Watched<Name>[]>()

  constructor(names: Iterable<Name>) {
    for (const name of names) {
      this.#exact.set(name, name)
      this.#folded.add(fold(name))
      const bytes = Buffer.from(name)
      this.#byLength.set(bytes.length, [...(this.#byLength.get(bytes.length) ?? []), { name, bytes }])
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

  /**
   * The watched name that stands between the quotes, as it is written, or null. Nearly every name is told apart by its
   * bytes, without making a string of it: one that some parser could take for a watched name has as many bytes and
   * the same letters, or it has other than ASCII characters, or escapes. Control characters are refused before.
   */
  read(bytes: Buffer, from: number, to: number): Name | null | typeof AMBIGUOUS {
    const candidates = this.#byLength.get(to - from)
    let seemsWatched = false
    for (let k = 0; candidates !== undefined && k < candidates.length; k++) {
      const candidate = candidates[k] as Watched<Name>
      const likeness = compare(candidate.bytes, bytes, from)
      if (likeness === 'same') return candidate.name
      seemsWatched ||= likeness === 'similar'
    }
    if (!seemsWatched && isPlain(bytes, from, to)) return null
    return this.readText(bytes.toString('utf8', from, to))
  }

  /** The same for a name as it is written that is at hand as text. */
  readText(text: string): Name | null | typeof AMBIGUOUS {
    const name = text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
    return this.isAmbiguous(name) ? AMBIGUOUS : (this.find(name) ?? null)
  }
}

/** Upper case first: it is what folds the letters whose lower case is themselves, such as U+017F. */
function fold(name: string): string {
  return name.toUpperCase().toLowerCase()
}

function compare(name: Buffer, bytes: Buffer, from: number): 'same' | 'similar' | 'other' {
  let differences = 0
  for (let i = 0; i < name.length; i++) {
    differences |= (name[i] as number) ^ (bytes[from + i] as number)
    if ((differences & ~CASE_BIT) !== 0) return 'other'
  }
  return differences === 0 ? 'same' : 'similar'
}

function isPlain(bytes: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number
    if (byte >= 0x80 || byte === BACKSLASH) return false
  }
  return true
}
