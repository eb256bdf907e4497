/** What is remembered from one request of a connection to the next. It ends with the connection. */
export class ConnectionMemory {
  #key = ''
  #digest: Buffer | null = null

  /** The digest that the key had last time, or what `compute` makes of it. What has none is not remembered. */
  digestOf(key: string, compute: (key: string) => Buffer | null): Buffer | null {
    if (this.#digest !== null && this.#key === key) return this.#digest
    const digest = compute(key)
    if (digest === null) return null
    this.#key = key
    this.#digest = digest
    return digest
  }
}
