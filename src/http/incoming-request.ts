import { ChunkList } from '../kernel/chunk-list.ts'
import { limits } from '../kernel/limits.ts'
import { lend } from '../kernel/read-buffer.ts'
import type { ConnectionMemory } from './connection-memory.ts'
import type { MessageHead } from './message-head.ts'

/** Who takes a body in. */
export interface BodySink {
  /** The chunk is good until this returns. */
  data(chunk: Buffer): void
  /** The body is whole. */
  end(): void
}

/** The connection that a request comes in on. */
export interface RequestSource {
  readonly remoteAddress: string
  readonly memory: ConnectionMemory
  /** To be called when more or less may be read; the connection asks `isFull` then. */
  flowChanged(): void
  destroy(): void
}

const NOWHERE: BodySink = { data() {}, end() {} }

/** A request as it comes in: its head at once, its body when somebody takes it. */
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
  #sink: BodySink | null = null
  #paused = false
  /** What has come while nobody took it, and how much of that has been given since. */
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

  /** All of it has arrived. */
  get complete(): boolean {
    return this.#complete
  }

  get remoteAddress(): string {
    return this.#source.remoteAddress
  }

  get memory(): ConnectionMemory {
    return this.#source.memory
  }

  /** No more of it should be read for now. */
  get isFull(): boolean {
    if (this.#complete) return false
    return this.#paused || this.#waitingBytes >= limits.bodyBytesAheadMax
  }

  /** From here on the body goes there, beginning with what has come already, before this returns. */
  receive(sink: BodySink): void {
    this.#sink = sink
    this.#paused = false
    this.#flow()
  }

  /** Nobody takes it in any more. */
  release(): void {
    this.#sink = null
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

  /** Reads the rest and throws it away. What takes longer than this ends with the connection; without it never. */
  discard(timeoutMs?: number): void {
    this.receive(NOWHERE)
    if (timeoutMs === undefined || this.#complete || this.#closed) return
    this.#stopDiscarding()
    this.#discardTimer = setTimeout(() => this.#source.destroy(), timeoutMs)
    this.#discardTimer.unref()
  }

  // What follows is the connection's to call.

  arrived(chunk: Buffer): void {
    if (this.#sink !== null && !this.#paused && this.#waiting === null) {
      this.#sink.data(chunk)
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

  /** The connection is gone. */
  closed(): void {
    this.#closed = true
    this.#stopDiscarding()
  }

  #flow(): void {
    while (this.#waiting !== null && this.#sink !== null && !this.#paused) {
      const chunk = this.#waiting.all()[this.#given]
      if (chunk === undefined) {
        this.#waiting.clear()
        this.#waiting = null
        this.#given = 0
        break
      }
      this.#given += 1
      this.#waitingBytes -= chunk.length
      const sink = this.#sink
      lend(chunk, (bytes) => sink.data(bytes))
    }
    if (this.#waiting === null) this.#end()
    this.#source.flowChanged()
  }

  #end(): void {
    if (!this.#complete || this.#ended || this.#sink === null || this.#paused) return
    this.#ended = true
    this.#sink.end()
  }

  #stopDiscarding(): void {
    if (this.#discardTimer !== null) clearTimeout(this.#discardTimer)
    this.#discardTimer = null
  }
}
