import { limits } from '../kernel/limits.ts'
import { type Ahead, type HeldBy, NOBODY_AHEAD } from '../ledger/call.ts'
import { Line, type Turn, Waiter } from './line.ts'

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
  enter(key: LineKey): Place
  /** A call of this key and account was settled: there may be room. */
  settled(key: LineKey, accountId: string): void
  /** Limits or credit were changed: whoever is first in any line asks again. */
  stirAll(): void
  /** The service stops: every wait is over. */
  close(): void
}

/** By what a key's line is known while there is one: mostly there is none, and nothing has to be written down. */
export type LineKey = string | Buffer

function nameOf(key: LineKey): string {
  return typeof key === 'string' ? key : key.toString('latin1')
}

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

/** A line that a call stands in, and where that line is found. */
interface Standing {
  readonly line: Line
  readonly lines: Map<string, Line>
  readonly name: string
}

export function createLines(waitMs: number): Lines {
  return new AllLines(waitMs)
}

class AllLines implements Lines {
  readonly waitMs: number
  readonly ofKey = new Map<string, Line>()
  readonly ofAccount = new Map<string, Line>()
  /** Those that wait. */
  readonly places = new Set<CallPlace>()
  waiting = 0
  closed = false
  #tickets = 0

  constructor(waitMs: number) {
    this.waitMs = waitMs
  }

  enter(key: LineKey): Place {
    return new CallPlace(this, key, this.#tickets++)
  }

  settled(key: LineKey, accountId: string): void {
    if (this.waiting === 0) return
    this.ofKey.get(nameOf(key))?.stir()
    this.ofAccount.get(accountId)?.stir()
  }

  stirAll(): void {
    for (const line of [...this.ofKey.values(), ...this.ofAccount.values()]) line.stir()
  }

  close(): void {
    this.closed = true
    for (const place of [...this.places]) place.end('late')
  }
}

/** Most calls never wait, and have nothing here but their number. */
class CallPlace implements Place {
  readonly #all: AllLines
  readonly #key: LineKey
  readonly #ticket: number
  #waiter: Waiter | null = null
  #deadline: NodeJS.Timeout | null = null
  #standing: Standing | null = null
  #over: 'late' | 'left' | null = null

  constructor(all: AllLines, key: LineKey, ticket: number) {
    this.#all = all
    this.#key = key
    this.#ticket = ticket
  }

  ahead(): Ahead {
    const { waiting, ofKey, ofAccount } = this.#all
    if (waiting === 0) return NOBODY_AHEAD
    const accounts = [...ofAccount].filter(([, line]) => line.isAhead(this.#ticket)).map(([id]) => id)
    return { key: ofKey.get(nameOf(this.#key))?.isAhead(this.#ticket) ?? false, accounts }
  }

  async turn(by: HeldBy, accountId: string): Promise<Turn> {
    const all = this.#all
    if (all.closed) this.#over ??= 'late'
    if (this.#over !== null) return this.#over
    this.#waiter ??= new Waiter(this.#ticket)
    const line =
      by.limit === 'budget'
        ? this.#stand(this.#waiter, all.ofKey, nameOf(this.#key))
        : this.#stand(this.#waiter, all.ofAccount, accountId)
    if (line === null) return 'late'
    this.#deadline ??= setTimeout(() => this.end('late'), all.waitMs)
    all.places.add(this)
    const turn = this.#waiter.wait()
    line.wakeFront()
    return await turn
  }

  leave(): void {
    this.end('left')
  }

  end(how: 'late' | 'left'): void {
    this.#over ??= how
    this.#waiter?.wake(this.#over)
  }

  done(admitted: boolean): void {
    if (this.#waiter === null) return
    if (this.#deadline !== null) clearTimeout(this.#deadline)
    this.#all.places.delete(this)
    this.#stepOut(this.#waiter, admitted)
  }

  #stand(waiter: Waiter, lines: Map<string, Line>, name: string): Line | null {
    const standing = this.#standing
    if (standing !== null && standing.lines === lines && standing.name === name) {
      standing.line.heldAgain()
      return standing.line
    }
    this.#stepOut(waiter, false)
    const there = lines.get(name)
    if (this.#all.waiting >= limits.callsWaitingMax || (there?.length ?? 0) >= limits.callsWaitingInLineMax)
      return null
    const line = there ?? new Line()
    lines.set(name, line)
    line.add(waiter)
    this.#all.waiting += 1
    this.#standing = { line, lines, name }
    return line
  }

  #stepOut(waiter: Waiter, admitted: boolean): void {
    if (this.#standing === null) return
    const { line, lines, name } = this.#standing
    this.#standing = null
    this.#all.waiting -= 1
    line.remove(waiter, admitted)
    if (line.length === 0) lines.delete(name)
  }
}
