import type { DatabaseSync } from 'node:sqlite'
import type { Operations } from './operations.ts'

export function settingOperations(db: DatabaseSync): Pick<Operations, 'readSetting' | 'writeSetting'> {
  const select = db.prepare('SELECT value FROM setting WHERE name = ?')
  const upsert = db.prepare(
    'INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  return {
    readSetting(name) {
      const row = select.get(name)
      return row === undefined ? null : String(row['value'])
    },
    writeSetting(name, value) {
      upsert.run(name, value)
      return null
    },
  }
}
