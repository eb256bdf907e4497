import { limits } from '../kernel/limits.ts'
import type { Admission } from '../ledger/call.ts'

/** Interval at which the first call of a queue retries: other nodes free budget without notifying this one. */
const POLL_MS = 1_000

/** Maximum calls of a queue that retry at the same time. The database decides about them in order, in one batch. */
const FRONT_MAX = 256

export type Wakeup = 'retry' | 'timed_out' | 'full' | 'left'

export type Blocked = Extract<Admission, { kind: 'blocked' }>

/** One FIFO queue per budget and per account. Only the calls at the front request admission again. */
export class AdmissionQueues {
  readonly waitMs: number
  readonly #budgets = new Map<string, Queue>()
  readonly #accounts = new Map<string, Queue>()
  readonly entries = new Set<QueueEntry>()
  /** The last answer to a waiting call of each key, by the key's digest. */
  readonly blockedKeys = new Map<string, { blocked: Blocked; calls: number }>()
  closed = false
  #tickets = 0

  constructor(waitMs: number) {
    this.waitMs = waitMs
  }

  get waiting(): number {
    return this.entries.size
  }

  enter(digest: Buffer): QueueEntry {
    return new QueueEntry(this, digest, this.#tickets++)
  }

  settled(budgetId: string, accountId: string): void {
    if (this.waiting === 0) return
    this.#budgets.get(budgetId)?.signal()
    this.#accounts.get(accountId)?.signal()
  }

  /** Call it when limits or credit have changed. */
  signalAll(): void {
    for (const queue of [...this.#budgets.values(), ...this.#accounts.values()]) queue.signal()
  }

  close(): void {
    this.closed = true
    for (const entry of [...this.entries]) entry.end('timed_out')
  }

  queueOf({ by, budgetId, accountId }: Blocked): Queue {
    const isOfKey = by.limit === 'budget' && by.budget.scope === 'key'
    const [queues, id] = isOfKey ? [this.#budgets, budgetId] : [this.#accounts, accountId]
    return queues.get(id) ?? new Queue(queues, id)
  }
}

/** A call's position in the order of arrival. Most calls never wait; they only take a ticket. */
export class QueueEntry {
  readonly ticket: number
  /** Whether the call has requested admission again, and has no answer yet. */
  isRetrying = false
  readonly #all: AdmissionQueues
  readonly #digest: Buffer
  #wake: ((wakeup: Wakeup) => void) | null = null
  #deadline: NodeJS.Timeout | null = null
  #queue: Queue | null = null
  #end: 'timed_out' | 'left' | null = null

  constructor(all: AdmissionQueues, digest: Buffer, ticket: number) {
    this.#all = all
    this.#digest = digest
    this.ticket = ticket
  }

  get lastBlocked(): Blocked | null {
    if (this.#all.waiting === 0) return null
    return this.#all.blockedKeys.get(this.#keyName)?.blocked ?? null
  }

  get #keyName(): string {
    return this.#digest.toString('latin1')
  }

  /** Waits in the queue of the limit that blocks this call, until the call should request admission again. */
  async wait(blocked: Blocked): Promise<Wakeup> {
    if (this.#all.closed) this.#end ??= 'timed_out'
    if (this.#end !== null) return this.#end
    const queue = this.#join(blocked)
    if (queue === null) return 'full'
    this.#deadline ??= setTimeout(() => this.end('timed_out'), this.#all.waitMs)
    const { promise, resolve } = Promise.withResolvers<Wakeup>()
    this.isRetrying = false
    this.#wake = resolve
    queue.wakeFront()
    return await promise
  }

  end(how: 'timed_out' | 'left'): void {
    this.#end ??= how
    this.wake(this.#end)
  }

  wake(wakeup: Wakeup): void {
    if (this.#wake === null) return
    this.isRetrying = wakeup === 'retry'
    this.#wake(wakeup)
    this.#wake = null
  }

  /** Leaves the queue. If this call was admitted, the next one may be admitted too, so it is woken. */
  done(admitted: boolean): void {
    if (this.#deadline !== null) clearTimeout(this.#deadline)
    this.#queue?.remove(this, admitted)
    this.#queue = null
    const { entries, blockedKeys } = this.#all
    if (!entries.delete(this)) return
    const ofKey = blockedKeys.get(this.#keyName)
    if (ofKey !== undefined && --ofKey.calls === 0) blockedKeys.delete(this.#keyName)
  }

  #join(blocked: Blocked): Queue | null {
    const { entries, blockedKeys } = this.#all
    const queue = this.#all.queueOf(blocked)
    if (queue === this.#queue) queue.blockedAgain()
    else {
      this.#queue?.remove(this, false)
      this.#queue = null
      const isFirstWait = !entries.has(this)
      if (isFirstWait && entries.size >= limits.callsWaitingMax) return null
      if (queue.length >= limits.callsQueuedPerLimitMax) return null
      queue.add(this)
      this.#queue = queue
      const ofKey = blockedKeys.get(this.#keyName) ?? { blocked, calls: 0 }
      if (isFirstWait) ofKey.calls += 1
      blockedKeys.set(this.#keyName, ofKey)
      entries.add(this)
    }
    const ofKey = blockedKeys.get(this.#keyName)
    if (ofKey !== undefined) ofKey.blocked = blocked
    return queue
  }
}

/** The calls that wait for one budget or account. The queue exists only while it has calls. */
class Queue {
  readonly #all: Map<string, Queue>
  readonly #id: string
  readonly #entries: QueueEntry[] = []
  /** Calls admitted since a call was last blocked. The same number of calls may retry at the same time. */
  #admitted = 0
  #signalled = false
  #poll: NodeJS.Timeout | null = null

  constructor(all: Map<string, Queue>, id: string) {
    this.#all = all
    this.#id = id
  }

  get length(): number {
    return this.#entries.length
  }

  signal(): void {
    this.#signalled = true
    this.wakeFront()
  }

  add(entry: QueueEntry): void {
    if (this.#poll === null) {
      this.#all.set(this.#id, this)
      this.#poll = setInterval(() => this.signal(), POLL_MS).unref()
      // Retry once: a settlement may have come after the database answered, but before this queue existed.
      this.#signalled = true
    }
    const at = this.#entries.findLastIndex((other) => other.ticket < entry.ticket)
    this.#entries.splice(at + 1, 0, entry)
  }

  blockedAgain(): void {
    this.#admitted = 0
  }

  remove(entry: QueueEntry, admitted: boolean): void {
    this.#entries.splice(this.#entries.indexOf(entry), 1)
    if (admitted) this.#admitted += 1
    this.signal()
    if (this.#entries.length > 0) return
    this.#all.delete(this.#id)
    clearInterval(this.#poll ?? undefined)
  }

  /** Wakes the calls at the front. Also called when a call begins to wait, because its answer may be out of date. */
  wakeFront(): void {
    if (!this.#signalled) return
    // Calls at the front are being decided. Their answers will signal again.
    if (this.#entries.some((entry, i) => i < FRONT_MAX && entry.isRetrying)) return
    this.#signalled = false
    for (const entry of this.#entries.slice(0, Math.min(Math.max(this.#admitted, 1), FRONT_MAX)))
      entry.wake('retry')
  }
}
