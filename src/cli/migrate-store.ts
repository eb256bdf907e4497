import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { StoreRefused, StoreUnavailable } from '../kernel/errors.ts'
import { type Secret, shownDatabase } from '../kernel/secret.ts'
import { type AuditReport, runAudit } from '../ledger/audit.ts'
import { createRateAgain } from '../pricing/rate-again.ts'
import { lockDataDir } from '../store/data-dir.ts'
import {
  beginMove,
  compareBooks,
  finishMove,
  MoveRefused,
  moveRows,
  openTarget,
  type Target,
} from '../store/migrate-store/move-books.ts'
import { describeMoved, shownInstant } from '../store/migrate-store/move-state.ts'
import { breakSeal, openSource, readSeal, type Source } from '../store/migrate-store/source.ts'
import { openBooks } from '../store/postgres/ledger-snapshot.ts'
import { schemaVersionOf } from '../store/sqlite/migrate.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { defineCommand, Failure, flag } from './command.ts'
import { createMoveProgress, duration, type MoveProgress } from './progress.ts'
import { print, shownCount, shownText } from './terminal.ts'

export const command = defineCommand({
  name: 'migrate-store',
  usage: [
    'TOLLGATE_DATABASE_URL=postgres://… tollgate migrate-store          move the books into PostgreSQL',
    'tollgate migrate-store --undo                                      serve from the data directory again',
  ],
  about: `Moves the books of the data directory (TOLLGATE_DATA_DIR), all of them, into an empty PostgreSQL database: keys, calls,
credits, usage, logged bodies. Then it compares both sides and audits the books in PostgreSQL. The gateway must not
serve meanwhile; stop it first.

It may be stopped at any time, with Ctrl-C or by a crash of anything: all rows are brought in one transaction, so nothing
is left then, and the same command starts again. Until it has finished, no node serves from the database, and the gateway
may go back to serving from the data directory.

SQLite's files stay as they were. That the books are elsewhere now is noted in them, and serving from them is refused,
because there would be two sets of books. --undo takes the note away: what was booked in PostgreSQL since is not there.`,
  options: { undo: flag('') },
  examples: [
    `createdb tollgate
  systemctl stop tollgate
  export TOLLGATE_DATABASE_URL=postgres://tollgate:secret@db.internal:5432/tollgate
  tollgate migrate-store
  TOLLGATE_PEPPER=$(cat data/pepper) tollgate serve     # and the same on every other node`,
  ],
  exitCodes:
    '0 moved, and the audit found no difference   1 failed   2 the command line or the configuration is wrong',
  async run(values) {
    const config = readConfig(process.env)
    const { dataDir, databaseUrl } = config
    refuseWithoutBooks(dataDir)
    if (values.undo) return await holding(dataDir, () => undo(dataDir))
    if (databaseUrl === null) {
      throw new ConfigError([
        'TOLLGATE_DATABASE_URL is not set: it says where to, such as postgres://user:password@host:5432/tollgate',
      ])
    }
    await holding(dataDir, () => moveBooks(config, databaseUrl))
  },
})

function refuseWithoutBooks(dataDir: string): void {
  const file = join(dataDir, 'tollgate.db')
  if (existsSync(file) && schemaVersionIn(file) > 0) return
  throw new ConfigError([`TOLLGATE_DATA_DIR: there are no books in ${dataDir}`])
}

function schemaVersionIn(file: string): number {
  try {
    return schemaVersionOf(file)
  } catch (error) {
    throw new Failure(`The books in ${file} cannot be opened: ${(error as Error).message}`)
  }
}

/** Keeps gateways from serving from the data directory while the work is done. */
async function holding(dataDir: string, work: () => Promise<void>): Promise<void> {
  const lock = lockDataDir(dataDir)
  if (lock === null) {
    throw new Failure(
      `A gateway serves from ${dataDir}, or another tollgate migrate-store runs. Stop it first; a gateway that gets ` +
        'SIGTERM lets its running calls finish.',
    )
  }
  try {
    await work()
  } finally {
    lock.release()
  }
}

async function undo(dataDir: string): Promise<void> {
  const seal = readSeal(dataDir)
  if (seal === null) throw new Failure(`The books in ${dataDir} were not moved anywhere.`)
  breakSeal(dataDir)
  await print(
    `The books in ${dataDir} are in use again, as they were on ${shownInstant(seal.atMs)}. Nothing was changed in ` +
      `${seal.database}: stop every node that serves from it, and unset TOLLGATE_DATABASE_URL.\n`,
  )
}

/**
 * Moves the books of a data directory that no gateway serves from. The exit code is 1 until the move is
 * finished, whatever stops the move.
 */
async function moveBooks(config: Config, databaseUrl: Secret): Promise<void> {
  process.exitCode = 1
  const { dataDir } = config
  const to = shownDatabase(databaseUrl)
  const seal = readSeal(dataDir)
  if (seal !== null && seal.database !== to) throw new Failure(describeMoved(seal))
  if (seal === null) await closeOpenCalls(dataDir)

  const source = openSource(dataDir)
  const target = await openTarget(databaseUrl.reveal()).catch((error: Error) => {
    throw new Failure(`The database ${to} cannot be used: ${error.message}`)
  })
  const progress = createMoveProgress()
  const interrupted = tellWhenInterrupted(progress)
  try {
    const begun = await beginMove(source, target, systemClock.nowMs(), seal)
    if (begun.beginning === 'finished_before') {
      await print(`The books in ${dataDir} were moved to ${to} before, and the move is finished.\n`)
      process.exitCode = 0
      return
    }
    if (begun.beginning === 'new') {
      await print(`Moving the books in ${dataDir} to ${to}.\n`)
      await bring(source, target, progress)
    } else await print(`The rows of the books in ${dataDir} are in ${to} already.\n`)
    await check(source, target, databaseUrl, progress)
    // SQLite is sealed first: there must be no instant at which both stores could be served from.
    const atMs = systemClock.nowMs()
    source.seal({ database: to, atMs })
    await finishMove(target, begun.state, atMs)
    await print(nextSteps(config, to))
    process.exitCode = 0
  } catch (error) {
    throw explained(error)
  } finally {
    progress.end()
    interrupted.forget()
    source.close()
    await target.close()
  }
}

/** Interrupts open calls as serving would do: the process that held these calls is gone. */
async function closeOpenCalls(dataDir: string): Promise<void> {
  const store = await openSqliteStore(join(dataDir, 'tollgate.db'), () => {}).catch((error: Error) => {
    throw new Failure(`The books in ${dataDir} cannot be opened: ${error.message}`)
  })
  try {
    const calls = await store.interruptOpenCalls(systemClock.nowMs())
    if (calls > 0) {
      await print(
        `Calls that were in flight when the gateway ended: ${shownCount(calls)}, interrupted, at no charge.\n`,
      )
    }
  } finally {
    await store.close()
  }
}

async function bring(source: Source, target: Target, progress: MoveProgress): Promise<void> {
  const beganMs = systemClock.monotonicMs()
  let rows = 0
  await moveRows(source, target, (table, done, total) => {
    progress.show(`Moving ${table.noun}`, done, total)
    if (done === total) rows += total
  })
  const seconds = (systemClock.monotonicMs() - beganMs) / 1_000
  progress.end()
  await print(`Moved ${shownCount(rows)} rows in ${duration(seconds)}.\n`)
}

/** Compares and audits the books before any node may serve from the database. */
async function check(
  source: Source,
  target: Target,
  databaseUrl: Secret,
  progress: MoveProgress,
): Promise<void> {
  const difference = await compareBooks(source, target, (table, done, total) =>
    progress.show(`Comparing ${table.noun}`, done, total),
  )
  progress.end()
  if (difference !== null) throw new Failure(`Both sides differ: ${difference}. ${UNSERVED}`)
  await print('Both sides have the same rows and the same sums.\n')
  const report = await auditTarget(databaseUrl, progress)
  if (report.difference !== null) throw new Failure(`${describeDifference(report.difference)}\n${UNSERVED}`)
  await print(
    `The audit found no difference in ${shownCount(report.counts.calls)} calls and all that follows from them.\n`,
  )
}

const UNSERVED =
  'No node serves from the database like this. The gateway may go on serving from the data directory; ' +
  '`tollgate audit` without TOLLGATE_DATABASE_URL says whether its books are in order.'

async function auditTarget(databaseUrl: Secret, progress: MoveProgress): Promise<AuditReport> {
  const books = await openBooks(databaseUrl.reveal())
  if (books === null) throw new Failure('The tables of the database are gone.')
  try {
    return await runAudit(books, createRateAgain(), (done, total) => progress.show('Auditing', done, total))
  } finally {
    progress.end()
    await books.close()
  }
}

function describeDifference(difference: NonNullable<AuditReport['difference']>): string {
  const { what, where, stored, derived } = difference
  const values = `stored ${shownText(stored)}, derived ${shownText(derived)}`
  return `The audit found a difference: ${what}, ${shownText(where)}: ${values}.`
}

function nextSteps({ dataDir, pepper }: Config, to: string): string {
  const whichPepper =
    pepper === null ? `the content of the file ${join(dataDir, 'pepper')}` : 'the value that it has here'
  return `
The books are in ${to} now. What to do next:
  1. Set TOLLGATE_DATABASE_URL, as it was for this command, on every node and for every command.
  2. Set TOLLGATE_PEPPER on every node to ${whichPepper}:
     the keys of your clients are recognised with it alone. Keep it apart from the database's backups.
  3. Start the nodes. Keys, caps, credit and the request log are as they were.
Serving from ${dataDir} without TOLLGATE_DATABASE_URL is refused from now on. Its files are as they were; keep them as
a backup until you are content.
`
}

const START_AGAIN = 'Rows are moved all together or not at all: start the same command again.'

/** All failures of the database have the same remedy: start the command again. */
function explained(error: unknown): unknown {
  if (error instanceof MoveRefused) return new Failure(error.message)
  if (error instanceof StoreUnavailable || error instanceof StoreRefused)
    return new Failure(`${error.message.replace(/\.$/, '')}. ${START_AGAIN}`)
  return error
}

function tellWhenInterrupted(progress: MoveProgress): { forget(): void } {
  const tell = (): void => {
    progress.end()
    process.stderr.write(`Stopped. ${START_AGAIN}\n`)
    // SIGINT is sent again, to end the process as it would have ended without this handler.
    process.kill(process.pid, 'SIGINT')
  }
  process.once('SIGINT', tell)
  return { forget: () => process.off('SIGINT', tell) }
}
