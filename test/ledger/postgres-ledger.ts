import { type AuditReport, audit } from '../../src/store/operations/audit.ts'
import type { Snapshot } from '../../src/store/operations/operation.ts'
import type { Pool } from '../../src/store/postgres/database.ts'
import { openPostgresSnapshot } from '../../src/store/postgres/ledger.ts'
import { queryOn } from '../../src/store/postgres/run-operation.ts'
import type { Store } from '../../src/store/store.ts'
import type { Rows } from '../store/conformance/fixtures.ts'
import { openByCallersClock } from '../store/postgres-under-test.ts'
import { createDatabase, openPatientPool, type TestDatabase } from '../support/postgres.ts'
import { present, rateAgain, type TestLedger } from './test-ledger.ts'

/** Disables foreign keys for the rest of a transaction. */
const WITHOUT_FOREIGN_KEYS = 'SET LOCAL session_replication_role = replica'

/** Drops all checks, after readers of calls; creates a month to which a test can move a call. */
const WITHOUT_CHECKS = `
  DO $$
  DECLARE
    guard record;
  BEGIN
    FOR guard IN SELECT conrelid::regclass AS of, conname FROM pg_constraint
      WHERE contype = 'c' AND coninhcount = 0 AND connamespace = 'public'::regnamespace
    LOOP
      EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', guard.of, guard.conname);
    END LOOP;
  END $$`

export class PostgresLedger implements TestLedger {
  readonly url: string
  readonly #database: TestDatabase

  constructor(database: TestDatabase) {
    this.#database = database
    this.url = database.url
  }

  static async create(): Promise<PostgresLedger> {
    return new PostgresLedger(await createDatabase())
  }

  openStore(): Promise<Store> {
    return openByCallersClock(this.url)
  }

  async openReader(): Promise<Snapshot> {
    return present(await openPostgresSnapshot(this.url))
  }

  tamper(sql: string): Promise<void> {
    return this.#work((db) =>
      db.transaction(async (tx) => {
        await tx.query(WITHOUT_FOREIGN_KEYS)
        await tx.query(sql)
      }),
    )
  }

  rows(sql: string): Promise<Rows> {
    return this.#work((db) => db.query(sql))
  }

  auditAfter(sql: string): Promise<AuditReport> {
    return this.#work(async (db) => {
      let report: AuditReport | null = null
      const undone = db.transaction(async (tx) => {
        await tx.query(WITHOUT_FOREIGN_KEYS)
        await tx.query(WITHOUT_CHECKS)
        await tx.query(sql)
        report = await audit(queryOn(tx), rateAgain)
        throw new Error('undo')
      })
      await undone.catch((error: Error) => {
        if (report === null) throw error
      })
      return present(report as AuditReport | null)
    })
  }

  remove(): Promise<void> {
    return this.#database.drop()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.remove()
  }

  async #work<T>(work: (db: Pool) => Promise<T>): Promise<T> {
    const pool = openPatientPool(this.url)
    try {
      return await work(pool)
    } finally {
      await pool.close()
    }
  }
}
