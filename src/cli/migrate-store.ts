import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ConfigError, readConfig } from '../config.ts'
import type { RateAgain } from '../ledger/audited.ts'
import { shownInstant } from '../store/migrate-store/move-state.ts'
import { breakSeal, readSeal } from '../store/migrate-store/source.ts'
import { lockDataDir } from '../store/sqlite/lock-data-dir.ts'
import { schemaVersionOf } from '../store/sqlite/migrate.ts'
import { moveInstallation } from './move-installation.ts'
import { print } from './print.ts'
import { Failure, runCommand } from './run-command.ts'

const HELP = `Usage
  TOLLGATE_DATABASE_URL=postgres://… tollgate migrate-store          move the books into PostgreSQL
  tollgate migrate-store --undo                                      serve from the data directory again

Moves the books of the data directory (TOLLGATE_DATA_DIR), all of them, into an empty PostgreSQL database: keys, calls,
credits, usage, logged bodies. Then it compares both sides and audits the books in PostgreSQL. The gateway must not
serve meanwhile; stop it first.

It may be stopped at any time, with Ctrl-C or by a crash of anything: all rows are brought in one transaction, so nothing
is left then, and the same command starts again. Until it has finished, no node serves from the database, and the gateway
may go back to serving from the data directory.

SQLite's files stay as they were. That the books are elsewhere now is noted in them, and serving from them is refused,
because there would be two sets of books. --undo takes the note away: what was booked in PostgreSQL since is not there.

Example
  createdb tollgate
  systemctl stop tollgate
  export TOLLGATE_DATABASE_URL=postgres://tollgate:secret@db.internal:5432/tollgate
  tollgate migrate-store
  TOLLGATE_PEPPER=$(cat data/pepper) tollgate serve     # and the same on every other node

Exit codes
  0 moved, and the audit found no difference   1 failed   2 the command line or the configuration is wrong
`

export async function migrateStore(args: readonly string[], rateAgain: RateAgain): Promise<void> {
  const run = async (given: string[]): Promise<void> => {
    const { values } = parseArgs({ args: given, options: { undo: { type: 'boolean', default: false } } })
    const config = readConfig(process.env)
    const { dataDir, databaseUrl } = config
    refuseWithoutBooks(dataDir)
    if (values.undo) return await holding(dataDir, () => undo(dataDir))
    if (databaseUrl === null) {
      throw new ConfigError([
        'TOLLGATE_DATABASE_URL is not set: it says where to, such as postgres://user:password@host:5432/tollgate',
      ])
    }
    await holding(dataDir, () => moveInstallation(config, databaseUrl, rateAgain))
  }
  await runCommand({ name: 'migrate-store', help: HELP, run }, args)
}

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
