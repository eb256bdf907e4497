import { DatabaseSync } from 'node:sqlite'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { KeyLookup } from '../../keys/credential.ts'
import { type BatchParts, createBatchMemory, forgetAll } from '../operations/batch-rows.ts'
import {
  answersOf,
  batchOf,
  bookCalls,
  type CallCommand,
  interruptCalls,
  LOCAL_NODE,
  noCall,
} from '../operations/book-calls.ts'
import { shareEventCounts } from '../operations/events.ts'
import { isUse, type LookUpBy, markUses } from '../operations/key-lookup.ts'
import { BRIEF, REFUSED } from '../store.ts'
import { migrate, operationsOn, runBatch, runToEnd, statementRunner } from './database.ts'
import {
  type BatchMessage,
  type Command,
  failureOf,
  isOfCall,
  type Outcome,
  readBatch,
  type WorkerParts,
  writeOutcomes,
} from './thread-messages.ts'

/** With 2,000 a call takes 28 µs longer among a million keys; with 24,000 a commit walks a larger cache. */
const STORE_CACHE_KILOBYTES = 8_000

/** Pages before a checkpoint. Against 2,000: 2 to 4 % less per call, but pauses of 8 ms (at worst 43) instead of 5. */
const STORE_LOG_PAGES = 8_000

/** The thread that owns the database, so that an fsync never stalls a stream. Each batch of commands is one commit. */

/** How long the use of a key waits for another write before it is written by itself. */
const USE_WAITS_MS = 100

const NOTED_USES_MAX = 1_000

const INTERRUPTED_AT_ONCE = 500

/** After this many batches and waits, the thread returns to its event loop, for work that V8 has deferred. */
const STEPS_PER_TURN = 1_000

/** One writer, no nodes, and calls bring their own time. */
const PARTS = { node: null, clock: 'caller', memory: createBatchMemory() } satisfies BatchParts

const port = parentPort
if (port === null) throw new Error('worker.ts runs as a worker thread only')

const { file, bell, diskFault, events } = workerData as WorkerParts
shareEventCounts(events)
const rings = new Int32Array(bell)
const fault = diskFault === null ? null : new Int32Array(diskFault)
const db = new DatabaseSync(file, { readBigInts: true, timeout: 5_000 })
db.exec('PRAGMA journal_mode = WAL')
db.exec('PRAGMA synchronous = FULL')
db.exec(`PRAGMA wal_autocheckpoint = ${STORE_LOG_PAGES}`)
db.exec(`PRAGMA cache_size = -${STORE_CACHE_KILOBYTES}`)
migrate(db)
const run = statementRunner(db)
const operations = operationsOn(run, { ...BRIEF, ...REFUSED })
const begin = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
port.postMessage('ready')

const uses = new Map<string, number>()

let seenRings = 0
serve(port)

/** The thread waits on the bell, not in its event loop, which would take a third longer to wake up. */
function serve(asked: NonNullable<typeof parentPort>): void {
  for (let steps = 0; steps < STEPS_PER_TURN; steps += 1) {
    const received: { message: BatchMessage | 'close' } | undefined = receiveMessageOnPort(asked)
    if (received === undefined) {
      waitForBell()
    } else if (received.message === 'close') {
      writeUses()
      db.close()
      asked.close()
      return
    } else {
      const commands = readBatch(received.message)
      asked.postMessage(writeOutcomes(commands, answerBatch(commands)))
    }
  }
  setImmediate(serve, asked)
}

function waitForBell(): void {
  const woken = Atomics.wait(rings, 0, seenRings, uses.size > 0 ? USE_WAITS_MS : Infinity)
  seenRings = Atomics.load(rings, 0)
  if (woken === 'timed-out') writeUses()
}

/** Writes pending uses of keys. No command waits for it: after a temporary failure the next batch tries again. */
function writeUses(): void {
  if (uses.size === 0) return
  try {
    inTransaction(() => {})
  } catch (error) {
    if (failureOf(error).fatal) throw error
  }
}

function answerBatch(commands: readonly Command[]): Outcome[] {
  if (uses.size < NOTED_USES_MAX && commands.every(([name]) => name === 'lookUpKey'))
    return commands.map((command) => attempt(() => runCommand(command)))
  try {
    return inTransaction(() => runCommands(commands))
  } catch (error) {
    // The whole batch was rolled back. Run its commands one by one, so that only the failing one fails.
    const failed = failureOf(error)
    // A call that failed alone runs again, because a memory that was out of date may be the reason.
    if (failed.fatal || (commands.length === 1 && !commands.every(isOfCall)))
      return commands.map(() => failed)
    return commands.map((command) => {
      try {
        return inTransaction(() => runCommands([command]))[0] as Outcome
      } catch (single) {
        return failureOf(single)
      }
    })
  }
}

/** Between two other commands, all settlements run first, because they free parts of budgets, then all admissions. */
function runCommands(commands: readonly Command[]): Outcome[] {
  const outcomes: Outcome[] = []
  let calls: CallCommand[] = []
  for (const command of commands) {
    if (isOfCall(command)) {
      calls.push(command)
      continue
    }
    outcomes.push(...runCalls(calls), { ok: true, value: runCommand(command) })
    calls = []
  }
  return outcomes.concat(runCalls(calls))
}

function runCalls(commands: readonly CallCommand[]): Outcome[] {
  if (commands.length === 0) return []
  const booked = runBatch(bookCalls(batchOf(commands), PARTS), run)
  // Without nodes a batch is never rolled back as fenced.
  if (booked === 'fenced') throw new Error('a batch without a node was fenced')
  return answersOf(commands, booked).map(
    (value, n): Outcome =>
      value === null ? failureOf(noCall(commands[n] as CallCommand)) : { ok: true, value },
  )
}

function runCommand(command: Command): unknown {
  const [name, ...args] = command
  if (name === 'interruptOpenCalls') return interruptAll(command[1])
  if (name === 'admit' || name === 'settle') throw new Error(`${name} goes in a batch`)
  const value = (operations[name] as (...args: unknown[]) => unknown)(...args)
  if (name === 'setBudgetThresholds' || name === 'setBalanceLow') forgetAll(PARTS.memory)
  if (name === 'lookUpKey') noteUse(value as KeyLookup, args[1] as number, args[2] as LookUpBy | undefined)
  return value
}

function interruptAll(atMs: number): number {
  let total = 0
  for (;;) {
    const calls = runBatch(interruptCalls(LOCAL_NODE, INTERRUPTED_AT_ONCE, atMs, PARTS), run) as number
    if (calls === 0) return total
    total += calls
  }
}

/** Remembers a use of a key, to be written with another transaction. A crash may lose it. */
function noteUse(lookup: KeyLookup, atMs: number, by: LookUpBy = 'call'): void {
  if (isUse(lookup, by)) uses.set(lookup.keyId, Math.max(atMs, uses.get(lookup.keyId) ?? 0))
}

function attempt(work: () => unknown): Outcome {
  try {
    return { ok: true, value: work() }
  } catch (error) {
    return failureOf(error)
  }
}

function inTransaction<T>(work: () => T): T {
  begin.run()
  try {
    // Write uses before and after the work: its commands must see earlier uses, and may add more.
    runToEnd(markUses(uses), run)
    const result = work()
    runToEnd(markUses(uses), run)
    meetDiskFault()
    commit.run()
    uses.clear()
    return result
  } catch (error) {
    forgetAll(PARTS.memory)
    // After a full disk or failed fsync SQLite has already rolled back, and ROLLBACK without a transaction throws.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Makes the commit fail as if the disk had failed, if a test requests it. */
function meetDiskFault(): void {
  const errcode = fault === null ? 0 : Atomics.load(fault, 0)
  if (errcode !== 0) throw Object.assign(new Error(`disk fault ${errcode}`), { errcode })
}
