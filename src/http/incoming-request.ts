import { ChunkList } from '../kernel/chunk-list.ts'
import { limits } from '../kernel/limits.ts'
import type { MessageHead } from './message-reader.ts'
import { copyText } from './raw-headers.ts'

export interface BodyReceiver {
  /** Called with each chunk, which is valid until this returns. If this returns false, call `resume()` later. */
  data(chunk: Buffer): boolean
  end(): void
  /** Called when the client has left, or with a message for the client if it was too slow. No data follows. */
  broken(tooSlow: string | null): void
}

/** How slowly a body may arrive: its longest pause, and its minimum rate in each period of this length. */
export interface BodyTimes {
  readonly idleTimeoutMs: number
  /** The minimum rate; 0 means no limit. */
  readonly bytesPerSecondMin: number
}

class BodyPace {
  readonly #times: BodyTimes
  #periodSinceMs: number
  #silentSinceMs: number
  #bytesInPeriod = 0
  #bytesAtLastCheck = 0

  constructor(times: BodyTimes, nowMs: number) {
    this.#times = times
    this.#periodSinceMs = nowMs
    this.#silentSinceMs = nowMs
  }

  arrived(bytes: number): void {
    this.#bytesInPeriod += bytes
  }

  pausedFor(ms: number): void {
    this.#periodSinceMs += ms
    this.#silentSinceMs += ms
  }

  /** The message for a client that is too slow; null if it is not. */
  check(nowMs: number): string | null {
    const { idleTimeoutMs, bytesPerSecondMin } = this.#times
    const tookMs = nowMs - this.#periodSinceMs
    const bytes = this.#bytesInPeriod
    if (bytes !== this.#bytesAtLastCheck) this.#silentSinceMs = nowMs
    this.#bytesAtLastCheck = bytes
    if (nowMs - this.#silentSinceMs >= idleTimeoutMs)
      return `No byte of the request body arrived for ${Math.round(idleTimeoutMs / 1_000)} s. Retry.`
    if (tookMs < idleTimeoutMs) return null
    this.#periodSinceMs = nowMs
    this.#bytesInPeriod = 0
    this.#bytesAtLastCheck = 0
    if (bytes * 1_000 >= bytesPerSecondMin * tookMs) return null
    return `The request body arrives too slowly: less than ${bytesPerSecondMin} bytes a second. Retry on a faster connection.`
  }
}

export interface RequestSource {
  readonly remoteAddress: string
  readonly isEncrypted: boolean
  readonly memory: ConnectionMemory
  monotonicMs(): number
  /** Called when `isFull` may have changed. */
  flowChanged(): void
  destroy(): void
}

const DISCARD: BodyReceiver = { data: () => true, end() {}, broken() {} }

/** An incoming request. The head is available at once; the body is passed to a receiver. */
export class IncomingRequest {
  readonly head: MessageHead
  readonly source: RequestSource
  #complete = false
  #ended = false
  #receiver: BodyReceiver | null = null
  #paused = false
  #pausedMs = 0
  #waiting: ChunkList | null = null
  #passedChunks = 0
  #waitingBytes = 0
  #pace: BodyPace | null = null
  #discardUntilMs = Infinity

  constructor(head: MessageHead, source: RequestSource) {
    this.head = head
    this.source = source
  }

  get complete(): boolean {
    return this.#complete
  }

  get isFull(): boolean {
    if (this.#complete) return false
    return this.#paused || this.#waitingBytes >= limits.bodyBytesAheadMax
  }

  /** Passes the body to the receiver. Bytes that have already arrived are passed before this returns. */
  receive(receiver: BodyReceiver, times: BodyTimes | null = null): void {
    this.#receiver = receiver
    this.#pace = times && new BodyPace(times, this.source.monotonicMs())
    this.#paused = false
    this.#flow()
  }

  release(): void {
    this.#receiver = null
  }

  pause(): void {
    this.#stop()
    this.source.flowChanged()
  }

  resume(): void {
    if (!this.#paused) return
    // The client could not send while we did not read, so this time does not count.
    this.#pace?.pausedFor(this.source.monotonicMs() - this.#pausedMs)
    this.#paused = false
    this.#flow()
  }

  /**
   * Reads and discards the rest of the body. If the connection were closed instead, a reset could overtake the answer.
   * After `timeoutMs`, the connection is destroyed.
   */
  discard(timeoutMs: number = limits.earlyAnswerDrainMs): void {
    this.receive(DISCARD)
    this.#discardUntilMs = this.source.monotonicMs() + timeoutMs
  }

  checkTimeouts(nowMs: number): void {
    if (nowMs >= this.#discardUntilMs) this.source.destroy()
    if (this.#pace === null || this.#receiver === null || this.#paused) return
    const tooSlow = this.#pace.check(nowMs)
    if (tooSlow !== null) this.#receiver.broken(tooSlow)
  }

  arrived(chunk: Buffer): void {
    this.#pace?.arrived(chunk.length)
    if (this.#receiver !== null && !this.#paused && this.#waiting === null) {
      if (!this.#receiver.data(chunk)) this.pause()
      return
    }
    this.#waiting ??= new ChunkList()
    this.#waiting.append(chunk)
    this.#waitingBytes += chunk.length
  }

  arrivedWhole(): void {
    this.#complete = true
    if (this.#waiting === null) this.#end()
  }

  closed(): void {
    if (!this.#complete) this.#receiver?.broken(null)
  }

  #flow(): void {
    while (this.#waiting !== null && this.#receiver !== null && !this.#paused) {
      const chunk = this.#waiting.all()[this.#passedChunks]
      if (chunk === undefined) {
        this.#waiting.clear()
        this.#waiting = null
        this.#passedChunks = 0
        break
      }
      this.#passedChunks += 1
      this.#waitingBytes -= chunk.length
      if (!this.#receiver.data(chunk)) this.#stop()
    }
    if (this.#waiting === null) this.#end()
    this.source.flowChanged()
  }

  #end(): void {
    if (!this.#complete || this.#ended || this.#receiver === null || this.#paused) return
    this.#ended = true
    this.#receiver.end()
  }

  #stop(): void {
    if (!this.#paused) this.#pausedMs = this.source.monotonicMs()
    this.#paused = true
  }
}

/** Remembers a key and its digest between requests of one connection. */
export class ConnectionMemory {
  #key = ''
  #digest: Buffer | null = null

  digestOf(key: string, compute: (key: string) => Buffer | null): Buffer | null {
    if (this.#digest !== null && this.#key === key) return this.#digest
    const digest = compute(key)
    if (digest === null) return null
    this.#key = copyText(key)
    this.#digest = digest
    return digest
  }
}
