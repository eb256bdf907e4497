import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { StoreUnderTest } from './conformance/fixtures.ts'
import type { MortalStore } from './conformance/simulation-run.ts'
import { emptyDatabase } from './empty-database.ts'
import { emptyTables } from './empty-tables.ts'

export async function openFreshSqlite(): Promise<StoreUnderTest> {
  return await openMortalSqlite()
}

/** Dies as in a power cut: its files are copied, and the next life opens the copy. */
export async function openMortalSqlite(): Promise<MortalStore> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-store-'))
  const first = join(folder, 'life-1.db')
  writeFileSync(first, emptyDatabase)
  let life = await begin(first)
  let lives = 1
  const execIn = (file: string, sql: string) => {
    const writer = new DatabaseSync(file, { timeout: 60_000 })
    writer.exec(sql)
    writer.close()
  }
  const exec = (sql: string) => execIn(life.file, sql)
  return {
    get store() {
      return life.store
    },
    rows: (table) => life.reader.prepare(`SELECT * FROM ${table}`).all(),
    addAccount: (id) => exec(`INSERT INTO account (id, created_at_ms) VALUES ('${id}', 0)`),
    exec,
    async empty() {
      // This write also makes the thread write pending uses of keys and drop its cached rows.
      await life.store.setBalanceLow(null)
      exec(emptyTables('main'))
      const bodies = join(folder, 'bodies.db')
      if (existsSync(bodies)) execIn(bodies, emptyTables('bodies'))
    },
    async die() {
      lives += 1
      const next = join(folder, `life-${lives}.db`)
      for (const part of ['', '-wal']) {
        if (existsSync(life.file + part)) copyFileSync(life.file + part, next + part)
      }
      await end()
      life = await begin(next)
    },
    async close() {
      await end()
      rmSync(folder, { recursive: true })
    },
  }

  async function begin(file: string) {
    const store = await openSqliteStore(file, (error) => {
      throw error
    })
    return { file, store, reader: new DatabaseSync(file, { readOnly: true, readBigInts: true }) }
  }

  async function end(): Promise<void> {
    life.reader.close()
    await life.store.close()
  }
}
