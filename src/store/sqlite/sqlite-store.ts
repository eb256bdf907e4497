import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { StoreGone, StoreUnavailable } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { startThread } from '../../kernel/start-thread.ts'
import type { Disk } from '../ballast.ts'
import { type BODIES, BRIEF, READS, REFUSED } from '../operations/cold-operations.ts'
import { type Answers, methodsOf } from '../operations/operation.ts'
import type { Store } from '../store.ts'
import { type BatchMessage, writeBatch } from './call-texts.ts'
import { createLazyThread } from './lazy-thread.ts'
import type { Command, OperationName, Operations, WorkerParts } from './operations.ts'
import { errorOf } from './outcome.ts'
import { type OutcomesMessage, readOutcomes } from './outcome-texts.ts'
import { createSqliteReader } from './sqlite-reader.ts'

interface Waiting {
  readonly command: Command
  resolve(value: unknown): void
  reject(error: Error): void
}

/** For whoever has nothing to admit: a command that finds the disk full fails. */
const ALWAYS_ROOM: Disk = { isFull: false, wasFull() {} }

/**
 * The main thread's side of the SQLite store. Commands queue up while the worker commits the batch before them;
 * then all that waited go as the next batch. Under load the batches grow by themselves, a lone command never waits.
 * What looks at many rows goes to a thread of its own.
 */
export async function openSqliteStore(
  file: string,
  onFatal: (error: Error) => void,
  diskFault: SharedArrayBuffer | null = null,
  disk: Disk = ALWAYS_ROOM,
): Promise<Store> {
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const workerData: WorkerParts = { file, bell: bell.buffer, diskFault }
  const worker = startThread(import.meta.url, 'worker', workerData)
  await ready(worker)
  const reader = createSqliteReader(file)
  const bodiesFile = join(dirname(file), 'bodies.db')
  const bodies = createLazyThread<Answers<typeof BODIES>>('body-worker', { file: bodiesFile })

  let queue: Waiting[] = []
  let running: Waiting[] = []
  /** The last batch was a lone command. */
  let isQuiet = true
  let gone: Error | null = null

  worker.on('message', (message: OutcomesMessage) => {
    const answered = running
    running = []
    const outcomes = readOutcomes(message)
    const fatal = outcomes.find((outcome) => !outcome.ok && outcome.fatal)
    if (fatal !== undefined && !fatal.ok) {
      // After a failed fsync the kernel may have dropped the pages: trying again would report a success that is
      // none. Nothing more is admitted, and a restart reads what really is on the disk.
      queue = [...answered, ...queue]
      return fail(new StoreGone(`the disk failed: ${fatal.error}`))
    }
    if (outcomes.some((outcome) => !outcome.ok && outcome.full)) disk.wasFull()
    sendNext()
    for (const [i, waiting] of answered.entries()) {
      const outcome = outcomes[i]
      if (outcome?.ok) waiting.resolve(outcome.value)
      else waiting.reject(errorOf(outcome))
    }
  })
  worker.on('error', (error) => fail(new StoreGone(`the store's thread failed: ${error.message}`)))
  worker.on('exit', (code) => {
    if (gone === null) fail(new StoreGone(`the store's thread ended with code ${code}`))
  })

  function fail(error: Error): void {
    gone = error
    for (const waiting of [...running, ...queue]) waiting.reject(error)
    running = []
    queue = []
    worker.terminate()
    void reader.close()
    void bodies.close()
    onFatal(error)
  }

  function sendNext(): void {
    if (queue.length === 0 || running.length > 0) return
    running = queue
    queue = []
    isQuiet = running.length === 1
    send(writeBatch(running.map((waiting) => waiting.command)))
  }

  function send(message: BatchMessage | 'close'): void {
    worker.postMessage(message)
    Atomics.add(bell, 0, 1)
    Atomics.notify(bell, 0)
  }

  function call<Name extends OperationName>(
    name: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<ReturnType<Operations[Name]>> {
    return new Promise((resolve, reject) => {
      if (gone !== null) return reject(gone)
      if (queue.length >= limits.storeQueueMax)
        return reject(new StoreUnavailable('too many operations wait'))
      const command = [name, ...args] as unknown as Command
      queue.push({ command, resolve: resolve as (value: unknown) => void, reject })
      if (queue.length > 1 || running.length > 0) return
      // What this turn of the event loop still brings joins the batch, unless there is nobody to wait for.
      if (isQuiet) sendNext()
      else setImmediate(sendNext)
    })
  }

  const callAny = call as (name: string, ...args: unknown[]) => Promise<unknown>
  const readAny = reader.ask as (name: string, ...args: unknown[]) => Promise<unknown>

  return {
    ...methodsOf({ ...BRIEF, ...REFUSED }, (name, args) => callAny(name, ...args)),
    ...methodsOf(READS, (name, args) => (gone === null ? readAny(name, ...args) : Promise.reject(gone))),
    recognise: (digest, atMs) => call('recognise', digest, atMs),
    admit: (opening) => call('admit', opening),
    settle: (closing) => call('settle', closing),
    getCall: (requestId) => call('getCall', requestId),
    interruptOpenCalls: (atMs) => call('interruptOpenCalls', atMs),
    async keepBodies(kept) {
      // What room there is belongs to the books.
      if (disk.isFull) throw new StoreUnavailable('the disk is full')
      await bodies.ask('keepBodies', kept)
    },
    // Where no body was ever kept, no thread is started to look for old ones.
    getBodies: async (requestId) => (existsSync(bodiesFile) ? bodies.ask('getBodies', requestId) : null),
    deleteBodies: async (beforeMs, limit) =>
      existsSync(bodiesFile) ? bodies.ask('deleteBodies', beforeMs, limit) : 0,
    trimBodies: async (bytesMax, limit) =>
      existsSync(bodiesFile) ? bodies.ask('trimBodies', bytesMax, limit) : 0,
    async close() {
      if (gone !== null) return
      // What was asked for before is still answered.
      while (queue.length > 0 || running.length > 0) await new Promise((resolve) => setImmediate(resolve))
      if (gone !== null) return
      gone = new StoreGone('the store is closed')
      const ended = new Promise((resolve) => worker.once('exit', resolve))
      // Before the writer: the last connection to close folds the write-ahead log back, and a reader cannot.
      await Promise.all([reader.close(), bodies.close()])
      send('close')
      await ended
    },
  }
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
