import type { DatabaseSync } from 'node:sqlite'
import type { Operations } from './operations.ts'

export function settingOperations(
  db: DatabaseSync,
): Pick<Operations, 'readSetting' | 'keepSetting' | 'probeWrite'> {
  const select = db.prepare('SELECT value FROM setting WHERE name = ?')
  const insert = db.prepare('INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING')

  // A value that stays the same would not be written.
  const probe = db.prepare(
    `INSERT INTO setting (name, value) VALUES ('write_probe', '0')
     ON CONFLICT (name) DO UPDATE SET value = CASE value WHEN '0' THEN '1' ELSE '0' END`,
  )

  function readSetting(name: string): string | null {
    const row = select.get(name)
    return row === undefined ? null : String(row['value'])
  }

  return {
    readSetting,
    keepSetting(name, value) {
      insert.run(name, value)
      return readSetting(name) ?? value
    },
    probeWrite() {
      probe.run()
    },
  }
}
