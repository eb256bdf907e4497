import { writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { migrateSqlite } from '../../src/store/sqlite/database.ts'
import { NEXT } from './next-release.ts'

/** `node test/store/endless-upgrade.ts <file>`: an upgrade whose last step never ends, to be killed. */
const [, , file = ''] = process.argv
const [first] = NEXT.steps
const main = `CREATE TABLE half (i INTEGER);
  WITH RECURSIVE n (i) AS (SELECT said() UNION ALL SELECT i + 1 FROM n) INSERT INTO half SELECT i FROM n WHERE i < 0`
const endless = { version: 3, oldestVersion: 1, statements: { main } }

const db = new DatabaseSync(file, { readBigInts: true })
db.function('said', () => {
  writeSync(1, 'step 3 runs')
  return 1
})
migrateSqlite(db, 'main', { ...NEXT, steps: first === undefined ? [] : [first, endless] })
