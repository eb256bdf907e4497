import { limits } from '../kernel/limits.ts'
import { type Ahead, type HeldBy, NOBODY_AHEAD } from '../ledger/call.ts'

/**
 * The lines in which calls wait for room: one for each key that has used up its cap but for what calls in flight
 * hold, one for each account with its credit. Who came first is first. Only the first in line asks the store, and only
 * when something may have changed, so that a thousand waiting calls cost no more than one.
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
}

export type Turn =
  /** The call is first in its line, and something may have changed since it asked last. */
  | 'ask'
  /** The wait is over. */
  | 'late'
  /** Too many wait already. */
  | 'crowded'
  /** The client has gone. */
  | 'left'

/** A call's place in the order of arrival. */
export interface Place {
  /** Other calls with this key wait already, so this one need not ask. */
  readonly isBehind: boolean
  /** Who comes before this call. To be asked right before the store is. */
  ahead(): Ahead
  /** Waits in the line of whatever holds the call back until it is worth asking again. */
  turn(by: HeldBy['limit'], accountId: string): Promise<Turn>
  /** The client has gone; a turn that is waited for ends. */
  leave(): void
  /** Gives the place up, whatever came of it. The next in line asks. */
  done(): void
}

interface Waiter {
  readonly ticket: number
  wake(turn: Turn): void
}

class Line {
  /** By ticket. */
  readonly waiters: Waiter[] = []
  /** Counts what may have made room, so that nothing is missed between asking and waiting. */
  stirs = 0
  readonly poll: NodeJS.Timeout

  constructor() {
    this.poll = setInterval(() => this.stir(), limits.lineLookAgainMs).unref()
  }

  stir(): void {
    this.stirs += 1
    this.waiters[0]?.wake('ask')
  }

  add(waiter: Waiter): void {
    const at = this.waiters.findLastIndex((other) => other.ticket < waiter.ticket)
    this.waiters.splice(at + 1, 0, waiter)
  }

  remove(waiter: Waiter): void {
    const at = this.waiters.indexOf(waiter)
    if (at !== -1) this.waiters.splice(at, 1)
    // Whoever is first now has not asked since it became so.
    if (at === 0) this.waiters[0]?.wake('ask')
  }
}

export function createLines(waitMs: number): Lines {
  const ofKey = new Map<string, Line>()
  const ofAccount = new Map<string, Line>()
  let tickets = 0
  let waiting = 0

  function enter(key: string): Place {
    const ticket = tickets++
    let deadline: NodeJS.Timeout | null = null
    let standing: { readonly line: Line; readonly lines: Map<string, Line>; readonly name: string } | null =
      null
    let seenStirs = -1
    let over: 'late' | 'left' | null = null
    let resolveTurn: ((turn: Turn) => void) | null = null

    const waiter: Waiter = {
      ticket,
      wake(turn) {
        resolveTurn?.(turn)
        resolveTurn = null
      },
    }

    function end(how: 'late' | 'left'): void {
      over ??= how
      waiter.wake(over)
    }

    function stand(lines: Map<string, Line>, name: string): Line {
      if (standing !== null && standing.lines === lines && standing.name === name) return standing.line
      stepOut()
      const line = lines.get(name) ?? new Line()
      lines.set(name, line)
      line.add(waiter)
      waiting += 1
      standing = { line, lines, name }
      return line
    }

    function stepOut(): void {
      if (standing === null) return
      const { line, lines, name } = standing
      standing = null
      waiting -= 1
      line.remove(waiter)
      if (line.waiters.length > 0) return
      clearInterval(line.poll)
      lines.delete(name)
    }

    return {
      get isBehind() {
        return (ofKey.get(key)?.waiters[0]?.ticket ?? ticket) < ticket
      },

      ahead() {
        if (ofKey.size === 0 && ofAccount.size === 0) return NOBODY_AHEAD
        const first = (line: Line | undefined) => line?.waiters[0]?.ticket ?? Number.POSITIVE_INFINITY
        const accounts = [...ofAccount].filter(([, line]) => first(line) < ticket).map(([id]) => id)
        return { key: first(ofKey.get(key)) < ticket, accounts }
      },

      turn(by, accountId) {
        if (over !== null) return Promise.resolve(over)
        if (waiting >= limits.callsWaitingMax && standing === null) return Promise.resolve('crowded')
        const before = standing?.line
        const line = by === 'budget' ? stand(ofKey, key) : stand(ofAccount, accountId)
        deadline ??= setTimeout(end, waitMs, 'late')
        const { promise, resolve } = Promise.withResolvers<Turn>()
        resolveTurn = (turn) => {
          seenStirs = line.stirs
          resolve(turn)
        }
        // What happened between the store's answer and this line's first call, nobody counted: ask once more.
        const missed = line !== before || line.stirs !== seenStirs
        if (missed && line.waiters[0] === waiter) waiter.wake('ask')
        return promise
      },

      leave: () => end('left'),

      done() {
        if (deadline !== null) clearTimeout(deadline)
        stepOut()
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
  }
}
