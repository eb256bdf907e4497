import { limits } from '../kernel/limits.ts'

export type Turn =
  /** The call is at the front of its line, and something may have changed since it asked last. */
  | 'ask'
  /** The wait is over, or there is no place to wait. */
  | 'late'
  /** The client has gone. */
  | 'left'

/** How many may ask together; a batch of the store decides them in their order. */
const FRONT_MAX = 256

/** A call that stands in a line. */
export class Waiter {
  readonly ticket: number
  /** It has been told to ask and has not come back to wait. */
  asking = false
  #resolve: ((turn: Turn) => void) | null = null

  constructor(ticket: number) {
    this.ticket = ticket
  }

  wait(): Promise<Turn> {
    this.asking = false
    return new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  wake(turn: Turn): void {
    if (this.#resolve === null) return
    this.asking = turn === 'ask'
    this.#resolve(turn)
    this.#resolve = null
  }
}

/** The calls that wait for the same room. */
export class Line {
  /** By ticket. */
  readonly #waiters: Waiter[] = []
  /** How many at the front may ask together. */
  #front = 1
  /** Something may have changed since those at the front asked. */
  #stirred = false
  readonly #poll: NodeJS.Timeout

  constructor() {
    this.#poll = setInterval(() => this.stir(), limits.lineLookAgainMs).unref()
  }

  get length(): number {
    return this.#waiters.length
  }

  stir(): void {
    this.#stirred = true
    this.wakeFront()
  }

  /** Whether somebody with a smaller number stands here and is not asking right now. */
  isAhead(ticket: number): boolean {
    for (const waiter of this.#waiters) {
      if (waiter.ticket >= ticket) return false
      if (!waiter.asking) return true
    }
    return false
  }

  add(waiter: Waiter): void {
    // What happened between the store's answer and the beginning of a line, nobody has seen.
    if (this.#waiters.length === 0) this.#stirred = true
    const at = this.#waiters.findLastIndex((other) => other.ticket < waiter.ticket)
    this.#waiters.splice(at + 1, 0, waiter)
  }

  /** Somebody asked and was held back again. */
  heldAgain(): void {
    this.#front = 1
  }

  remove(waiter: Waiter, admitted: boolean): void {
    const at = this.#waiters.indexOf(waiter)
    if (at === -1) return
    this.#waiters.splice(at, 1)
    if (this.#waiters.length === 0) clearInterval(this.#poll)
    if (admitted) this.#front = Math.min(this.#front * 2, FRONT_MAX)
    this.stir()
  }

  /** To be called when somebody has begun to wait, too: its answer may be out of date already. */
  wakeFront(): void {
    if (!this.#stirred) return
    // Those who ask now bring back news; who asked together is answered together.
    if (this.#waiters.some((waiter, i) => i < FRONT_MAX && waiter.asking)) return
    this.#stirred = false
    for (const waiter of this.#waiters.slice(0, this.#front)) waiter.wake('ask')
  }
}
