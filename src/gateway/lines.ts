import { limits } from '../kernel/limits.ts'
import { type Ahead, type HeldBy, NOBODY_AHEAD } from '../ledger/call.ts'

/**
 * The lines in which calls wait for room: one for each key that has used up its cap but for what calls in flight
 * hold, one for each account with its credit. Who came first is first. Those at the front ask the store, and only when
 * something may have changed, so that a thousand waiting calls cost no more than one. Where there turns out to be
 * room, ever more of them ask together: a line whose cause is gone must dissolve faster than calls arrive.
 *
 * Nothing about a key is kept here: a line is the calls that stand in it, and is gone with the last of them.
 */
export interface Lines {
  /** How many calls wait. */
  readonly waiting: number
  /** Takes a number for a call that comes with this key. */
  enter(key: string): Place
  /** A call of this key and account was settled: there may be room. */
  settled(key: string, accountId: string): void
  /** Limits or credit were changed: whoever is first in any line asks again. */
  stirAll(): void
  /** The service stops: every wait is over. */
  close(): void
}

export type Turn =
  /** The call is at the front of its line, and something may have changed since it asked last. */
  | 'ask'
  /** The wait is over, or there is no place to wait. */
  | 'late'
  /** The client has gone. */
  | 'left'

/** A call's place in the order of arrival. */
export interface Place {
  /** Who comes before this call and is not asking at the same time. To be asked right before the store is. */
  ahead(): Ahead
  /** Waits in the line of whatever holds the call back until it is worth asking again. */
  turn(by: HeldBy, accountId: string): Promise<Turn>
  /** The client has gone; a turn that is waited for ends. */
  leave(): void
  /** Gives the place up. If there was room for this call, there may be more. */
  done(admitted: boolean): void
}

/** How many may ask together; a batch of the store decides them in their order. */
const FRONT_MAX = 256

class Waiter {
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

class Line {
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

export function createLines(waitMs: number): Lines {
  const ofKey = new Map<string, Line>()
  const ofAccount = new Map<string, Line>()
  const places = new Set<() => void>()
  let tickets = 0
  let waiting = 0
  let closed = false

  function enter(key: string): Place {
    const waiter = new Waiter(tickets++)
    let deadline: NodeJS.Timeout | null = null
    let standing: { readonly line: Line; readonly lines: Map<string, Line>; readonly name: string } | null =
      null
    let over: 'late' | 'left' | null = null

    function end(how: 'late' | 'left'): void {
      over ??= how
      waiter.wake(over)
    }
    const endLate = () => end('late')

    function stand(lines: Map<string, Line>, name: string): Line | null {
      if (standing !== null && standing.lines === lines && standing.name === name) {
        standing.line.heldAgain()
        return standing.line
      }
      stepOut(false)
      const there = lines.get(name)
      if (waiting >= limits.callsWaitingMax || (there?.length ?? 0) >= limits.callsWaitingInLineMax)
        return null
      const line = there ?? new Line()
      lines.set(name, line)
      line.add(waiter)
      waiting += 1
      standing = { line, lines, name }
      return line
    }

    function stepOut(admitted: boolean): void {
      if (standing === null) return
      const { line, lines, name } = standing
      standing = null
      waiting -= 1
      line.remove(waiter, admitted)
      if (line.length === 0) lines.delete(name)
    }

    return {
      ahead() {
        if (waiting === 0) return NOBODY_AHEAD
        const { ticket } = waiter
        const accounts = [...ofAccount].filter(([, line]) => line.isAhead(ticket)).map(([id]) => id)
        return { key: ofKey.get(key)?.isAhead(ticket) ?? false, accounts }
      },

      async turn(by, accountId) {
        if (closed) over ??= 'late'
        if (over !== null) return over
        const line = by.limit === 'budget' ? stand(ofKey, key) : stand(ofAccount, accountId)
        if (line === null) return 'late'
        deadline ??= setTimeout(endLate, waitMs)
        places.add(endLate)
        const turn = waiter.wait()
        line.wakeFront()
        return await turn
      },

      leave: () => end('left'),

      done(admitted) {
        if (deadline !== null) clearTimeout(deadline)
        places.delete(endLate)
        stepOut(admitted)
      },
    }
  }

  return {
    get waiting() {
      return waiting
    },
    enter,
    settled(key, accountId) {
      ofKey.get(key)?.stir()
      ofAccount.get(accountId)?.stir()
    },
    stirAll() {
      for (const line of [...ofKey.values(), ...ofAccount.values()]) line.stir()
    },
    close() {
      closed = true
      for (const endPlace of [...places]) endPlace()
    },
  }
}
