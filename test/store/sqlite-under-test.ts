import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { StoreUnderTest } from './conformance/fixtures.ts'
import { emptyDatabase } from './empty-database.ts'

export async function openFreshSqlite(): Promise<StoreUnderTest> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-store-'))
  const file = join(folder, 'tollgate.db')
  writeFileSync(file, emptyDatabase)
  const store = await openSqliteStore(file, (error) => {
    throw error
  })
  const reader = new DatabaseSync(file, { readOnly: true, readBigInts: true })
  return {
    store,
    rows: (table) => reader.prepare(`SELECT * FROM ${table}`).all(),
    addAccount(id) {
      const writer = new DatabaseSync(file, { timeout: 5_000 })
      writer.prepare('INSERT INTO account (id, created_at_ms) VALUES (?, 0)').run(id)
      writer.close()
    },
    exec(sql) {
      const writer = new DatabaseSync(file, { timeout: 5_000 })
      writer.exec(sql)
      writer.close()
    },
    async close() {
      reader.close()
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
}
