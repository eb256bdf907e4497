import { statfs } from 'node:fs/promises'
import { limits } from '../kernel/limits.ts'
import type { KeyShare } from './key-shares.ts'

export interface BodyRoomParts {
  readonly tempDir: string
  readonly memoryBytesMax: number
  readonly spilledBytesMax: number
  /** What is left of the disk that the temporary files are on. */
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
  /** Of that, what was promised to bodies and is not on the disk yet. */
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

  /** Takes disk for a body, or throws why there is none. The books may be on it, and must never find it full. */
  async takeDisk(bytes: number, share: KeyShare): Promise<void> {
    const { spilledBytesMax } = this.#parts
    if (share.spilledBytes + bytes > partOf(spilledBytesMax, this.#spilledBytes - share.spilledBytes)) {
      const whose =
        share.spilledBytes === 0 ? 'too many large ones are held' : 'those of this key fill its part'
      throw new NoBodyRoom(`There is no room to hold the request body: ${whose} already.`)
    }
    // Before the disk is looked at, so that those who look at the same time do not take the same room.
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

/** What one key may take beside the others: however many fill their parts, there is room for the next. */
function partOf(bytesMax: number, othersBytes: number): number {
  return (bytesMax - othersBytes) * limits.bodiesPartPerKeyMax
}

export async function freeBytesOf(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir)
  return bavail * bsize
}
