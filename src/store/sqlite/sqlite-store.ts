import { once } from 'node:events'
import { existsSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import { StoreGone, StoreUnavailable } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { startThread } from '../../kernel/runtime.ts'
import type { Admission, Settled } from '../../ledger/call.ts'
import { Batcher, createLoad, type Outcome } from '../batcher.ts'
import { eventCountMemory } from '../operations/events.ts'
import { asyncMethods } from '../operations/operation.ts'
import { BODIES, BRIEF, READS, REFUSED, type Store } from '../store.ts'
import { bodiesFileOf } from './bodies-file.ts'
import {
  type Command,
  decodeOutcomes,
  encodeCommands,
  errorOf,
  isCallCommand,
  type OutcomesMessage,
  type SideOptions,
  type ThreadFailure,
  type WorkerOptions,
} from './thread-messages.ts'

/** One thread writes and runs brief operations. Two more, started on demand, read many rows and store bodies. */
export async function openSqliteStore(
  file: string,
  onFatal: (error: Error) => void,
  diskFault: SharedArrayBuffer | null = null,
): Promise<Store> {
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const { load, recordCommit } = createLoad(() => writer.waiting)
  const workerData: WorkerOptions = { file, bell: bell.buffer, diskFault, events: eventCountMemory() }
  const thread = startThread(import.meta.url, 'worker', workerData)
  // Rejects if the thread fails.
  await once(thread, 'message')
  const reader = createSideThread({ kind: 'reader', file }, limits.readQueueMax)
  const bodiesFile = bodiesFileOf(file)
  const bodies = createSideThread({ kind: 'bodies', file: bodiesFile })
  const writer = createThreadClient({
    ...{ name: 'thread', thread, batchMax: Infinity, bell },
    onCommit: (commands, ms) => recordCommit(commands.filter(isCallCommand).length, ms),
    onGone(error) {
      void reader.close()
      void bodies.close()
      onFatal(error)
    },
  })
  return {
    load,
    ...asyncMethods({ ...BRIEF, ...REFUSED }, submitTo(writer)),
    ...asyncMethods(READS, submitTo(reader)),
    ...asyncMethods(BODIES, async (name, args) => {
      // If no body was ever logged, there is nothing to read: do not start the thread.
      if (name === 'storeBodies' || existsSync(bodiesFile)) return await submitTo(bodies)(name, args)
      return name === 'getBodies' ? null : 0
    }),
    admit: (opening) => writer.submit(['admit', opening]) as Promise<Admission>,
    settle: (closing) => writer.submit(['settle', closing]) as Promise<Settled>,
    interruptOpenCalls: (atMs) => writer.submit(['interruptOpenCalls', atMs]) as Promise<number>,
    async close() {
      // Close the reader first: the last connection to close checkpoints the write-ahead log, and a reader cannot.
      await Promise.all([reader.close(), bodies.close()])
      await writer.close()
    },
  }
}

/** A side thread answers commands one by one. Admission and settlement do not depend on it. */
function createSideThread(options: SideOptions, waitingMax: number = limits.storeQueueMax): ThreadClient {
  const thread = () => startThread(import.meta.url, 'side-worker', options)
  return createThreadClient({ name: options.kind, thread, batchMax: 1, waitingMax })
}

function submitTo({ submit }: ThreadClient): (name: string, args: readonly unknown[]) => Promise<unknown> {
  return (name, args) => submit([name, ...args] as unknown as Command)
}

interface ThreadOptions {
  readonly name: string
  /** A running thread, or a function that starts one on demand. */
  readonly thread: Worker | (() => Worker)
  readonly batchMax: number
  readonly waitingMax?: number
  /** Incremented with each message, for a thread that waits on this counter instead of in its event loop. */
  readonly bell?: Int32Array
  onCommit?(commands: readonly Command[], ms: number): void
  /** Called if the thread ends, which closes the store. Without it, the next command starts another thread. */
  onGone?(error: Error): void
}

type ThreadClient = Pick<Batcher<Command, unknown>, 'submit' | 'waiting' | 'close'>

function createThreadClient(options: ThreadOptions): ThreadClient {
  const { thread, name, bell, onGone } = options
  let worker: Worker | null = typeof thread === 'function' ? null : listen(thread)
  let running: PromiseWithResolvers<readonly Outcome<unknown>[]> | null = null
  let gone: Error | null = null
  let closing: Promise<void> | null = null

  function listen(started: Worker): Worker {
    started.on('message', receive)
    started.on('error', (error) => onThreadEnd(started, `the database's ${name} failed: ${error.message}`))
    started.on('exit', (code) => onThreadEnd(started, `the database's ${name} ended with code ${code}`))
    return started
  }

  function receive(message: OutcomesMessage): void {
    if (typeof message === 'object' && 'ok' in message) {
      if (!endsStore(message)) running?.reject(errorOf(message))
      return
    }
    const outcomes = decodeOutcomes(message)
    if (outcomes.some((outcome) => !outcome.ok && endsStore(outcome))) return
    running?.resolve(
      outcomes.map((outcome) => (outcome.ok ? outcome : { ok: false, error: errorOf(outcome) })),
    )
  }

  /**
   * After a failed fsync the kernel may have dropped the pages, and a retry would falsely succeed. Admit nothing more: a
   * restart reads what is really on disk.
   */
  function endsStore({ isFatal, error }: ThreadFailure): boolean {
    if (!isFatal || onGone === undefined) return false
    onThreadEnd(worker, `the disk failed: ${error}`)
    return true
  }

  function onThreadEnd(lost: Worker | null, reason: string): void {
    if (worker !== lost || gone !== null) return
    worker = null
    if (onGone === undefined) {
      running?.reject(new StoreUnavailable(reason))
      return
    }
    gone = new StoreGone(reason)
    running?.reject(gone)
    void lost?.terminate()
    onGone(gone)
  }

  function post(message: unknown): void {
    worker?.postMessage(message)
    if (bell === undefined) return
    Atomics.add(bell, 0, 1)
    Atomics.notify(bell, 0)
  }

  function send(commands: readonly Command[]): Promise<readonly Outcome<unknown>[]> {
    if (gone !== null) return Promise.reject(gone)
    if (typeof thread === 'function') worker ??= listen(thread())
    running = Promise.withResolvers()
    post(encodeCommands(commands))
    return running.promise
  }

  async function end(): Promise<void> {
    await batcher.close()
    const last = worker
    if (last === null) return
    gone = new StoreGone('the database is closed')
    const ended = new Promise((resolve) => last.once('exit', resolve))
    post('close')
    await ended
  }

  const batcher = new Batcher<Command, unknown>({ ...options, send, isEager: true })
  return {
    submit: (command) => batcher.submit(command),
    get waiting() {
      return batcher.waiting
    },
    close() {
      closing ??= end()
      return closing
    },
  }
}
