import type { Worker } from 'node:worker_threads'
import { limits } from '../kernel/limits.ts'
import { startThread } from '../kernel/start-thread.ts'

/**
 * Counts the tokens of text that upstream did not count for us: the output of a call that was cut, the input of one
 * that never answered. It is a fallback; whatever is counted here is flagged `estimated`.
 */
export interface TokenCounter {
  /** With OpenAI's o200k vocabulary, which all its models since gpt-4o use. */
  countChat(texts: readonly string[]): Promise<number>
  close(): Promise<void>
}

/**
 * Anthropic publishes no tokenizer for its current models. Its documentation puts a token at about 3.5 English
 * characters; we round up.
 */
const MESSAGES_CHARS_PER_TOKEN = 3.5

export function countMessagesTokens(chars: number): number {
  return Math.ceil(chars / MESSAGES_CHARS_PER_TOKEN)
}

/** Beyond this much text in one call, tokens are taken to have four characters: counting would take seconds. */
const COUNTED_CHARS_MAX = 4 * 1024 * 1024
const CHAT_CHARS_PER_TOKEN = 4

interface Asked {
  readonly texts: readonly string[]
  resolve(tokens: number): void
}

/**
 * The vocabulary takes some 0.4 s to load and 67 MB of memory, and counting a long text some 0.2 ms per thousand
 * characters: all of it in a thread of its own, which starts with the first call that needs it and ends when none has
 * for a while.
 */
export function createTokenCounter(idleMs: number = limits.tokenCounterIdleMs): TokenCounter {
  let worker: Worker | null = null
  let idle: NodeJS.Timeout | null = null
  let nextId = 0
  const waiting = new Map<number, Asked>()

  function open(): Worker {
    const opened = startThread(import.meta.url, 'token-counter-worker')
    opened.unref()
    opened.on('message', ({ id, tokens }: { id: number; tokens: number }) => {
      waiting.get(id)?.resolve(tokens)
      waiting.delete(id)
      if (waiting.size === 0) idle = setTimeout(letGo, idleMs).unref()
    })
    opened.on('error', () => giveUp(opened))
    opened.on('exit', () => giveUp(opened))
    return opened
  }

  /** Nobody waits for it. Whoever comes next gets another one. */
  function letGo(): void {
    const idler = worker
    worker = null
    void idler?.terminate()
  }

  function giveUp(gone: Worker): void {
    if (gone !== worker) return
    worker = null
    for (const { texts, resolve } of waiting.values()) resolve(roughly(texts))
    waiting.clear()
  }

  return {
    countChat(texts) {
      const chars = texts.reduce((sum, text) => sum + text.length, 0)
      if (chars === 0) return Promise.resolve(0)
      if (chars > COUNTED_CHARS_MAX) return Promise.resolve(roughly(texts))
      if (idle !== null) clearTimeout(idle)
      idle = null
      worker ??= open()
      const id = nextId++
      const sent = worker
      return new Promise((resolve) => {
        waiting.set(id, { texts, resolve })
        sent.postMessage({ id, texts })
      })
    },
    async close() {
      if (idle !== null) clearTimeout(idle)
      await worker?.terminate()
    },
  }
}

function roughly(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.ceil(text.length / CHAT_CHARS_PER_TOKEN), 0)
}
