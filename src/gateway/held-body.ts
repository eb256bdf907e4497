import { randomUUID } from 'node:crypto'
import { type FileHandle, open, statfs, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { ChunkList } from '../kernel/chunk-list.ts'
import { limits } from '../kernel/limits.ts'
import { type Borrowed, copyIfBorrowed } from '../kernel/read-buffer.ts'
import type { KeyShare } from './key-shares.ts'

/**
 * A request body that waits for admission: in memory while it is small and there is room, then in a temporary
 * file that has no name from the moment it is open, so that no crash leaves it behind.
 */
export class HeldBody {
  readonly #room: BodyRoom
  readonly #share: KeyShare
  readonly #chunks = new ChunkList()
  #memoryBytes = 0
  #file: FileHandle | null = null
  /** Of the disk, what was taken for it and what of that is written. */
  #diskBytes = 0
  #writtenBytes = 0
  #disposed = false
  length = 0

  constructor(room: BodyRoom, share: KeyShare) {
    this.#room = room
    this.#share = share
  }

  /** Keeps a chunk. Null if that is done; otherwise wait before offering more, or memory would grow. */
  append(chunk: Borrowed): Promise<void> | null {
    this.length += chunk.length
    const fits = this.#file === null && this.#memoryBytes + chunk.length <= limits.bodyMemoryBytesMax
    if (fits && this.#room.tryMemory(chunk.length, this.#share)) {
      this.#memoryBytes += chunk.length
      this.#chunks.append(chunk)
      return null
    }
    return this.#spill(copyIfBorrowed(chunk))
  }

  /** The whole body, or null if part of it is in a file. */
  bytes(): Buffer | null {
    if (this.#file !== null) return null
    return this.#chunks.joined()
  }

  /** The same as it is sent: one piece as it is, several as a list, which spares joining them. */
  pieces(): Buffer | readonly Buffer[] | null {
    if (this.#file !== null) return null
    const pieces = this.#chunks.all()
    const [only] = pieces
    return pieces.length === 1 && only !== undefined ? only : pieces
  }

  /** Its first bytes, wherever they are. */
  async beginning(bytesMax: number): Promise<Buffer> {
    const parts: Buffer[] = []
    let bytes = 0
    for await (const part of this.parts()) {
      parts.push(part)
      bytes += part.length
      if (bytes >= bytesMax) break
    }
    return Buffer.concat(parts, Math.min(bytes, bytesMax))
  }

  /** The body as a stream, from memory and then from the file. */
  stream(): Readable {
    return Readable.from(this.parts(), { objectMode: false, highWaterMark: 256 * 1024 })
  }

  async *parts(): AsyncGenerator<Buffer> {
    yield* this.#chunks.all()
    if (this.#file === null) return
    yield* this.#file.createReadStream({ start: 0, autoClose: false, highWaterMark: 256 * 1024 })
  }

  /** Gives memory and disk back. May be called again. */
  dispose(): void {
    if (this.#disposed) return
    this.#disposed = true
    this.#room.giveMemoryBack(this.#memoryBytes, this.#share)
    this.#chunks.clear()
    if (this.#file === null) this.#giveDiskBack()
    // Closing waits for what is being written.
    else
      this.#file.close().then(
        () => this.#giveDiskBack(),
        () => this.#giveDiskBack(),
      )
  }

  #giveDiskBack(): void {
    this.#room.giveDiskBack(this.#diskBytes, this.#diskBytes - this.#writtenBytes, this.#share)
    this.#diskBytes = 0
    this.#writtenBytes = 0
  }

  async #spill(chunk: Buffer): Promise<void> {
    if (this.#writtenBytes + chunk.length > this.#diskBytes) {
      const bytes = Math.max(chunk.length, limits.spillStepBytes)
      await this.#room.takeDisk(bytes, this.#share)
      this.#diskBytes += bytes
    }
    if (this.#file === null && !this.#disposed) {
      const path = join(this.#room.tempDir, `body-${randomUUID()}`)
      const file = await open(path, 'wx+', 0o600)
      await unlink(path)
      this.#file = file
      if (this.#disposed) await file.close()
    }
    // The client may have left while the disk was looked at or the file was being opened.
    if (this.#disposed || this.#file === null) return this.#giveDiskBack()
    let written = 0
    while (written < chunk.length) {
      const { bytesWritten } = await this.#file.write(chunk, written)
      written += bytesWritten
      this.#writtenBytes += bytesWritten
      this.#room.wrote(bytesWritten)
    }
  }
}

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
    // Before the disk is looked at, so that two that look at the same time do not take the same room.
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
