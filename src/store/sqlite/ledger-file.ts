import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../kernel/clock.ts'
import type { RerateWriter } from '../../ledger/rerate.ts'
import type { Operation, Snapshot } from '../operations/operation.ts'
import { rerateWriter } from '../operations/rerate.ts'
import { number, present } from '../rows.ts'
import { SCHEMA_VERSION } from '../schema.ts'
import { NewerSchema } from '../upgrades.ts'
import { migrate } from './migrate.ts'
import { runToEnd, statementRunner } from './run-operation.ts'

/** The database of a data directory, for commands that run beside a gateway. */

/** Opens an existing database with a ledger in it. Null: there is none. */
function openLedgerFile(file: string, options: { readonly readOnly: boolean }): DatabaseSync | null {
  if (!existsSync(file)) return null
  const db = new DatabaseSync(file, { ...options, readBigInts: true, timeout: 5_000 })
  try {
    const version = number(present(db.prepare('PRAGMA user_version').get()), 'user_version')
    if (version > SCHEMA_VERSION) throw new NewerSchema(version)
    if (version > 0) return db
  } catch (error) {
    db.close()
    throw error
  }
  db.close()
  return null
}

/**
 * One read transaction on a connection that cannot write: a consistent view of the database beside a running gateway, which
 * can still write. While the transaction lasts the write-ahead log cannot be checkpointed, so it grows.
 */
export async function openSnapshot(file: string): Promise<Snapshot | null> {
  const db = openLedgerFile(file, { readOnly: true })
  if (db === null) return null
  const bodies = join(dirname(file), 'bodies.db')
  if (existsSync(bodies)) db.prepare('ATTACH ? AS bodies').run(bodies)
  db.exec('BEGIN')
  const run = statementRunner(db)
  return { ask: async (statement) => run(statement), close: async () => db.close() }
}

export async function openRerateWriter(file: string, clock: Clock): Promise<RerateWriter | null> {
  const db = openLedgerFile(file, { readOnly: false })
  if (db === null) return null
  const run = statementRunner(db)
  migrate(db)
  // A booking that was reported must outlast a power cut, as a booking of the gateway does.
  db.exec('PRAGMA synchronous = FULL')

  const doAtomically = async <T>(operate: () => Operation<T>): Promise<T> => {
    db.exec('BEGIN IMMEDIATE')
    try {
      const answer = runToEnd(operate(), run)
      db.exec('COMMIT')
      return answer
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  const close = async (): Promise<void> => db.close()
  return rerateWriter({ ask: async (statement) => run(statement), doAtomically, close }, clock)
}
