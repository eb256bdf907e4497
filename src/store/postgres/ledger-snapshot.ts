import type { Database } from './database.ts'
import { openPool, type Pool } from './pool.ts'
import { bool, present } from './rows.ts'

/** Longer than any command should take; there is no other deadline. */
const COMMAND_MS = 7 * 24 * 60 * 60 * 1000

/** Connects a command that works on the books beside the nodes. Null: there are none in this database. */
export async function openLedger(url: string): Promise<Pool | null> {
  const pool = openPool({
    url,
    connectionsMax: 1,
    statementMs: COMMAND_MS,
    settings: { deadlines: false },
  })
  try {
    const [row] = await pool.query("SELECT to_regclass('call') IS NOT NULL AS there")
    if (bool(present(row), 'there')) return pool
  } catch (error) {
    await pool.close()
    throw error
  }
  await pool.close()
  return null
}

export interface Snapshot {
  readonly db: Database
  close(): Promise<void>
}

/**
 * All that is read through it is as it was at one instant, while nodes go on booking. While it lasts, the database
 * cannot clean up after any change: rows that change often get slower to find, the account's above all. On a large
 * installation the place for it is a copy of the database that was restored from a backup.
 */
export async function openSnapshot(pool: Pool): Promise<Snapshot> {
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  let running: Promise<void> = Promise.resolve()
  const db = await new Promise<Database>((resolve, reject) => {
    running = pool.transaction(async (tx) => {
      await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
      // Those of the role or the database are for nodes.
      await tx.query("SELECT set_config('statement_timeout', '0', true)")
      await tx.query("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
      resolve(tx)
      await ended
    })
    running.catch(reject)
  })
  return {
    db,
    async close() {
      end()
      // What failed has been said where it was asked.
      await running.catch(() => {})
      await pool.close()
    },
  }
}
