import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { StoreGone, StoreUnavailable } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { startThread } from '../../kernel/start-thread.ts'
import { errorOf, type Outcome } from './outcome.ts'

/** What a thread can be asked, by name. */
type Askable = Record<string, (...args: never[]) => unknown>

export interface LazyThread<Asked extends Askable> {
  ask<Name extends keyof Asked & string>(
    name: Name,
    ...args: Parameters<Asked[Name]>
  ): Promise<ReturnType<Asked[Name]>>
  /** What was asked for before is still answered. */
  close(): Promise<void>
}

interface Waiting {
  readonly command: readonly unknown[]
  resolve(value: unknown): void
  reject(error: Error): void
}

/**
 * The main thread's side of a thread beside the one that admits and settles. Commands are answered one by one, in the
 * order in which they were asked for. The thread is started by the first of them. If it dies, those that wait fail
 * and the next one starts another: nothing that is admitted or booked depends on it.
 */
export function createLazyThread<Asked extends Askable>(
  threadName: string,
  workerData: unknown,
  waitingMax: number = limits.storeQueueMax,
): LazyThread<Asked> {
  let worker: Worker | null = null
  let running: Waiting | null = null
  let queue: Waiting[] = []
  let last: Promise<unknown> = Promise.resolve()
  let closing: Promise<void> | null = null

  function start(): Worker {
    const started = startThread(import.meta.url, threadName, workerData)
    started.on('message', (outcome: Outcome) => {
      const answered = running
      running = null
      sendNext()
      if (outcome.ok) answered?.resolve(outcome.value)
      else answered?.reject(errorOf(outcome))
    })
    started.on('error', (error) => lose(started, `the store's ${threadName} failed: ${error.message}`))
    started.on('exit', (code) => lose(started, `the store's ${threadName} ended with code ${code}`))
    return started
  }

  function lose(lost: Worker, reason: string): void {
    if (worker !== lost) return
    worker = null
    const waiting = running === null ? queue : [running, ...queue]
    running = null
    queue = []
    for (const { reject } of waiting) reject(new StoreUnavailable(reason))
  }

  function sendNext(): void {
    if (running !== null) return
    running = queue.shift() ?? null
    if (running === null) return
    worker ??= start()
    worker.postMessage(running.command)
  }

  async function end(): Promise<void> {
    // The last to be asked is the last to be answered.
    await last.catch(() => {})
    if (worker === null) return
    const ended = once(worker, 'exit')
    worker.postMessage('close')
    await ended
  }

  return {
    ask(name, ...args) {
      if (closing !== null) return Promise.reject(new StoreGone('the store is closed'))
      if (queue.length >= waitingMax) return Promise.reject(new StoreUnavailable('too many operations wait'))
      const answer = new Promise((resolve, reject) => {
        queue.push({ command: [name, ...args], resolve, reject })
        sendNext()
      })
      last = answer
      return answer as Promise<ReturnType<Asked[typeof name]>>
    },

    close() {
      closing ??= end()
      return closing
    },
  }
}
