/** The answer for a name that is not read, but that a server may take for one that is. */
export const AMBIGUOUS: unique symbol = Symbol('ambiguous')

const BACKSLASH = 0x5c
/** The bit in which an ASCII letter differs from the same one in the other case. */
const CASE_BIT = 0x20

interface Named<Entry> {
  readonly bytes: Buffer
  readonly entry: Entry
}

/**
 * The names that are read, and the names that some servers take for one of them: Go's encoding/json and .NET's web
 * defaults ignore letter case (Go even takes U+017F for `s` and U+212A for `k`), parsers in C end a name at U+0000, and a
 * lone surrogate is kept, replaced or dropped depending on the parser.
 */
export class NameTable<Entry> {
  readonly #exact = new Map<string, Entry>()
  readonly #folded = new Set<string>()
  readonly #byLength: Named<Entry>[][] = []

  constructor(entries: Iterable<readonly [name: string, entry: Entry]>) {
    for (const [name, entry] of entries) {
      this.#exact.set(name, entry)
      this.#folded.add(fold(name))
      const bytes = Buffer.from(name)
      while (this.#byLength.length <= bytes.length) this.#byLength.push([])
      this.#byLength[bytes.length]?.push({ bytes, entry })
    }
  }

  /**
   * The entry of the name between two quotes, as it is written. Nearly every name is recognised by its
   * bytes, without making a string of it: a name that some parser could take for another one has as many bytes and the
   * same letters, or it has other than ASCII characters, or escapes.
   */
  find(bytes: Buffer, from: number, to: number): Entry | null | typeof AMBIGUOUS {
    const candidates = this.#byLength[to - from]
    let isSimilar = false
    for (let k = 0; candidates !== undefined && k < candidates.length; k++) {
      const candidate = candidates[k] as Named<Entry>
      const differences = compare(candidate.bytes, bytes, from)
      if (differences === 0) return candidate.entry
      isSimilar ||= differences === CASE_BIT
    }
    if (!isSimilar && isPlain(bytes, from, to)) return null
    const text = bytes.toString('utf8', from, to)
    return this.findText(text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text)
  }

  findText(name: string): Entry | null | typeof AMBIGUOUS {
    const entry = this.#exact.get(name)
    if (entry !== undefined) return entry
    const isOdd = name.includes('\0') || !name.isWellFormed() || this.#folded.has(fold(name))
    return isOdd ? AMBIGUOUS : null
  }
}

/** Upper case comes first, because it folds the letters that are their own lower case, such as U+017F. */
function fold(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/** 0 for the same bytes, CASE_BIT for bytes that differ in the case of letters only. */
function compare(name: Buffer, bytes: Buffer, from: number): number {
  let differences = 0
  for (let i = 0; i < name.length; i++) {
    differences |= (name[i] as number) ^ (bytes[from + i] as number)
    if ((differences & ~CASE_BIT) !== 0) return differences
  }
  return differences
}

function isPlain(bytes: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number
    if (byte >= 0x80 || byte === BACKSLASH) return false
  }
  return true
}
