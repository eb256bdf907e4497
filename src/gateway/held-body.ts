import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { limits } from '../kernel/limits.ts'
import { type Borrowed, ChunkList, copyIfBorrowed } from '../kernel/memory.ts'
import type { BodyRoom, KeyShare } from './key-shares.ts'

const PART_BYTES = 256 * 1024

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
    return Readable.from(this.parts(), { objectMode: false, highWaterMark: PART_BYTES })
  }

  /** Each time from the beginning. A stream of the file would close it where it is not read to its end. */
  async *parts(): AsyncGenerator<Buffer> {
    yield* this.#chunks.all()
    for (let at = 0; this.#file !== null; ) {
      const part = Buffer.allocUnsafe(PART_BYTES)
      const { bytesRead } = await this.#file.read(part, 0, PART_BYTES, at)
      if (bytesRead === 0) return
      at += bytesRead
      yield part.subarray(0, bytesRead)
    }
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
      this.#file = file
      await unlink(path)
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
