import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { StoreGone, StoreUnavailable } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { startThread } from '../../kernel/runtime.ts'
import type { Admission, Settled } from '../../ledger/call.ts'
import { eventCountMemory, readEventCounts } from '../operations/events.ts'
import { type Methods, methodsOf } from '../operations/operation.ts'
import { BODIES, BRIEF, CommitCounts, READS, REFUSED, type Store, sharedCommitMemory } from '../store.ts'
import {
  type Command,
  errorOf,
  type OutcomesMessage,
  readOutcomes,
  type SideParts,
  type WorkerParts,
  writeBatch,
} from './thread-messages.ts'

/**
 * The main thread's side of the SQLite store: one worker writes and answers quick commands, one answers queries over
 * many rows, one stores bodies. The last two start on demand.
 */
export async function openSqliteStore(
  file: string,
  onFatal: (error: Error) => void,
  diskFault: SharedArrayBuffer | null = null,
): Promise<Store> {
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const commits = sharedCommitMemory()
  const workerData: WorkerParts = { file, bell: bell.buffer, diskFault, commits, events: eventCountMemory() }
  const thread = startThread(import.meta.url, 'worker', workerData)
  await ready(thread)
  const reader = createSideThread({ kind: 'reader', file }, limits.readQueueMax)
  const bodiesFile = join(dirname(file), 'bodies.db')
  const bodies = createSideThread({ kind: 'bodies', file: bodiesFile })
  const writer = createThreadClient({
    ...{ name: 'thread', thread, batchMax: Infinity, bell },
    onGone(error) {
      void reader.close()
      void bodies.close()
      onFatal(error)
    },
  })
  return {
    load: {
      ...new CommitCounts(commits),
      get waiting() {
        return writer.waiting
      },
      get events() {
        return readEventCounts()
      },
    },
    ...methodsOf({ ...BRIEF, ...REFUSED }, writer.ask),
    ...methodsOf(READS, reader.ask),
    ...methodsOf(BODIES, async (name, args) => {
      // If no body was ever logged, do not start a thread to look for one.
      if (name === 'storeBodies' || existsSync(bodiesFile)) return await bodies.ask(name, args)
      return name === 'getBodies' ? null : 0
    }),
    admit: (opening) => writer.ask('admit', [opening]) as Promise<Admission>,
    settle: (closing) => writer.ask('settle', [closing]) as Promise<Settled>,
    interruptOpenCalls: (atMs) => writer.ask('interruptOpenCalls', [atMs]) as Promise<number>,
    async close() {
      // Close the reader first: the last connection to close checkpoints the write-ahead log, and a reader cannot.
      await Promise.all([reader.close(), bodies.close()])
      await writer.close()
    },
  }
}

export function createSqliteReader(
  file: string,
  waitingMax: number = limits.readQueueMax,
): Methods<typeof READS> & Pick<ThreadClient, 'close'> {
  const { ask, close } = createSideThread({ kind: 'reader', file }, waitingMax)
  return { ...methodsOf(READS, ask), close }
}

/** A side thread answers commands one by one. If it dies, waiting commands fail; no booking depends on it. */
function createSideThread(parts: SideParts, waitingMax: number = limits.storeQueueMax): ThreadClient {
  const thread = () => startThread(import.meta.url, 'side-worker', parts)
  return createThreadClient({ name: parts.kind, thread, batchMax: 1, waitingMax })
}

function ready(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', () => {
      worker.off('error', reject)
      resolve()
    })
  })
}

interface ThreadClient {
  ask(name: string, args: readonly unknown[]): Promise<unknown>
  readonly waiting: number
  /** Earlier commands are still answered. */
  close(): Promise<void>
}

interface ThreadParts {
  /** For error messages. */
  readonly name: string
  /** A running thread, or a function that starts one on demand. */
  readonly thread: Worker | (() => Worker)
  /** Maximum commands per batch. */
  readonly batchMax: number
  readonly waitingMax?: number
  /** Incremented when a message is sent to a thread that waits on it instead of in its event loop. */
  readonly bell?: Int32Array
  /** Called if the thread ends, which closes the store. Without this callback, the next command starts another thread. */
  onGone?(error: Error): void
}

interface Waiting {
  readonly command: readonly unknown[]
  resolve(value: unknown): void
  reject(error: Error): void
}

/**
 * The main thread's side of a store thread. Commands queue while the thread runs a batch and form the next one, so
 * batches grow under load and a lone command never waits.
 */
function createThreadClient(parts: ThreadParts): ThreadClient {
  const { thread, name: threadName, batchMax, waitingMax = limits.storeQueueMax, bell } = parts
  let worker: Worker | null = typeof thread === 'function' ? null : listen(thread)
  let queue: Waiting[] = []
  let running: Waiting[] = []
  /** The last batch was a single command. */
  let isQuiet = true
  let gone: Error | null = null
  let closing: Promise<void> | null = null

  function listen(started: Worker): Worker {
    started.on('message', receive)
    started.on('error', (error) => lose(started, `the store's ${threadName} failed: ${error.message}`))
    started.on('exit', (code) => lose(started, `the store's ${threadName} ended with code ${code}`))
    return started
  }

  function receive(message: OutcomesMessage): void {
    const answered = running
    const outcomes = readOutcomes(message)
    const failed = outcomes.filter((outcome) => !outcome.ok)
    const fatal = failed.find((failure) => failure.fatal)
    if (fatal !== undefined && parts.onGone !== undefined) {
      // After a failed fsync the kernel may have dropped the pages, and a retry would falsely succeed. Admit nothing
      // more: a restart reads what is really on disk.
      lose(worker, `the disk failed: ${fatal.error}`)
      return
    }
    running = []
    sendNext()
    for (const [i, waiting] of answered.entries()) {
      const outcome = outcomes[i]
      if (outcome?.ok) waiting.resolve(outcome.value)
      else waiting.reject(errorOf(outcome))
    }
  }

  function lose(lost: Worker | null, reason: string): void {
    if (worker !== lost || gone !== null) return
    worker = null
    const waiting = [...running, ...queue]
    running = []
    queue = []
    const isGone = parts.onGone !== undefined
    const error = isGone ? new StoreGone(reason) : new StoreUnavailable(reason)
    if (isGone) gone = error
    for (const { reject } of waiting) reject(error)
    if (!isGone) return
    void lost?.terminate()
    parts.onGone?.(error)
  }

  function sendNext(): void {
    if (queue.length === 0 || running.length > 0) return
    running = queue.splice(0, batchMax)
    isQuiet = running.length === 1
    if (typeof thread === 'function') worker ??= listen(thread())
    post(writeBatch(running.map(({ command }) => command as unknown as Command)))
  }

  function post(message: unknown): void {
    worker?.postMessage(message)
    if (bell === undefined) return
    Atomics.add(bell, 0, 1)
    Atomics.notify(bell, 0)
  }

  async function end(): Promise<void> {
    while (queue.length > 0 || running.length > 0) await new Promise((resolve) => setImmediate(resolve))
    const last = worker
    if (last === null) return
    gone = new StoreGone('the store is closed')
    const ended = new Promise((resolve) => last.once('exit', resolve))
    post('close')
    await ended
  }

  function ask(name: string, args: readonly unknown[]): Promise<unknown> {
    if (gone !== null) return Promise.reject(gone)
    if (closing !== null) return Promise.reject(new StoreGone('the store is closed'))
    if (queue.length >= waitingMax) return Promise.reject(new StoreUnavailable('too many operations wait'))
    return new Promise((resolve, reject) => {
      queue.push({ command: [name, ...args], resolve, reject })
      if (queue.length > 1 || running.length > 0) return
      // Commands of the same turn of the event loop join the batch, unless the last command came alone.
      if (isQuiet) sendNext()
      else setImmediate(sendNext)
    })
  }

  return {
    ask,
    get waiting() {
      return queue.length
    },

    close() {
      closing ??= end()
      return closing
    },
  }
}
