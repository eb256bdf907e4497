import type { Store } from '../store.ts'
import type { Database } from './database.ts'
import { present, text } from './rows.ts'

export function settingOperations(db: Database): Pick<Store, 'readSetting' | 'keepSetting' | 'probeWrite'> {
  return {
    async readSetting(name) {
      const [row] = await db.query('SELECT value FROM setting WHERE name = $1', [name])
      return row === undefined ? null : text(row, 'value')
    },
    async keepSetting(name, value) {
      // A row that is there is written as it was, because only what is written is returned.
      const [row] = await db.query(
        `INSERT INTO setting (name, value) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET value = setting.value RETURNING value`,
        [name, value],
      )
      return text(present(row), 'value')
    },
    async probeWrite() {
      // A row is written anew even if nothing in it changes.
      await db.query("UPDATE setting SET value = value WHERE name = 'pepper'")
    },
  }
}
