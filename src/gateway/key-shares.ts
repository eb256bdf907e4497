/** What the calls of one key take, on this node, of what all keys share. It is there as long as one of them is. */
export class KeyShare {
  readonly name: string
  calls = 0
  memoryBytes = 0
  spilledBytes = 0

  constructor(name: string) {
    this.name = name
  }
}

/** The keys with calls under way. A key that is not in force is one like others until the store has said so. */
export class KeyShares {
  readonly callsMax: number
  readonly #shares = new Map<string, KeyShare>()

  constructor(callsMax: number) {
    this.callsMax = callsMax
  }

  /** How many keys have calls under way. */
  get size(): number {
    return this.#shares.size
  }

  /** Null: this key has as many calls under way as it may have. */
  enter(digest: Buffer): KeyShare | null {
    const name = digest.toString('latin1')
    let share = this.#shares.get(name)
    if (share === undefined) {
      share = new KeyShare(name)
      this.#shares.set(name, share)
    } else if (share.calls >= this.callsMax) return null
    share.calls += 1
    return share
  }

  /** The call is over. */
  leave(share: KeyShare): void {
    share.calls -= 1
    if (share.calls === 0) this.#shares.delete(share.name)
  }
}
