import { statfs } from 'node:fs/promises'
import { clientLeft, type Exchange } from '../http/exchange.ts'
import { limits } from '../kernel/limits.ts'

/** The calls, memory and disk of this node that one key takes. A share is there as long as the key has a call here. */
export class KeyShare {
  readonly name: string
  calls = 0
  memoryBytes = 0
  spilledBytes = 0

  constructor(name: string) {
    this.name = name
  }
}

/** The keys with calls under way. A key that is not in force counts like any other until the store has said so. */
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
    const share = this.#shares.get(digest.toString('latin1'))
    return share !== undefined && share.calls >= this.callsMax ? null : this.enterInAnyCase(digest)
  }

  /** For a call that is under way already, whatever the number of calls. */
  enterInAnyCase(digest: Buffer): KeyShare {
    const name = digest.toString('latin1')
    let share = this.#shares.get(name)
    if (share === undefined) {
      share = new KeyShare(name)
      this.#shares.set(name, share)
    }
    share.calls += 1
    return share
  }

  /** The call is over. */
  leave(share: KeyShare): void {
    share.calls -= 1
    if (share.calls === 0) this.#shares.delete(share.name)
  }
}

export interface BodyRoomParts {
  readonly tempDir: string
  readonly memoryBytesMax: number
  readonly spilledBytesMax: number
  /** The free bytes of the disk that the temporary files are on. */
  freeBytes(): Promise<number>
}

/** Why a body cannot be held, as a sentence for the client. */
export class NoBodyRoom extends Error {}

/** Memory and disk for bodies that wait for admission: how much all of them take, and those of one key. */
export class BodyRoom {
  readonly tempDir: string
  readonly #parts: BodyRoomParts
  #memoryBytes = 0
  #spilledBytes = 0
  /** Spilled bytes that were promised to bodies and are not on the disk yet. */
  #unwrittenBytes = 0

  constructor(parts: BodyRoomParts) {
    this.tempDir = parts.tempDir
    this.#parts = parts
  }

  get memoryBytes(): number {
    return this.#memoryBytes
  }

  get spilledBytes(): number {
    return this.#spilledBytes
  }

  tryMemory(bytes: number, share: KeyShare): boolean {
    const { memoryBytesMax } = this.#parts
    if (share.memoryBytes + bytes > partOf(memoryBytesMax, this.#memoryBytes - share.memoryBytes))
      return false
    this.#memoryBytes += bytes
    share.memoryBytes += bytes
    return true
  }

  giveMemoryBack(bytes: number, share: KeyShare): void {
    this.#memoryBytes -= bytes
    share.memoryBytes -= bytes
  }

  /** Takes disk for a body, or throws why there is none. The books may be on the same disk, and must never find it full. */
  async takeDisk(bytes: number, share: KeyShare): Promise<void> {
    const { spilledBytesMax } = this.#parts
    if (share.spilledBytes + bytes > partOf(spilledBytesMax, this.#spilledBytes - share.spilledBytes)) {
      const whose =
        share.spilledBytes === 0 ? 'too many large ones are held' : 'those of this key fill its part'
      throw new NoBodyRoom(`There is no room to hold the request body: ${whose} already.`)
    }
    // The bytes are counted before the disk is looked at, so that bodies which look at the same time do not take the same room.
    this.#spilledBytes += bytes
    share.spilledBytes += bytes
    this.#unwrittenBytes += bytes
    try {
      const freeBytes = await this.#parts.freeBytes()
      if (freeBytes - this.#unwrittenBytes >= limits.diskFreeBytesMin) return
    } catch (error) {
      this.giveDiskBack(bytes, bytes, share)
      throw error
    }
    this.giveDiskBack(bytes, bytes, share)
    throw new NoBodyRoom('There is no room to hold the request body: the disk is nearly full.')
  }

  wrote(bytes: number): void {
    this.#unwrittenBytes -= bytes
  }

  giveDiskBack(bytes: number, unwrittenBytes: number, share: KeyShare): void {
    this.#spilledBytes -= bytes
    share.spilledBytes -= bytes
    this.#unwrittenBytes -= unwrittenBytes
  }
}

/** The bytes that one key may take beside the others: however many keys fill their parts, there is room for the next key. */
function partOf(bytesMax: number, othersBytes: number): number {
  return (bytesMax - othersBytes) * limits.bodiesPartPerKeyMax
}

export async function freeBytesOf(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir)
  return bavail * bsize
}

/**
 * The memory that bodies of one kind may take together, and the bodies of one key of what other keys leave. A body that
 * gets no room streams instead.
 */
export interface ByteBudget {
  tryTake(bytes: number, keyName: string): boolean
  giveBack(bytes: number, keyName: string): void
}

export function createByteBudget(bytesMax: number): ByteBudget {
  let takenBytes = 0
  const byKey = new Map<string, number>()
  return {
    tryTake(bytes, keyName) {
      const ownBytes = byKey.get(keyName) ?? 0
      if (ownBytes + bytes > partOf(bytesMax, takenBytes - ownBytes)) return false
      takenBytes += bytes
      byKey.set(keyName, ownBytes + bytes)
      return true
    },
    giveBack(bytes, keyName) {
      takenBytes -= bytes
      const ownBytes = (byKey.get(keyName) ?? 0) - bytes
      if (ownBytes > 0) byKey.set(keyName, ownBytes)
      else byKey.delete(keyName)
    },
  }
}

/** A key with bodies that are being decoded or wait to be decoded. */
interface KeyTurns {
  running: number
  /** Bodies that wait, in the order in which they came. */
  readonly waiting: Set<() => void>
}

/**
 * Turns at decoding bodies. A few bodies are decoded at once, and fewer of one key; the others wait. Bodies of one key follow
 * each other in their order, and keys take turns: however many bodies one key sends, another key waits for a few of them only.
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

  /** Does the work when its turn has come. Null, and the work not begun, if the client has left by then. */
  async take<T>(share: KeyShare, exchange: Exchange, work: () => Promise<T>): Promise<T | null> {
    if (!(await this.#enter(share, exchange))) return null
    try {
      return clientLeft(exchange) ? null : await work()
    } finally {
      this.#leave(share)
    }
  }

  /** False: the client left while its body waited. */
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
      // A key that has more bodies waiting goes behind the other keys.
      if (turns.waiting.size > 0) this.#ready.add(share)
      next()
    }
  }
}
