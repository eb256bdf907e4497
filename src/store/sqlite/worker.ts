import { DatabaseSync } from 'node:sqlite'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { CommitCounts } from '../../ledger/store-facts.ts'
import { migrate } from './migrate.ts'
import type { Command, WorkerParts } from './operations.ts'
import { prepareOperations } from './prepare-operations.ts'
import { type BatchMessage, failureOf, type Outcome, readBatch, writeOutcomes } from './thread-messages.ts'

/**
 * Kilobytes of the database that the store keeps in memory, beyond which pages are read again. With SQLite's 2,000 the pages
 * of a hundred keys among a million push each other out: a call takes 50 µs more than among a thousand keys, with 8,000 it
 * takes 22. With 24,000 everything is slower: a commit that has moved pages walks through all that is kept.
 */
const STORE_CACHE_KILOBYTES = 8_000

/**
 * Pages of 4 kB in SQLite's log, beyond which the store pauses and folds them back. A page is folded back once, however often
 * it was changed: with 8,000 instead of 2,000 a call takes 2 to 4 % less where each comes with another key, and the same where
 * all come with one. The pause is 8 ms instead of 5, a quarter as often; at worst, with a thousand keys in use that are spread
 * over a million, 43 instead of 17.
 */
const STORE_LOG_PAGES = 8_000

/**
 * The thread that owns the database, so that an fsync never stalls a stream. It receives batches of commands and
 * commits each batch once: commands that arrived together share one durable write.
 */

/** How long the use of a key waits to be written with something else. */
const USE_WAITS_MS = 100

/** After this many batches and waits the thread's event loop has its turn, for work that V8 has put off until then. */
const STEPS_PER_TURN = 1_000

const port = parentPort
if (port === null) throw new Error('worker.ts runs as a worker thread only')

const { file, bell, diskFault, commits } = workerData as WorkerParts
const rings = new Int32Array(bell)
const counts = new CommitCounts(commits)
const fault = diskFault === null ? null : new Int32Array(diskFault)
const db = new DatabaseSync(file, { readBigInts: true, timeout: 5_000 })
db.exec('PRAGMA journal_mode = WAL')
db.exec('PRAGMA synchronous = FULL')
db.exec(`PRAGMA wal_autocheckpoint = ${STORE_LOG_PAGES}`)
db.exec(`PRAGMA cache_size = -${STORE_CACHE_KILOBYTES}`)
migrate(db)
const operations = prepareOperations(db)
const begin = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
port.postMessage('ready')

let heard = 0
serve(port)

/**
 * The thread waits for the bell and not in its event loop: to be woken and given a message by the event loop takes a third
 * longer. The message is at the port before the bell rings.
 */
function serve(asked: NonNullable<typeof parentPort>): void {
  for (let steps = 0; steps < STEPS_PER_TURN; steps += 1) {
    const received: { message: BatchMessage | 'close' } | undefined = receiveMessageOnPort(asked)
    if (received === undefined) {
      waitForBell()
    } else if (received.message === 'close') {
      writeUnwritten()
      db.close()
      asked.close()
      return
    } else {
      const commands = readBatch(received.message)
      asked.postMessage(writeOutcomes(commands, runBatch(commands)))
    }
  }
  setImmediate(serve, asked)
}

function waitForBell(): void {
  const woken = Atomics.wait(rings, 0, heard, operations.hasUnwritten() ? USE_WAITS_MS : Infinity)
  heard = Atomics.load(rings, 0)
  if (woken === 'timed-out') writeUnwritten()
}

/** Writes noted uses of keys. No command waits for that: a write that fails in passing is retried with the next batch. */
function writeUnwritten(): void {
  if (!operations.hasUnwritten()) return
  try {
    inTransaction([], () => {})
  } catch (error) {
    if (failureOf(error).fatal) throw error
  }
}

function runBatch(commands: readonly Command[]): Outcome[] {
  if (operations.onlyLook(commands)) return commands.map(look)
  try {
    return inTransaction(commands, () =>
      commands.map((command) => ({ ok: true, value: operations.run(command) })),
    )
  } catch (error) {
    // The whole batch was rolled back. Run its commands one by one, so that one that cannot succeed (a
    // constraint, say) fails alone and not its neighbours with it.
    const failed = failureOf(error)
    if (commands.length === 1 || failed.fatal) return commands.map(() => failed)
    return commands.map((command) => {
      try {
        return inTransaction([command], () => ({ ok: true, value: operations.run(command) }) as const)
      } catch (single) {
        return failureOf(single)
      }
    })
  }
}

function look(command: Command): Outcome {
  try {
    return { ok: true, value: operations.run(command) }
  } catch (error) {
    return failureOf(error)
  }
}

function inTransaction<T>(commands: readonly Command[], work: () => T): T {
  const begunMs = performance.now()
  begin.run()
  try {
    const result = work()
    operations.beforeCommit()
    meetDiskFault()
    commit.run()
    operations.committed()
    counts.committed(commands.filter(isOfCall).length, performance.now() - begunMs)
    return result
  } catch (error) {
    operations.rolledBack()
    // A full disk or a failed fsync has rolled back already, and ROLLBACK without a transaction throws.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function isOfCall([name]: Command): boolean {
  return name === 'admit' || name === 'settle'
}

/** Fails the commit as the disk would, if a test has asked for it. */
function meetDiskFault(): void {
  const errcode = fault === null ? 0 : Atomics.load(fault, 0)
  if (errcode !== 0) throw Object.assign(new Error(`disk fault ${errcode}`), { errcode })
}
