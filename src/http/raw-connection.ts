import type { Socket } from 'node:net'
import { limits } from '../kernel/limits.ts'
import { ChunkList } from '../kernel/memory.ts'
import { lasting } from './node-sockets.ts'

/** Takes the bytes that arrive, which are its to keep. None of its methods may throw. */
export interface RawReceiver {
  readonly data: (chunk: Buffer) => void
  drained(): void
  closed(): void
}

const KEEP_ALIVE_MS = 60_000

/** A connection that has stopped speaking HTTP: bytes both ways, with back-pressure. */
export class RawConnection {
  readonly #socket: Socket
  #receiver: RawReceiver | null = null
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

  get bytesWaiting(): number {
    return this.#socket.writableLength
  }

  /** From here on chunks go to the receiver, beginning with those that have come already, before this returns. */
  receive(receiver: RawReceiver): void {
    this.#receiver = receiver
    // The kernel finds a peer that has vanished without a word: no silence of a peer is too long by itself.
    this.#socket.setKeepAlive(true, KEEP_ALIVE_MS)
    const ahead = this.#ahead
    this.#ahead = null
    if (ahead !== null) receiver.data(ahead.joined())
    ahead?.clear()
    if (this.#aheadBytes >= limits.bodyBytesAheadMax) this.resume()
    if (this.#isClosed) receiver.closed()
  }

  /** False: there is no room for more before `drained`. */
  write(bytes: Buffer): boolean {
    return this.isClosed || this.#socket.writableEnded || this.#socket.write(bytes)
  }

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

  /** Closes the connection when all that was written has left, or after `timeoutMs`. Bytes that still arrive are thrown away. */
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

  // The methods below are the HTTP connection's to call.

  arrived(chunk: Buffer): void {
    if (this.#isDiscarding) return
    if (this.#receiver !== null) {
      this.#receiver.data(lasting(chunk))
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
