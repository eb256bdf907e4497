import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { StoreUnavailable } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { startThread } from '../../kernel/start-thread.ts'
import { CommitCounts, sharedCommitMemory } from '../../ledger/store-facts.ts'
import type { Disk } from '../ballast.ts'
import { BRIEF, READS, REFUSED } from '../operations/cold-operations.ts'
import { methodsOf } from '../operations/operation.ts'
import type { Store } from '../store.ts'
import type { BodyOperations, Operations, ReadOperations, SideParts, WorkerParts } from './operations.ts'
import { createThreadClient, type ThreadClient } from './thread-client.ts'

/** Without a ballast: a command that finds the disk full fails. */
const ALWAYS_ROOM: Disk = { isFull: false, wasFull() {} }

/**
 * The main thread's side of the SQLite store: one thread writes and answers what is quick, one answers what looks at
 * many rows, and one keeps bodies. The last two are started when they are first needed.
 */
export async function openSqliteStore(
  file: string,
  onFatal: (error: Error) => void,
  diskFault: SharedArrayBuffer | null = null,
  disk: Disk = ALWAYS_ROOM,
): Promise<Store> {
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const commits = sharedCommitMemory()
  const workerData: WorkerParts = { file, bell: bell.buffer, diskFault, commits }
  const thread = startThread(import.meta.url, 'worker', workerData)
  await ready(thread)
  const reader = createSqliteReader(file)
  const bodiesFile = join(dirname(file), 'bodies.db')
  const bodies = createSideThread<BodyOperations>({ kind: 'bodies', file: bodiesFile })
  const writer = createThreadClient<Operations>({
    ...{ name: 'thread', thread, batchMax: Infinity, bell },
    onFull: () => disk.wasFull(),
    onGone(error) {
      void reader.close()
      void bodies.close()
      onFatal(error)
    },
  })
  const load = new CommitCounts(commits)
  return {
    load: {
      ...load,
      get waiting() {
        return writer.waiting
      },
    },
    ...methodsOf({ ...BRIEF, ...REFUSED }, writer.askAny),
    ...methodsOf(READS, reader.askAny),
    lookUpKey: (digest, atMs) => writer.ask('lookUpKey', digest, atMs),
    admit: (opening) => writer.ask('admit', opening),
    settle: (closing) => writer.ask('settle', closing),
    getCall: (requestId) => writer.ask('getCall', requestId),
    interruptOpenCalls: (atMs) => writer.ask('interruptOpenCalls', atMs),
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
      // Before the writer: the last connection to close folds the write-ahead log back, and a reader cannot.
      await Promise.all([reader.close(), bodies.close()])
      await writer.close()
    },
  }
}

/** The thread that answers what looks at many rows. */
export function createSqliteReader(
  file: string,
  waitingMax: number = limits.readQueueMax,
): ThreadClient<ReadOperations> {
  return createSideThread({ kind: 'reader', file }, waitingMax)
}

/** Its commands are answered one by one. If it dies, those that wait fail: nothing that is booked depends on it. */
function createSideThread<Asked extends BodyOperations | ReadOperations>(
  parts: SideParts,
  waitingMax?: number,
): ThreadClient<Asked> {
  return createThreadClient<Asked>({
    name: parts.kind,
    thread: () => startThread(import.meta.url, 'side-worker', parts),
    batchMax: 1,
    ...(waitingMax === undefined ? {} : { waitingMax }),
  })
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
