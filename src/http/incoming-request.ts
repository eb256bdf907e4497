import { limits } from '../kernel/limits.ts'
import { ChunkList } from '../kernel/memory.ts'
import type { MessageHead, MessageReceiver } from './message-reader.ts'
import { ownText } from './raw-headers.ts'

export type BodyReceiver = Pick<MessageReceiver, 'data' | 'end'>

export interface RequestSource {
  readonly remoteAddress: string
  readonly isEncrypted: boolean
  readonly memory: ConnectionMemory
  /** Call this when `isFull` may have changed. */
  flowChanged(): void
  destroy(): void
}

const NOWHERE: BodyReceiver = { data: () => true, end() {} }

/** An incoming request: the head at once, the body once there is a receiver. */
export class IncomingRequest {
  readonly method: string
  readonly target: string
  readonly httpVersion: string
  readonly headers: string[]
  readonly keepAlive: boolean
  readonly #source: RequestSource
  #complete = false
  #closed = false
  #ended = false
  #receiver: BodyReceiver | null = null
  #paused = false
  #waiting: ChunkList | null = null
  #given = 0
  #waitingBytes = 0
  #discardTimer: NodeJS.Timeout | null = null

  constructor(head: MessageHead, source: RequestSource) {
    this.method = head.method
    this.target = head.target
    this.httpVersion = head.httpVersion
    this.headers = head.headers
    this.keepAlive = head.keepAlive
    this.#source = source
  }

  get complete(): boolean {
    return this.#complete
  }

  get remoteAddress(): string {
    return this.#source.remoteAddress
  }

  get isEncrypted(): boolean {
    return this.#source.isEncrypted
  }

  get memory(): ConnectionMemory {
    return this.#source.memory
  }

  get isFull(): boolean {
    if (this.#complete) return false
    return this.#paused || this.#waitingBytes >= limits.bodyBytesAheadMax
  }

  /** From now on the body goes to the receiver. Bytes that have already arrived are passed before this returns. */
  receive(receiver: BodyReceiver): void {
    this.#receiver = receiver
    this.#paused = false
    this.#flow()
  }

  release(): void {
    this.#receiver = null
  }

  pause(): void {
    this.#paused = true
    this.#source.flowChanged()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#flow()
  }

  /** Reads and discards the rest of the body. After `timeoutMs`, if given, the connection is destroyed. */
  discard(timeoutMs?: number): void {
    this.receive(NOWHERE)
    if (timeoutMs === undefined || this.#complete || this.#closed) return
    this.#stopDiscarding()
    this.#discardTimer = setTimeout(() => this.#source.destroy(), timeoutMs)
    this.#discardTimer.unref()
  }

  arrived(chunk: Buffer): void {
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
    this.#stopDiscarding()
    if (this.#waiting === null) this.#end()
  }

  closed(): void {
    this.#closed = true
    this.#stopDiscarding()
  }

  #flow(): void {
    while (this.#waiting !== null && this.#receiver !== null && !this.#paused) {
      const chunk = this.#waiting.all()[this.#given]
      if (chunk === undefined) {
        this.#waiting.clear()
        this.#waiting = null
        this.#given = 0
        break
      }
      this.#given += 1
      this.#waitingBytes -= chunk.length
      if (!this.#receiver.data(chunk)) this.#paused = true
    }
    if (this.#waiting === null) this.#end()
    this.#source.flowChanged()
  }

  #end(): void {
    if (!this.#complete || this.#ended || this.#receiver === null || this.#paused) return
    this.#ended = true
    this.#receiver.end([])
  }

  #stopDiscarding(): void {
    if (this.#discardTimer !== null) clearTimeout(this.#discardTimer)
    this.#discardTimer = null
  }
}

export interface BodyTimes {
  readonly idleTimeoutMs: number
  /** Minimum rate over any period of `idleTimeoutMs`; 0: no limit. */
  readonly bytesPerSecondMin: number
  monotonicMs(): number
}

/** Ends a body that stalls or is too slow, by its rate over the idle timeout. */
export class BodyPace {
  readonly #times: BodyTimes
  readonly #onLate: (message: string) => void
  #silence: NodeJS.Timeout | null = null
  #sinceMs: number
  #bytes = 0
  #pausedMs: number | null = null

  constructor(times: BodyTimes, onLate: (message: string) => void) {
    this.#times = times
    this.#onLate = onLate
    this.#sinceMs = times.monotonicMs()
  }

  watchSilence(): void {
    const { idleTimeoutMs } = this.#times
    if (this.#silence !== null) clearTimeout(this.#silence)
    const message = `No byte of the request body arrived for ${Math.round(idleTimeoutMs / 1_000)} s. Retry.`
    this.#silence = setTimeout(() => this.#onLate(message), idleTimeoutMs)
  }

  arrived(bytes: number): boolean {
    const { idleTimeoutMs, bytesPerSecondMin } = this.#times
    this.#silence?.refresh()
    this.#bytes += bytes
    const nowMs = this.#times.monotonicMs()
    const tookMs = nowMs - this.#sinceMs
    if (tookMs < idleTimeoutMs) return true
    const isEnough = this.#bytes * 1_000 >= bytesPerSecondMin * tookMs
    this.#sinceMs = nowMs
    this.#bytes = 0
    if (!isEnough)
      this.#onLate(`The request body comes too slowly: less than ${bytesPerSecondMin} bytes a second.`)
    return isEnough
  }

  /** While we do not read, the client cannot send, so the clock stops. */
  paused(): void {
    this.#pausedMs ??= this.#times.monotonicMs()
    if (this.#silence !== null) clearTimeout(this.#silence)
  }

  resumed(): void {
    if (this.#pausedMs === null) return
    this.#sinceMs += this.#times.monotonicMs() - this.#pausedMs
    this.#pausedMs = null
    if (this.#silence !== null) this.watchSilence()
  }

  stop(): void {
    if (this.#silence !== null) clearTimeout(this.#silence)
    this.#silence = null
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
    this.#key = ownText(key)
    this.#digest = digest
    return digest
  }
}
