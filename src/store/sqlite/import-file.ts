import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { type Cell, emptyStore } from '../export-rows.ts'
import type { ImportInto } from '../import-rows.ts'
import type { Column } from '../schema.ts'
import { migrate, statementRunner } from './database.ts'

/** Uses a rollback journal, because with write-ahead logs a transaction over two files is not atomic. */
export function importIntoFile(dataDir: string): ImportInto {
  return async (work) => {
    const bodiesFile = join(dataDir, 'bodies.db')
    const bodies = new DatabaseSync(bodiesFile)
    bodies.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = DELETE')
    migrate(bodies, 'bodies')
    bodies.close()
    const db = new DatabaseSync(join(dataDir, 'tollgate.db'), { readBigInts: true })
    try {
      db.exec('PRAGMA journal_mode = DELETE; PRAGMA cache_size = -200000')
      migrate(db)
      db.prepare('ATTACH ? AS bodies').run(bodiesFile)
      db.exec('BEGIN IMMEDIATE')
      const run = statementRunner(db)
      await emptyStore(async (statement) => run(statement))
      const answer = await work(async (table, columns, rows) => {
        const names = columns.map(({ name }) => name).join(', ')
        const insert = db.prepare(
          `INSERT INTO ${table} (${names}) VALUES (${columns.map(() => '?').join(', ')})`,
        )
        for (const row of rows) insert.run(...row.map((cell, at) => boundValue(cell, columns[at])))
      })
      db.exec('COMMIT')
      return answer
    } finally {
      // Closing the connection rolls back an uncommitted transaction.
      db.close()
    }
  }
}

function boundValue(cell: Cell, column: Column | undefined): SQLInputValue {
  if (cell === null) return null
  switch (column?.kind) {
    case 'integer':
      return typeof cell === 'string' ? BigInt(cell) : (cell as number)
    case 'flag':
      return cell === true ? 1 : 0
    case 'bytes':
      return Buffer.from(String(cell), 'base64')
    default:
      return String(cell)
  }
}
