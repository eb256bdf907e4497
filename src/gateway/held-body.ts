import { Readable } from 'node:stream'
import { clientLeft, type Exchange } from '../http/exchange.ts'
import { BodyPace, type BodyTimes } from '../http/incoming-request.ts'
import { type Denial, type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { ChunkList } from '../kernel/memory.ts'
import { PIECE_BYTES } from '../metering/request-reader.ts'
import type { ByteBudget, KeyShare } from './key-shares.ts'

/**
 * Bodies up to this size are received before the store is asked about the key; larger and compressed ones after.
 * The store is also asked when a body is not whole after this long: most clients send head and body as two packets,
 * and need not be asked about twice.
 */
export const BODY_MS_BEFORE_KEY_CHECK = 100

/** Bodies up to this size always fit, unless their own key has many of them. */
const SMALL_BODY_BYTES = 1024 * 1024

export class HeldBody {
  readonly #memory: ByteBudget
  readonly #keyName: string
  readonly #chunks = new ChunkList()
  #disposed = false
  #smallBytes = 0
  length = 0

  constructor(memory: ByteBudget, keyName: string) {
    this.#memory = memory
    this.#keyName = keyName
  }

  /** Small bodies of a key are counted apart: they fit whatever its large ones take. */
  get #smallName(): string {
    return `${this.#keyName} small`
  }

  append(chunk: Buffer): boolean {
    const length = this.length + chunk.length
    const isSmall = length <= SMALL_BODY_BYTES
    if (!this.#memory.tryTake(chunk.length, isSmall ? this.#smallName : this.#keyName, isSmall)) return false
    if (isSmall) this.#smallBytes = length
    this.length = length
    this.#chunks.append(chunk)
    return true
  }

  bytes(): Buffer {
    return this.#chunks.joined()
  }

  /** The whole body as it is sent: a single piece as it is, several pieces as a list, which spares joining them. */
  pieces(): Buffer | readonly Buffer[] {
    const pieces = this.#chunks.all()
    const [only] = pieces
    return pieces.length === 1 && only !== undefined ? only : pieces
  }

  parts(): readonly Buffer[] {
    return this.#chunks.all()
  }

  beginning(bytesMax: number): Buffer {
    const parts: Buffer[] = []
    let bytes = 0
    for (const part of this.parts()) {
      parts.push(part)
      bytes += part.length
      if (bytes >= bytesMax) break
    }
    return Buffer.concat(parts, Math.min(bytes, bytesMax))
  }

  stream(): Readable {
    return Readable.from(this.parts(), { objectMode: false })
  }

  /** Gives the memory back. May be called again. */
  dispose(): void {
    if (this.#disposed) return
    this.#disposed = true
    this.#memory.giveBack(this.#smallBytes, this.#smallName)
    this.#memory.giveBack(this.length - this.#smallBytes, this.#keyName)
    this.#chunks.clear()
  }
}

export interface ReceiveOptions {
  readonly memory: ByteBudget
  readonly times: BodyTimes
}

export interface Sender {
  readonly share: KeyShare
  readonly checkKey: (() => Promise<Denial | null>) | null
}

/** Sees each chunk as it arrives. A promise means: wait for it before the next chunk. */
interface Looker {
  readonly write: (chunk: Buffer) => Promise<void> | null
}

export type Received =
  | { readonly kind: 'received'; readonly body: HeldBody }
  | ({ readonly kind: 'refused' } & Denial)
  | { readonly kind: 'client_left' }

/**
 * Takes the request's body in, whole, with a limit on its size, on its silence and on its slowness. If the body does not come
 * at once, the store is asked about the key meanwhile: otherwise a slow client with a revoked key would occupy its connection.
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
    const { memory, times } = options
    const body = new HeldBody(memory, sender.share.name)
    let finished = false
    let bytesInTurn = 0

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
    function waitForMore(): void {
      if (finished) return
      res.whenClosed.add(onLeft)
      pace = new BodyPace(times, tooLate)
      if (sender.checkKey === null) pace.watchSilence()
      else keyTimer = setTimeout(checkKey, Math.min(BODY_MS_BEFORE_KEY_CHECK, times.idleTimeoutMs))
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

    function onData(chunk: Buffer): boolean {
      if (body.length + chunk.length > limits.bodyBytesMax) finish(refused(tooLarge()))
      else if (pace?.arrived(chunk.length) !== false) return take(chunk)
      return true
    }

    function take(chunk: Buffer): boolean {
      const looked = looker?.write(chunk) ?? null
      if (!body.append(chunk)) {
        finish(refused(noMemory()))
        return true
      }
      // A body is read a piece in each turn of the event loop, so that other calls come in between.
      bytesInTurn += chunk.length
      const wait = looked ?? (looker !== null && bytesInTurn >= PIECE_BYTES ? nextTurn() : null)
      if (wait === null) return true
      bytesInTurn = 0
      pace?.paused()
      wait.then(
        () => {
          if (!finished) pace?.resumed()
          req.resume()
        },
        (error: unknown) => {
          finish(null)
          reject(error)
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

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

export function refuseAnnouncedLength(contentLength: number | null): Refusal | null {
  return contentLength !== null && contentLength > limits.bodyBytesMax ? tooLarge() : null
}

function refused(refusal: Refusal): Received {
  return { kind: 'refused', refusal, balanceNanos: null }
}

function noMemory(): Refusal {
  return refuse(
    'no_memory',
    'Too many large request bodies are waiting, so there is no memory for this one. Retry soon.',
  )
}

function tooLarge(): Refusal {
  const mebibytes = limits.bodyBytesMax / 1024 / 1024
  return refuse('body_too_large', `The request body is larger than ${mebibytes} MiB.`)
}
