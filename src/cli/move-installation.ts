import { join } from 'node:path'
import type { Config } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { StoreRefused, StoreUnavailable } from '../kernel/errors.ts'
import type { Secret } from '../kernel/secret.ts'
import { type AuditReport, runAudit } from '../ledger/audit.ts'
import type { RateAgain } from '../ledger/audited.ts'
import {
  type Begun,
  beginMove,
  compareBooks,
  finishMove,
  MoveRefused,
  moveRows,
  openTarget,
  type Target,
} from '../store/migrate-store/move-books.ts'
import { describeMoved, type MovedTo, type MoveState } from '../store/migrate-store/move-state.ts'
import { openSource, readSeal, type Source, sealSource } from '../store/migrate-store/source.ts'
import { openBooks } from '../store/postgres/ledger-snapshot.ts'
import { shownDatabase } from '../store/postgres/shown-database.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { count, createMoveProgress, duration, type MoveProgress } from './move-progress.ts'
import { print } from './print.ts'
import { printable } from './printable.ts'
import { Failure } from './run-command.ts'

/**
 * Moves the books of a data directory that no gateway serves from. Whatever keeps it from its end, the exit code says
 * that it did not get there.
 */
export async function moveInstallation(
  config: Config,
  databaseUrl: Secret,
  rateAgain: RateAgain,
): Promise<void> {
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
      // It may have been taken back meanwhile.
      sealSource(dataDir, source.books, { database: to, atMs: begun.state.finishedAtMs ?? 0 })
      await print(`The books in ${dataDir} were moved to ${to} before, and the move is finished.\n`)
      process.exitCode = 0
      return
    }
    await print(describeBeginning(begun, dataDir, to))
    const moved =
      begun.beginning === 'copied' ? begun.state : await bring(source, target, begun.state, progress)
    await check(source, target, databaseUrl, rateAgain, progress)
    await finish(dataDir, source, target, moved, { database: to, atMs: systemClock.nowMs() })
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

/** As serving would do it: the gateway that held these calls is gone. */
async function closeOpenCalls(dataDir: string): Promise<void> {
  const store = await openSqliteStore(join(dataDir, 'tollgate.db'), () => {}).catch((error: Error) => {
    throw new Failure(`The books in ${dataDir} cannot be opened: ${error.message}`)
  })
  try {
    const calls = await store.interruptOpenCalls(systemClock.nowMs())
    if (calls > 0) {
      await print(
        `Calls that were in flight when the gateway ended: ${count(calls)}, interrupted, at no charge.\n`,
      )
    }
  } finally {
    await store.close()
  }
}

function describeBeginning({ beginning, state }: Begun, dataDir: string, to: string): string {
  switch (beginning) {
    case 'copied':
      return `All ${count(state.rows ?? 0)} rows of the books in ${dataDir} are in ${to} already.\n`
    case 'again':
      return `The books in ${dataDir} have changed since an earlier run. Moving them to ${to} from the start.\n`
    default:
      return `Moving the books in ${dataDir} to ${to}.\n`
  }
}

async function bring(
  source: Source,
  target: Target,
  begun: MoveState,
  progress: MoveProgress,
): Promise<MoveState> {
  const beganMs = systemClock.monotonicMs()
  const moved = await moveRows(source, target, begun, (table, done, total) =>
    progress.show(`Moving ${table.noun}`, done, total),
  )
  const seconds = (systemClock.monotonicMs() - beganMs) / 1_000
  progress.end()
  await print(`Moved ${count(moved.rows ?? 0)} rows in ${duration(seconds)}.\n`)
  return moved
}

/** Before any node may serve from the database. */
async function check(
  source: Source,
  target: Target,
  databaseUrl: Secret,
  rateAgain: RateAgain,
  progress: MoveProgress,
): Promise<void> {
  const difference = await compareBooks(source, target, (table, done, total) =>
    progress.show(`Comparing ${table.noun}`, done, total),
  )
  progress.end()
  if (difference !== null) throw new Failure(`Both sides differ: ${difference}. ${UNSERVED}`)
  await print('Both sides have the same rows and the same sums.\n')
  const report = await auditTarget(databaseUrl, rateAgain, progress)
  if (report.difference !== null) throw new Failure(`${describeDifference(report.difference)}\n${UNSERVED}`)
  await print(
    `The audit found no difference in ${count(report.counts.calls)} calls and all that follows from them.\n`,
  )
}

const UNSERVED =
  'No node serves from the database like this. The gateway may go on serving from the data directory; ' +
  '`tollgate audit` without TOLLGATE_DATABASE_URL says whether its books are in order.'

async function auditTarget(
  databaseUrl: Secret,
  rateAgain: RateAgain,
  progress: MoveProgress,
): Promise<AuditReport> {
  const books = await openBooks(databaseUrl.reveal())
  if (books === null) throw new Failure('The tables of the database are gone.')
  try {
    return await runAudit(books, rateAgain, (done, total) => progress.show('Auditing', done, total))
  } finally {
    progress.end()
    await books.close()
  }
}

function describeDifference({
  what,
  where,
  stored,
  derived,
}: NonNullable<AuditReport['difference']>): string {
  const shown = [where, stored, derived].map(printable)
  return `The audit found a difference: ${what}, ${shown[0]}: stored ${shown[1]}, derived ${shown[2]}.`
}

/** SQLite first: there must be no instant at which both could be served from. */
async function finish(
  dataDir: string,
  source: Source,
  target: Target,
  moved: MoveState,
  to: MovedTo,
): Promise<void> {
  if (!sealSource(dataDir, source.books, to)) {
    throw new Failure(
      `A command changed the books in ${dataDir} while they were moved. Run this again: it moves them from the start.`,
    )
  }
  await finishMove(target, moved, to.atMs)
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

/** What to do about a failure of the database is the same for all of them. */
function explained(error: unknown): unknown {
  if (error instanceof MoveRefused) return new Failure(error.message)
  if (error instanceof StoreUnavailable || error instanceof StoreRefused) {
    return new Failure(`${error.message.replace(/\.$/, '')}. ${START_AGAIN}`)
  }
  return error
}

function tellWhenInterrupted(progress: MoveProgress): { forget(): void } {
  const tell = (): void => {
    progress.end()
    process.stderr.write(`Stopped. ${START_AGAIN}\n`)
    // As it would have ended without us.
    process.kill(process.pid, 'SIGINT')
  }
  process.once('SIGINT', tell)
  return { forget: () => process.off('SIGINT', tell) }
}
