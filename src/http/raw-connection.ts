import type { Socket } from 'node:net'
import { limits } from '../kernel/limits.ts'
import { type Borrowed, ChunkList, copyIfBorrowed, withBorrowed } from '../kernel/memory.ts'

/** Takes what arrives. None of these may throw. */
export interface RawReceiver {
  readonly data: (chunk: Borrowed) => void
  /** There is room for more to be written. */
  drained(): void
  /** Comes once, and last. */
  closed(): void
}

const KEEP_ALIVE_MS = 60_000

/** A connection that has stopped to speak HTTP: bytes both ways, with back-pressure. */
export class RawConnection {
  readonly #socket: Socket
  #receiver: RawReceiver | null = null
  /** What has come before there was a receiver. */
  #ahead: ChunkList | null = null
  #aheadBytes = 0
  #isDiscarding = false
  #isClosed = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  get isClosed(): boolean {
    return this.#isClosed || this.#socket.destroyed
  }

  /** What the kernel has not taken yet. */
  get bytesWaiting(): number {
    return this.#socket.writableLength
  }

  /** From here on what arrives goes there, beginning with what has come already, before this returns. */
  receive(receiver: RawReceiver): void {
    this.#receiver = receiver
    // An end that has vanished without a word is found out by the kernel: there is no silence that would be too long.
    this.#socket.setKeepAlive(true, KEEP_ALIVE_MS)
    const ahead = this.#ahead
    this.#ahead = null
    for (const chunk of ahead?.all() ?? []) withBorrowed(chunk, receiver.data)
    ahead?.clear()
    if (this.#aheadBytes >= limits.bodyBytesAheadMax) this.resume()
    if (this.#isClosed) receiver.closed()
  }

  /** False: there is no room for more before `drained`. */
  write(chunk: Borrowed): boolean {
    return this.isClosed || this.#socket.writableEnded || this.#socket.write(copyIfBorrowed(chunk))
  }

  /** What is written between these two leaves together. */
  cork(): void {
    this.#socket.cork()
  }

  uncork(): void {
    this.#socket.uncork()
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    if (this.#socket.isPaused()) this.#socket.resume()
  }

  /** Closes it when all that was written has left, or after this long. What still arrives is thrown away. */
  end(timeoutMs: number): void {
    if (this.isClosed || this.#isDiscarding) return
    this.#isDiscarding = true
    this.resume()
    const timer = setTimeout(() => this.#socket.destroy(), timeoutMs)
    timer.unref()
    this.#socket.once('close', () => clearTimeout(timer))
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  // What follows is the connection's to call.

  arrived(chunk: Borrowed): void {
    if (this.#isDiscarding) return
    if (this.#receiver !== null) {
      this.#receiver.data(chunk)
      return
    }
    this.#ahead ??= new ChunkList()
    this.#ahead.append(chunk)
    this.#aheadBytes += chunk.length
    if (this.#aheadBytes >= limits.bodyBytesAheadMax) this.pause()
  }

  drained(): void {
    this.#receiver?.drained()
  }

  closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#receiver?.closed()
  }
}
