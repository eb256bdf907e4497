/** Names of ASCII characters that can be looked for in bytes, without making a string of every name that comes by. */
export class NameSet {
  readonly #names: ReadonlySet<string>
  /** By length; most names that come by have a length that none of these has. */
  readonly #byLength: readonly (readonly Buffer[])[]

  constructor(names: Iterable<string>) {
    const byLength: Buffer[][] = []
    for (const name of names) {
      for (let length = byLength.length; length <= name.length; length++) byLength.push([])
      byLength[name.length]?.push(Buffer.from(name))
    }
    this.#names = new Set(names)
    this.#byLength = byLength
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  hasBytes(chunk: Buffer, from: number, to: number): boolean {
    const candidates = this.#byLength[to - from]
    if (candidates === undefined) return false
    for (let k = 0; k < candidates.length; k++) {
      const name = candidates[k] as Buffer
      let i = 0
      while (i < name.length && chunk[from + i] === name[i]) i++
      if (i === name.length) return true
    }
    return false
  }
}
