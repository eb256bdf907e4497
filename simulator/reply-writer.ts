import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { wait } from './pace.ts'

/** How long a cut waits for the bytes written before it to leave; a client that reads nothing gets no more. */
const flushMsMax = 1_000

/** Writes pieces of a body with back-pressure, and knows after how many bytes it has to break off. */
export class ReplyWriter {
  readonly #res: ServerResponse
  readonly #signal: AbortSignal
  #bytesLeft: number
  #flushed: Promise<void> = Promise.resolve()

  constructor(res: ServerResponse, signal: AbortSignal, bytesMax = Number.POSITIVE_INFINITY) {
    this.#res = res
    this.#signal = signal
    this.#bytesLeft = bytesMax
  }

  get isCut(): boolean {
    return this.#bytesLeft === 0
  }

  /**
   * Pieces of one batch that have to stay apart are given separate turns of the event loop, because
   * writes of the same turn leave as one segment. Returns whether the caller should go on writing.
   */
  async write(pieces: readonly Buffer[], pauseMs: number | undefined): Promise<boolean> {
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) await (pauseMs === undefined || pauseMs === 0 ? nextTurn() : wait(pauseMs, this.#signal))
      if (this.#signal.aborted) return false
      const bytes = piece.subarray(0, Math.min(piece.length, this.#bytesLeft))
      this.#bytesLeft -= bytes.length
      await this.#writeOne(bytes)
      if (this.isCut) return false
    }
    return !this.#signal.aborted
  }

  /** Resolves when everything written so far was handed to the kernel. */
  async flush(): Promise<void> {
    // The head waits for the first byte of the body, which may never come.
    this.#res.flushHeaders()
    await nextTurn()
    await Promise.race([this.#flushed, wait(flushMsMax, this.#signal)])
  }

  async #writeOne(bytes: Buffer): Promise<void> {
    let hasRoom = true
    this.#flushed = new Promise((resolve) => {
      hasRoom = this.#res.write(bytes, () => resolve())
    })
    if (hasRoom || this.#signal.aborted) return
    // A client that reads slowly stops the generation here; a client that leaves aborts the signal.
    await once(this.#res, 'drain', { signal: this.#signal }).catch(() => undefined)
  }
}
