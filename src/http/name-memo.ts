/** Of the spellings that are kept. A power of two. */
const PLACES = 2_048
const NAME_CHARS_MAX = 64

interface Kept<Known> {
  readonly spelling: string
  readonly known: Known
}

/**
 * What is known of the names of header lines, by their spelling: the same few come with every request. A name has one
 * place, and whoever comes last has it; one that nobody has seen costs what it would cost without this. A Map would
 * hash each string anew, which takes twice as long as all of this.
 */
export class NameMemo<Known> {
  readonly #kept: (Kept<Known> | null)[] = new Array<null>(PLACES).fill(null)
  readonly #judge: (lowerName: string) => Known

  constructor(judge: (lowerName: string) => Known) {
    this.#judge = judge
  }

  get(name: string): Known {
    const place = placeOf(name)
    const kept = this.#kept[place] ?? null
    return kept !== null && kept.spelling === name ? kept.known : this.#learn(name, place)
  }

  #learn(name: string, place: number): Known {
    const known = this.#judge(name.toLowerCase())
    if (name.length <= NAME_CHARS_MAX) this.#kept[place] = { spelling: name, known }
    return known
  }
}

/** By such letters and factors that no two of the 160 names that SDKs and providers send, as they spell them, meet. */
function placeOf(name: string): number {
  const { length } = name
  if (length < 3) return 0
  const first = name.charCodeAt(0) * 199
  const middle = name.charCodeAt(length >> 1) * 257
  const third = name.charCodeAt(length - 3) * 211
  const last = name.charCodeAt(length - 1) * 149
  return (length * 59 + first + middle + third + last) & (PLACES - 1)
}
