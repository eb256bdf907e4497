import { DatabaseSync } from 'node:sqlite'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { StoreRefused } from '../../kernel/errors.ts'
import { applyBatch, type CallCommand, interruptCalls, LOCAL_NODE } from '../operations/apply-batch.ts'
import { type BatchContext, clearCache, clearRows, createBatchCache } from '../operations/batch-rows.ts'
import { shareEventCounts } from '../operations/events.ts'
import { BRIEF, REFUSED } from '../store.ts'
import {
  migrateBodies,
  migrateSqlite,
  runBatchOnSqlite,
  sqliteOperations,
  statementRunner,
} from './database.ts'
import {
  type BatchMessage,
  type Command,
  decodeCommands,
  encodeOutcomes,
  isCallCommand,
  isLocked,
  type ThreadFailure,
  type ThreadOutcome,
  threadFailure,
  type WorkerOptions,
} from './thread-messages.ts'

/** This thread owns the database, so that an fsync never stalls a stream. Each batch of commands is one commit. */

/** With 2,000 a call takes 28 µs longer among a million keys; with 24,000 a commit walks a larger cache. */
const STORE_CACHE_KILOBYTES = 8_000

/** Pages before a checkpoint. Against 2,000: 2 to 4 % less per call, but pauses of 8 ms (at worst 43) instead of 5. */
const STORE_LOG_PAGES = 8_000

/** How long the first transaction waits while another process has locked the file. The next ones fail at once. */
const LOCKED_MS = 5_000

const INTERRUPTED_AT_ONCE = 500

/** After this many batches and waits, the thread returns to its event loop, for work that V8 has deferred. */
const STEPS_PER_TURN = 1_000

/** SQLite has one writer, so there are no nodes, and the caller's clock decides. */
const CONTEXT = { node: null, clock: 'caller', cache: createBatchCache(true) } satisfies BatchContext

const port = parentPort
if (port === null) throw new Error('worker.ts runs as a worker thread only')

const { file, bell, diskFault, events } = workerData as WorkerOptions
shareEventCounts(events)
const rings = new Int32Array(bell)
const fault = diskFault === null ? null : new Int32Array(diskFault)
const db = new DatabaseSync(file, { readBigInts: true, timeout: LOCKED_MS })
db.exec('PRAGMA journal_mode = WAL')
db.exec('PRAGMA synchronous = FULL')
db.exec(`PRAGMA wal_autocheckpoint = ${STORE_LOG_PAGES}`)
db.exec(`PRAGMA cache_size = -${STORE_CACHE_KILOBYTES}`)
migrateSqlite(db)
migrateBodies(file)
const run = statementRunner(db)
const operations = sqliteOperations(run, { ...BRIEF, ...REFUSED })
const begin = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
/** Changes when another process has written, for example a command. */
const dataVersion = db.prepare('PRAGMA data_version')
let seenVersion: unknown = null
let isFileLocked = false
port.postMessage('ready')

let seenRings = 0
serve(port)

/** The thread waits on the bell, not in its event loop, which would take a third longer to wake up. */
function serve(commandPort: NonNullable<typeof parentPort>): void {
  for (let steps = 0; steps < STEPS_PER_TURN; steps += 1) {
    const received: { message: BatchMessage | 'close' } | undefined = receiveMessageOnPort(commandPort)
    if (received === undefined) {
      waitForBell()
    } else if (received.message === 'close') {
      db.close()
      commandPort.close()
      return
    } else {
      const commands = decodeCommands(received.message)
      commandPort.postMessage(encodeOutcomes(commands, answerBatch(commands)))
    }
  }
  setImmediate(serve, commandPort)
}

function waitForBell(): void {
  Atomics.wait(rings, 0, seenRings)
  seenRings = Atomics.load(rings, 0)
}

/** If a command fails, the whole batch is rolled back, and its failure is the answer: the batcher splits the batch. */
function answerBatch(commands: readonly Command[]): ThreadOutcome[] | ThreadFailure {
  try {
    return inTransaction(() => runCommands(commands))
  } catch (error) {
    return threadFailure(error)
  }
}

/** Runs the calls between two other commands as one batch. */
function runCommands(commands: readonly Command[]): ThreadOutcome[] {
  const outcomes: ThreadOutcome[] = []
  let calls: CallCommand[] = []
  for (const command of commands) {
    if (isCallCommand(command)) {
      calls.push(command)
      continue
    }
    outcomes.push(...runCalls(calls), { ok: true, value: runCommand(command) })
    calls = []
  }
  return outcomes.concat(runCalls(calls))
}

function runCalls(commands: readonly CallCommand[]): ThreadOutcome[] {
  if (commands.length === 0) return []
  const applied = runBatchOnSqlite(applyBatch(commands, CONTEXT), run)
  // Without nodes a batch is never rolled back as fenced.
  if (applied === 'fenced') throw new Error('a batch without a node was fenced')
  return applied.map((value) => (value instanceof StoreRefused ? threadFailure(value) : { ok: true, value }))
}

function runCommand(command: Command): unknown {
  const [name, ...args] = command
  if (name === 'interruptOpenCalls') return interruptAll(command[1])
  clearRows(CONTEXT.cache)
  if (name === 'admit' || name === 'settle') throw new Error(`${name} goes in a batch`)
  const value = (operations[name] as (...args: unknown[]) => unknown)(...args)
  if (name === 'setBudgetThresholds' || name === 'setBalanceLow') clearCache(CONTEXT.cache)
  return value
}

function interruptAll(atMs: number): number {
  let total = 0
  for (;;) {
    const calls = runBatchOnSqlite(
      interruptCalls(LOCAL_NODE, INTERRUPTED_AT_ONCE, atMs, CONTEXT),
      run,
    ) as number
    if (calls === 0) return total
    total += calls
  }
}

function beginTransaction(): void {
  try {
    begin.run()
  } catch (error) {
    setFileLocked(isLocked(error))
    throw error
  }
  setFileLocked(false)
}

function setFileLocked(locked: boolean): void {
  if (locked === isFileLocked) return
  db.exec(`PRAGMA busy_timeout = ${locked ? 0 : LOCKED_MS}`)
  isFileLocked = locked
}

function inTransaction<T>(work: () => T): T {
  beginTransaction()
  try {
    forgetIfOthersWrote()
    const result = work()
    simulateDiskFault()
    commit.run()
    return result
  } catch (error) {
    clearCache(CONTEXT.cache)
    // When the disk is full or an fsync fails, SQLite rolls back itself, and ROLLBACK without a transaction throws.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function forgetIfOthersWrote(): void {
  const version = dataVersion.get()?.['data_version']
  if (version !== seenVersion) clearCache(CONTEXT.cache)
  seenVersion = version
}

/** Makes the commit fail like a disk fault, if a test requests it. */
function simulateDiskFault(): void {
  const errcode = fault === null ? 0 : Atomics.load(fault, 0)
  if (errcode !== 0) throw Object.assign(new Error(`disk fault ${errcode}`), { errcode })
}
