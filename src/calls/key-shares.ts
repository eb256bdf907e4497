import { setImmediate as nextTurn } from 'node:timers/promises'
import { ReadingPace } from '../metering/reading-pace.ts'
import type { Presence } from './ask.ts'

/** The part of the free memory (which other keys do not use) that the bodies of one key may take. */
const BODIES_PART_PER_KEY_MAX = 0.5

/** Reserved for the small bodies of one key, whatever other bodies take. */
const SMALL_BODIES_BYTES_MIN = 32 * 1024 ** 2

/** The calls of one key on this node. It exists while the key has a call here. */
export interface KeyShare {
  readonly name: string
  /** The name under which the small bodies of the key are counted. */
  readonly smallName: string
  calls: number
  decoding: Promise<unknown>
  readonly pace: ReadingPace
}

const DONE = Promise.resolve()

/** The keys with calls in flight. An unknown or revoked key is among them until the database has rejected it. */
export class KeyShares {
  readonly callsMax: number
  readonly #shares = new Map<string, KeyShare>()
  readonly #pauses = { endMs: 0 }

  constructor(callsMax: number) {
    this.callsMax = callsMax
  }

  get size(): number {
    return this.#shares.size
  }

  enter(digest: Buffer): KeyShare | null {
    const share = this.#shareOf(digest)
    if (share.calls >= this.callsMax) return null
    share.calls += 1
    return share
  }

  enterUnlimited(digest: Buffer): KeyShare {
    const share = this.#shareOf(digest)
    share.calls += 1
    return share
  }

  leave(share: KeyShare): void {
    share.calls -= 1
    if (share.calls === 0) this.#shares.delete(share.name)
  }

  #shareOf(digest: Buffer): KeyShare {
    const name = digest.toString('latin1')
    const known = this.#shares.get(name)
    if (known !== undefined) return known
    const pace = new ReadingPace(this.#pauses)
    const share = { name, smallName: `${name} small`, calls: 0, decoding: DONE, pace }
    this.#shares.set(name, share)
    return share
  }
}

/** Memory for bodies of one kind. One key gets at most half of what the others leave free. */
export class ByteBudget {
  readonly #bytesMax: number
  readonly #byKey = new Map<string, number>()
  #reservedBytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get reservedBytes(): number {
    return this.#reservedBytes
  }

  tryReserve(bytes: number, keyName: string, isSmall = false): boolean {
    const ownBytes = (this.#byKey.get(keyName) ?? 0) + bytes
    const freeBytes = this.#bytesMax - this.#reservedBytes - bytes + ownBytes
    const leastBytes = isSmall ? SMALL_BODIES_BYTES_MIN : 0
    if (ownBytes > Math.max(freeBytes * BODIES_PART_PER_KEY_MAX, leastBytes)) return false
    this.#reservedBytes += bytes
    this.#byKey.set(keyName, ownBytes)
    return true
  }

  release(bytes: number, keyName: string): void {
    this.#reservedBytes -= bytes
    const ownBytes = (this.#byKey.get(keyName) ?? 0) - bytes
    if (ownBytes > 0) this.#byKey.set(keyName, ownBytes)
    else this.#byKey.delete(keyName)
  }
}

export class ReservedBytes {
  readonly #budget: ByteBudget
  readonly #keyName: string
  bytes = 0

  constructor(budget: ByteBudget, keyName: string) {
    this.#budget = budget
    this.#keyName = keyName
  }

  tryReserve(bytes: number, isSmall = false): boolean {
    const isReserved = this.#budget.tryReserve(bytes, this.#keyName, isSmall)
    if (isReserved) this.bytes += bytes
    return isReserved
  }

  release(bytes = this.bytes): void {
    if (bytes > 0) this.#budget.release(bytes, this.#keyName)
    this.bytes -= bytes
  }
}

/** Limits decoding: one body per key at a time, and a few over all keys, first come, first served. */
export class DecodingQueue {
  readonly #max: number
  readonly #waiting: (() => void)[] = []
  running = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Runs the work after the work that waits already. Null if the client has left by then; the work is not started. */
  run<T>(share: KeyShare, client: Pick<Presence, 'isOver'>, work: () => Promise<T>): Promise<T | null> {
    const done = share.decoding.then(() => this.#run(client, work))
    share.decoding = done.catch(() => {})
    return done
  }

  async #run<T>(client: Pick<Presence, 'isOver'>, work: () => Promise<T>): Promise<T | null> {
    if (this.running < this.#max) this.running += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return client.isOver ? null : await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.running -= 1
      else next()
    }
  }
}

/** Runs jobs after the answer, one at a time, and lets the event loop run in between. Shutdown waits for them. */
export class BackgroundQueue {
  /** Bytes that calls may still copy for their jobs. */
  bytesLeft = LOGGED_BYTES_MAX
  #jobs = 0
  #last: Promise<void> = Promise.resolve()

  get count(): number {
    return this.#jobs
  }

  /** `work` must not reject: the jobs behind it would never run. */
  add(work: () => Promise<void>): void {
    this.#jobs += 1
    this.#last = this.#last.then(async () => {
      await nextTurn()
      await work()
      this.#jobs -= 1
    })
  }
}

/** Memory of a node for bodies that wait to be logged, of running calls too. */
const LOGGED_BYTES_MAX = 256 * 1024 * 1024
