import type { Store } from '../store.ts'
import type { Database } from './database.ts'
import { text } from './rows.ts'

export function settingOperations(db: Database): Pick<Store, 'readSetting' | 'writeSetting'> {
  return {
    async readSetting(name) {
      const [row] = await db.query('SELECT value FROM setting WHERE name = $1', [name])
      return row === undefined ? null : text(row, 'value')
    },
    async writeSetting(name, value) {
      await db.query(
        'INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
        [name, value],
      )
    },
  }
}
