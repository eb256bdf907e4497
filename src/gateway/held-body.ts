import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { clientLeft, type Exchange } from '../http/exchange.ts'
import { BodyPace, type BodyTimes } from '../http/incoming-request.ts'
import { type Denial, type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { type Borrowed, ChunkList, copyIfBorrowed } from '../kernel/memory.ts'
import { type BodyRoom, type KeyShare, NoBodyRoom } from './key-shares.ts'

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
  /** Bytes of the disk that were taken for the body, and how many of them are written. */
  #diskBytes = 0
  #writtenBytes = 0
  #disposed = false
  length = 0

  constructor(room: BodyRoom, share: KeyShare) {
    this.#room = room
    this.#share = share
  }

  /** Keeps a chunk. Null if the chunk is kept; otherwise wait for the promise before offering more, or memory would grow. */
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

  /** The whole body as it is sent: a single piece as it is, several pieces as a list, which spares joining them. */
  pieces(): Buffer | readonly Buffer[] | null {
    if (this.#file !== null) return null
    const pieces = this.#chunks.all()
    const [only] = pieces
    return pieces.length === 1 && only !== undefined ? only : pieces
  }

  /** The first bytes of the body, from memory and then from the file. */
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

  /** The body in parts, each time from the beginning. A stream of the file would close the file if not read to its end. */
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
    // Closing waits for writes that are under way.
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

export interface ReceiveOptions {
  readonly room: BodyRoom
  readonly times: BodyTimes
}

/** The key that sends the body. */
export interface Sender {
  readonly share: KeyShare
  /** Asks whether the key may send a body. Null: that was asked already. */
  readonly checkKey: (() => Promise<Denial | null>) | null
}

/** Sees each chunk as it arrives. A promise means: wait for it before the next chunk. */
interface Looker {
  readonly write: (chunk: Borrowed) => Promise<void> | null
}

export type Received =
  | { readonly kind: 'received'; readonly body: HeldBody }
  | ({ readonly kind: 'refused' } & Denial)
  | { readonly kind: 'client_left' }

/**
 * Takes the request's body in, whole, with a limit on its size, on its silence and on its slowness. If the body does not come
 * at once, the store is asked about the key meanwhile: without a key in force a slow client would keep its connection.
 */
export function receiveBody(
  exchange: Exchange,
  options: ReceiveOptions,
  sender: Sender,
  looker: Looker | null,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const { req, res } = exchange
    if (clientLeft(exchange)) return resolve({ kind: 'client_left' })
    const { room, times } = options
    const body = new HeldBody(room, sender.share)
    let finished = false

    function finish(result: Received | null): void {
      if (finished) return
      finished = true
      clearTimeout(keyTimer)
      pace?.stop()
      req.release()
      res.whenClosed.remove(onLeft)
      if (result?.kind !== 'received') body.dispose()
      if (result !== null) resolve(result)
    }

    let pace: BodyPace | null = null
    /** The timer for the question about the key: arriving bytes do not put the question off. */
    let keyTimer: NodeJS.Timeout | undefined
    /** Most bodies come in one piece with their head, and need no timers. */
    function waitForMore(): void {
      if (finished) return
      res.whenClosed.add(onLeft)
      pace = new BodyPace(times, tooLate)
      if (sender.checkKey === null) pace.watchSilence()
      else keyTimer = setTimeout(checkKey, Math.min(limits.bodyMsBeforeKeyCheck, times.idleTimeoutMs))
    }

    function checkKey(): void {
      pace?.watchSilence()
      sender.checkKey?.().then(
        (denial) => {
          if (denial !== null) finish({ kind: 'refused', ...denial })
        },
        (error: unknown) => {
          finish(null)
          reject(error)
        },
      )
    }

    function tooLate(message: string): void {
      finish(refused(refuse('request_timeout', message, { close: true })))
    }

    function onData(chunk: Borrowed): boolean {
      if (body.length + chunk.length > limits.bodyBytesMax) finish(refused(tooLarge()))
      else if (pace?.arrived(chunk.length) !== false) return take(chunk)
      return true
    }

    /** False: no more chunks before the promises below have resolved. */
    function take(chunk: Borrowed): boolean {
      const looked = looker?.write(chunk) ?? null
      const appended = body.append(chunk)
      if (looked === null && appended === null) return true
      pace?.paused()
      Promise.all([looked, appended]).then(
        () => {
          if (!finished) pace?.resumed()
          req.resume()
        },
        (error: unknown) => {
          const message =
            error instanceof NoBodyRoom ? error.message : 'There is no room to hold the request body.'
          finish(refused(refuse('overloaded', message)))
        },
      )
      return false
    }
    function onEnd(): void {
      finish({ kind: 'received', body })
    }
    function onLeft(): void {
      finish({ kind: 'client_left' })
    }

    req.receive({ data: onData, end: onEnd })
    // The timers start after the piece that is being read now.
    queueMicrotask(waitForMore)
  })
}

/** Refuses at once a body that is announced as too large, before a byte of it is taken in. */
export function refuseAnnouncedLength(contentLength: number | null): Refusal | null {
  return contentLength !== null && contentLength > limits.bodyBytesMax ? tooLarge() : null
}

function refused(refusal: Refusal): Received {
  return { kind: 'refused', refusal, balanceNanos: null }
}

function tooLarge(): Refusal {
  const mebibytes = limits.bodyBytesMax / 1024 / 1024
  return refuse('body_too_large', `The request body is larger than ${mebibytes} MiB.`)
}
