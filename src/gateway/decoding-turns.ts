import { clientLeft, type Exchange } from '../http/exchange.ts'
import type { KeyShare } from './key-shares.ts'

/** A key whose bodies are being decoded or wait for it. */
interface KeyTurns {
  running: number
  /** In the order in which they came. */
  readonly waiting: Set<() => void>
}

/**
 * Turns of decoding bodies. A few are decoded at once, and fewer of one key; the others wait. Bodies of one key follow each other
 * in their order, and keys take turns: however many bodies one of them sends, another waits for a few of them only.
 */
export class DecodingTurns {
  readonly #max: number
  readonly #perKeyMax: number
  #running = 0
  readonly #keys = new Map<KeyShare, KeyTurns>()
  /** Keys that have a body waiting and may decode one more, in the order of their turns. */
  readonly #ready = new Set<KeyShare>()

  constructor(max: number, perKeyMax: number) {
    this.#max = max
    this.#perKeyMax = perKeyMax
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    let waiting = 0
    for (const turns of this.#keys.values()) waiting += turns.waiting.size
    return waiting
  }

  /** Does the work when it is its turn. Null, and the work not begun, if the client has left by then. */
  async take<T>(share: KeyShare, exchange: Exchange, work: () => Promise<T>): Promise<T | null> {
    if (!(await this.#enter(share, exchange))) return null
    try {
      return clientLeft(exchange) ? null : await work()
    } finally {
      this.#leave(share)
    }
  }

  /** False: the client left while it waited. */
  #enter(share: KeyShare, { res }: Exchange): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const turns = this.#keys.get(share) ?? { running: 0, waiting: new Set() }
    this.#keys.set(share, turns)
    const begin = () => {
      res.whenClosed.remove(onLeft)
      resolve(true)
    }
    const onLeft = () => {
      turns.waiting.delete(begin)
      this.#forgetIdle(share, turns)
      resolve(false)
    }
    res.whenClosed.add(onLeft)
    turns.waiting.add(begin)
    this.#ready.add(share)
    this.#goOn()
    return promise
  }

  #leave(share: KeyShare): void {
    const turns = this.#keys.get(share)
    if (turns === undefined) return
    turns.running -= 1
    this.#running -= 1
    if (turns.waiting.size > 0) this.#ready.add(share)
    this.#forgetIdle(share, turns)
    this.#goOn()
  }

  #forgetIdle(share: KeyShare, { running, waiting }: KeyTurns): void {
    if (running > 0 || waiting.size > 0) return
    this.#keys.delete(share)
    this.#ready.delete(share)
  }

  #goOn(): void {
    for (const share of this.#ready) {
      if (this.#running >= this.#max) return
      this.#ready.delete(share)
      const turns = this.#keys.get(share)
      if (turns === undefined || turns.running >= this.#perKeyMax) continue
      const [next] = turns.waiting
      if (next === undefined) continue
      turns.waiting.delete(next)
      turns.running += 1
      this.#running += 1
      // Behind the others.
      if (turns.waiting.size > 0) this.#ready.add(share)
      next()
    }
  }
}
