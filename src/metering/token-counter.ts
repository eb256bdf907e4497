import type { Worker } from 'node:worker_threads'
import { limits } from '../kernel/limits.ts'
import { startThread } from '../kernel/start-thread.ts'
import type { CountAnswer, CountOrder } from './count-turns.ts'
import { type CountedAs, roughBodyTokens, roughRequestTokens, roughTokens } from './rough-tokens.ts'

/**
 * Counts the tokens of text that upstream did not count for us: the output of a call that was cut, the input of a call
 * that never got an answer. It is a fallback: tokens counted here are flagged `estimated`. No count takes longer than
 * `limits.tokenCountMs`: text that is not counted by then, or when the counter closes, is estimated by its length.
 */
export interface TokenCounter {
  /** Counts with OpenAI's o200k vocabulary, which all its models since gpt-4o use. */
  countChat(texts: readonly string[]): Promise<number>
  /** Counts the prompt text in a plain JSON body. The bytes must not change until the count is done. */
  countRequest(countedAs: CountedAs, body: Buffer | readonly Buffer[]): Promise<number>
  /** A count for Chat is about to come: the vocabulary, which takes a while to load, is loaded meanwhile. */
  warm(): void
  /** All counts under way end at once with rough figures, and so does every later count. */
  close(): Promise<void>
}

/** Text of Messages is counted without a vocabulary, since there is none. For delivered output, of which little is kept. */
export function countMessagesTokens(texts: readonly string[]): number {
  return roughTokens(texts, 'messages')
}

/** The text that is to be counted for a call, and its rough figure where no count is to be had. */
interface Asked {
  first(id: number): CountOrder
  /** Null if all of the text was sent. */
  next(id: number, answer: CountAnswer): CountOrder | null
  result(answer: CountAnswer): number
  roughly(): number
}

interface Waiting {
  readonly asked: Asked
  readonly deadline: NodeJS.Timeout
  resolve(tokens: number): void
}

export interface CounterTimes {
  readonly idleMs: number
  readonly countMs: number
}

/**
 * The vocabulary takes some 0.3 s to load and 67 MB of memory, and counting a long text some 0.2 ms per thousand
 * characters: all of it in a thread of its own, which starts with the first call that needs it and ends when no call
 * has needed it for a while. The main thread only sends a body over in small pieces.
 */
export function createTokenCounter(options: Partial<CounterTimes> = {}): TokenCounter {
  const { idleMs = limits.tokenCounterIdleMs, countMs = limits.tokenCountMs } = options
  let worker: Worker | null = null
  let idle: NodeJS.Timeout | null = null
  let nextId = 0
  let isClosed = false
  const waiting = new Map<number, Waiting>()

  function open(): Worker {
    const opened = startThread(
      import.meta.url,
      'token-counter-worker',
      undefined,
      limits.tokenCounterHeapMegabytes,
    )
    opened.on('message', onAnswer)
    opened.on('error', () => giveUp(opened))
    opened.on('exit', () => giveUp(opened))
    // After the listeners: a listener for messages would keep the process alive again.
    opened.unref()
    return opened
  }

  function onAnswer(answer: CountAnswer): void {
    const asked = waiting.get(answer.id)?.asked
    if (asked === undefined) return
    const order = asked.next(answer.id, answer)
    if (order === null) end(answer.id, asked.result(answer))
    else send(order)
  }

  /** Where the system has no thread left, `open` throws: the text is then taken by its length. */
  function send(order: CountOrder): void {
    try {
      worker ??= open()
      worker.postMessage(order, order.kind === 'body' ? [order.piece.buffer as ArrayBuffer] : [])
    } catch {
      end(order.id, waiting.get(order.id)?.asked.roughly() ?? 0)
    }
  }

  function end(id: number, tokens: number): void {
    const ended = waiting.get(id)
    if (ended === undefined) return
    waiting.delete(id)
    clearTimeout(ended.deadline)
    ended.resolve(tokens)
    if (waiting.size === 0 && !isClosed) idle = setTimeout(letGo, idleMs).unref()
  }

  function endLate(id: number): void {
    const late = waiting.get(id)
    if (late === undefined) return
    send({ kind: 'drop', id })
    end(id, late.asked.roughly())
  }

  function endAllRoughly(): void {
    for (const [id, { asked }] of waiting) end(id, asked.roughly())
  }

  /** Ends the idle thread. The next count starts another thread. */
  function letGo(): void {
    const idler = worker
    worker = null
    void idler?.terminate()
  }

  function giveUp(gone: Worker): void {
    if (gone !== worker) return
    worker = null
    endAllRoughly()
  }

  function count(asked: Asked): Promise<number> {
    if (isClosed || waiting.size >= limits.tokenCountsWaitingMax) return Promise.resolve(asked.roughly())
    if (idle !== null) clearTimeout(idle)
    idle = null
    const id = nextId++
    return new Promise((resolve) => {
      const deadline = setTimeout(endLate, countMs, id).unref()
      waiting.set(id, { asked, deadline, resolve })
      send(asked.first(id))
    })
  }

  return {
    async countChat(texts) {
      return texts.every((text) => text === '') ? 0 : await count(askForTexts(texts))
    },
    async countRequest(countedAs, body) {
      const asked = new AskedBody(countedAs, Buffer.isBuffer(body) ? [body] : body)
      return asked.isEmpty ? 0 : await count(asked)
    },
    warm() {
      void this.countChat(['.'])
    },
    async close() {
      isClosed = true
      if (idle !== null) clearTimeout(idle)
      endAllRoughly()
      await worker?.terminate()
    },
  }
}

function askForTexts(texts: readonly string[]): Asked {
  return {
    first: (id) => ({ kind: 'texts', id, texts }),
    next: () => null,
    result: ({ tokens }) => tokens,
    roughly: () => roughTokens(texts, 'chat'),
  }
}

/** A body on its way to the counting thread. At no time is more than a piece of it there, or copied at once. */
class AskedBody implements Asked {
  readonly #countedAs: CountedAs
  readonly #chunks: readonly Buffer[]
  readonly #bytes: number
  /** The next chunk to be sent, how much of it was sent, and how much of the whole body. */
  #chunk = 0
  #from = 0
  #sentBytes = 0
  /** The tokens counted so far, and in how many bytes of the body. */
  #counted = 0
  #countedBytes = 0

  constructor(countedAs: CountedAs, chunks: readonly Buffer[]) {
    this.#countedAs = countedAs
    this.#chunks = chunks
    this.#bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  first(id: number): CountOrder {
    const piece = this.#nextPiece()
    const isLast = this.#sentBytes === this.#bytes
    return { kind: 'body', id, countedAs: this.#countedAs, piece, isLast }
  }

  next(id: number, { kind, tokens }: CountAnswer): CountOrder | null {
    this.#counted = tokens
    this.#countedBytes = this.#sentBytes
    return kind === 'done' ? null : this.first(id)
  }

  result({ tokens, isUnread }: CountAnswer): number {
    return isUnread ? roughBodyTokens(this.#bytes) : tokens
  }

  roughly(): number {
    if (this.#countedBytes === 0) return roughRequestTokens(this.#countedAs, this.#chunks, this.#bytes)
    return this.#counted + roughBodyTokens(this.#bytes - this.#countedBytes)
  }

  /** A copy, which is transferred to the other thread: the chunks are slabs, which will hold other bodies. */
  #nextPiece(): Uint8Array {
    const piece = new Uint8Array(Math.min(limits.countedPieceBytes, this.#bytes - this.#sentBytes))
    for (let at = 0; at < piece.length; ) {
      const chunk = this.#chunks[this.#chunk] as Buffer
      const part = chunk.subarray(this.#from, this.#from + piece.length - at)
      piece.set(part, at)
      at += part.length
      this.#from += part.length
      if (this.#from < chunk.length) continue
      this.#chunk += 1
      this.#from = 0
    }
    this.#sentBytes += piece.length
    return piece
  }
}
