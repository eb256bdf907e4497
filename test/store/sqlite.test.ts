import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { auditRunConformance } from './conformance/audit-runs.ts'
import { bodyLimitConformance } from './conformance/body-limit.ts'
import { capConformance } from './conformance/caps.ts'
import { creditBackConformance } from './conformance/credit-back.ts'
import type { StoreUnderTest } from './conformance/fixtures.ts'
import { holdFloorConformance } from './conformance/hold-floors.ts'
import { keyListConformance } from './conformance/key-list.ts'
import { keyConformance } from './conformance/keys.ts'
import { ledgerConformance } from './conformance/ledger.ts'
import { onceConformance } from './conformance/once.ts'
import { refusedCallConformance } from './conformance/refused-calls.ts'
import { requestLogConformance } from './conformance/request-log.ts'
import { sessionConformance } from './conformance/sessions.ts'
import { sortedKeyConformance } from './conformance/sorted-keys.ts'
import { usageConformance } from './conformance/usage.ts'

async function openFresh(): Promise<StoreUnderTest> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-store-'))
  const file = join(folder, 'tollgate.db')
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
    async close() {
      reader.close()
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
}

ledgerConformance('SQLite', openFresh)
capConformance('SQLite', openFresh)
holdFloorConformance('SQLite', openFresh)
keyConformance('SQLite', openFresh)
keyListConformance('SQLite', openFresh)
onceConformance('SQLite', openFresh)
requestLogConformance('SQLite', openFresh)
sessionConformance('SQLite', openFresh)
sortedKeyConformance('SQLite', openFresh)
auditRunConformance('SQLite', openFresh)
usageConformance('SQLite', openFresh)
creditBackConformance('SQLite', openFresh)
refusedCallConformance('SQLite', openFresh)
bodyLimitConformance('SQLite', openFresh)
