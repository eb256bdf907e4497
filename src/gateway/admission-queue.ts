import { limits } from '../kernel/limits.ts'
import type { Admission } from '../ledger/call.ts'

/**
 * The first call in a queue polls at this interval: another node or the command line may free budget without notifying
 * this node.
 */
const LINE_LOOK_AGAIN_MS = 1_000

export type Turn = 'ask' | 'timed_out' | 'full' | 'left'

export type Held = Extract<Admission, { kind: 'held' }>

/** One FIFO queue per budget and per account. Only the calls at the front ask the store again. */
export class AdmissionQueues {
  readonly waitMs: number
  readonly queues = new Map<string, Queue>()
  readonly entries = new Set<QueueEntry>()
  /** The last answer to a waiting call of each key, by the key's digest. */
  readonly heldKeys = new Map<string, { held: Held; calls: number }>()
  waiting = 0
  accountQueues = 0
  closed = false
  #tickets = 0

  constructor(waitMs: number) {
    this.waitMs = waitMs
  }

  enter(digest: Buffer): QueueEntry {
    return new QueueEntry(this, digest, this.#tickets++)
  }

  get hasAccountQueue(): boolean {
    return this.accountQueues > 0
  }

  heldByAccount(accountId: string): Held | null {
    return this.queues.get(accountQueue(accountId))?.held ?? null
  }

  settled(budgetId: string, accountId: string): void {
    if (this.waiting === 0) return
    this.queues.get(budgetQueue(budgetId))?.signal()
    this.queues.get(accountQueue(accountId))?.signal()
  }

  /** Call this when limits or credit change: the first call of every queue asks again. */
  signalAll(): void {
    for (const queue of [...this.queues.values()]) queue.signal()
  }

  close(): void {
    this.closed = true
    for (const entry of [...this.entries]) entry.end('timed_out')
  }
}

function budgetQueue(id: string): string {
  return `budget ${id}`
}

const ACCOUNT = 'account '

function accountQueue(id: string): string {
  return ACCOUNT + id
}

function queueOf({ by, budgetId, accountId }: Held): string {
  return by.limit === 'budget' && by.budget.scope === 'key' ? budgetQueue(budgetId) : accountQueue(accountId)
}

/** A call's position in the order of arrival. Most calls never wait: they only take a number. */
export class QueueEntry {
  readonly ticket: number
  /** Woken to retry admission, and not queued again yet. */
  asking = false
  readonly #all: AdmissionQueues
  readonly #digest: Buffer
  #wake: ((turn: Turn) => void) | null = null
  #deadline: NodeJS.Timeout | null = null
  #queued: { readonly queue: Queue; readonly name: string } | null = null
  #over: 'timed_out' | 'left' | null = null

  constructor(all: AdmissionQueues, digest: Buffer, ticket: number) {
    this.#all = all
    this.#digest = digest
    this.ticket = ticket
  }

  get heldBefore(): Held | null {
    if (this.#all.waiting === 0) return null
    return this.#all.heldKeys.get(this.#keyName)?.held ?? null
  }

  get #keyName(): string {
    return this.#digest.toString('latin1')
  }

  /** Waits in the queue of the limit that blocks this call, until the store should be asked again. */
  async turn(held: Held): Promise<Turn> {
    const all = this.#all
    if (all.closed) this.#over ??= 'timed_out'
    if (this.#over !== null) return this.#over
    const queue = this.#join(queueOf(held))
    if (queue === null) return 'full'
    this.#noteHeld(held)
    queue.held = held
    this.#deadline ??= setTimeout(() => this.end('timed_out'), all.waitMs)
    const { promise, resolve } = Promise.withResolvers<Turn>()
    this.asking = false
    this.#wake = resolve
    queue.wakeFront()
    return await promise
  }

  #noteHeld(held: Held): void {
    const { heldKeys, entries } = this.#all
    const noted = heldKeys.get(this.#keyName) ?? { held, calls: 0 }
    noted.held = held
    if (!entries.has(this)) noted.calls += 1
    heldKeys.set(this.#keyName, noted)
    entries.add(this)
  }

  leave(): void {
    this.end('left')
  }

  end(how: 'timed_out' | 'left'): void {
    this.#over ??= how
    this.wake(this.#over)
  }

  wake(turn: Turn): void {
    if (this.#wake === null) return
    this.asking = turn === 'ask'
    this.#wake(turn)
    this.#wake = null
  }

  /** Leaves the queue. If this call was admitted, there may be room for the next one. */
  done(admitted: boolean): void {
    if (this.#deadline !== null) clearTimeout(this.#deadline)
    const { entries, heldKeys } = this.#all
    if (entries.delete(this)) {
      const noted = heldKeys.get(this.#keyName)
      if (noted !== undefined && --noted.calls === 0) heldKeys.delete(this.#keyName)
    }
    this.#quit(admitted)
  }

  #join(name: string): Queue | null {
    const { queues } = this.#all
    if (this.#queued?.name === name) {
      this.#queued.queue.heldAgain()
      return this.#queued.queue
    }
    this.#quit(false)
    const there = queues.get(name)
    if (this.#all.waiting >= limits.callsWaitingMax) return null
    if ((there?.length ?? 0) >= limits.callsQueuedPerLimitMax) return null
    const queue = there ?? new Queue()
    if (there === undefined) {
      queues.set(name, queue)
      if (name.startsWith(ACCOUNT)) this.#all.accountQueues += 1
    }
    queue.add(this)
    this.#all.waiting += 1
    this.#queued = { queue, name }
    return queue
  }

  #quit(admitted: boolean): void {
    if (this.#queued === null) return
    const { queue, name } = this.#queued
    this.#queued = null
    this.#all.waiting -= 1
    queue.remove(this, admitted)
    if (queue.length > 0) return
    this.#all.queues.delete(name)
    if (name.startsWith(ACCOUNT)) this.#all.accountQueues -= 1
  }
}

/** How many calls may ask at once. The store decides them in order, in one batch. */
const FRONT_MAX = 256

class Queue {
  held: Held | null = null
  readonly #entries: QueueEntry[] = []
  /** Calls admitted since one was last held back. That many may ask at once. */
  #admitted = 0
  #signalled = false
  readonly #poll: NodeJS.Timeout

  constructor() {
    this.#poll = setInterval(() => this.signal(), LINE_LOOK_AGAIN_MS).unref()
  }

  get length(): number {
    return this.#entries.length
  }

  signal(): void {
    this.#signalled = true
    this.wakeFront()
  }

  add(entry: QueueEntry): void {
    // Signals sent between the store's answer and the creation of this queue were missed.
    if (this.#entries.length === 0) this.#signalled = true
    const at = this.#entries.findLastIndex((other) => other.ticket < entry.ticket)
    this.#entries.splice(at + 1, 0, entry)
  }

  heldAgain(): void {
    this.#admitted = 0
  }

  remove(entry: QueueEntry, admitted: boolean): void {
    const at = this.#entries.indexOf(entry)
    if (at === -1) return
    this.#entries.splice(at, 1)
    if (this.#entries.length === 0) clearInterval(this.#poll)
    if (admitted) this.#admitted += 1
    this.signal()
  }

  /** Also call this when a call has just begun to wait: its answer may already be stale. */
  wakeFront(): void {
    if (!this.#signalled) return
    // Calls at the front are being decided. Their answers will signal again.
    if (this.#entries.some((entry, i) => i < FRONT_MAX && entry.asking)) return
    this.#signalled = false
    for (const entry of this.#entries.slice(0, Math.min(Math.max(this.#admitted, 1), FRONT_MAX)))
      entry.wake('ask')
  }
}
