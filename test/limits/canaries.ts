import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type DatabaseOwner, openDatabaseReader } from '../support/read-database.ts'

export interface Canary {
  readonly name: string
  readonly value: string
}

export interface Place {
  readonly where: string
  readonly bytes: Buffer
}

/** Our keys show 16 first and 4 last characters. The middle is searched in pieces: half is a leak too. */
function tellingParts(value: string): string[] {
  const inner = /^svc_(?:live|admin)_/.test(value) ? value.slice(16, -4) : value
  const pieceChars = 12
  const parts: string[] = []
  for (let at = 0; at + pieceChars <= inner.length; at += pieceChars) {
    parts.push(inner.slice(at, at + pieceChars))
  }
  return parts
}

/** The names of all texts that contain a part of a secret in plain text, hexadecimal or base64. */
export function findLeaks(canaries: readonly Canary[], places: readonly Place[]): string[] {
  const leaks = new Set<string>()
  for (const { name, value } of canaries) {
    const whole = Buffer.from(value)
    const wanted = [
      ...tellingParts(value),
      whole.toString('hex'),
      // At a third of all offsets a secret has these characters in base64.
      whole.toString('base64').slice(0, -4),
      whole.toString('base64url').slice(0, -4),
    ]
    for (const { where, bytes } of places) {
      for (const part of wanted) {
        const at = bytes.indexOf(part)
        if (at === -1) continue
        leaks.add(`${name} in ${where}: …${bytes.subarray(Math.max(0, at - 60), at).toString('latin1')}▮`)
        break
      }
    }
  }
  return [...leaks]
}

/** All files under a data directory, except those that hold a secret by design. */
export function filesOf(dataDir: string, but: readonly string[] = ['admin-key', 'pepper']): Place[] {
  if (!existsSync(dataDir)) return []
  return readdirSync(dataDir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !but.some((name) => file === join(dataDir, name)))
    .map((file) => ({ where: file.slice(dataDir.length + 1), bytes: readFileSync(file) }))
}

/** The database by column, so that a leak is named by its column. */
export async function columnsOf(gateway: DatabaseOwner): Promise<Place[]> {
  const database = openDatabaseReader(gateway)
  try {
    const tables = await database.read(
      gateway.databaseUrl === null
        ? "SELECT name FROM sqlite_schema WHERE type = 'table'"
        : "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
    )
    const places = await Promise.all(
      tables.map(async ({ name: table }) => {
        const rows = await database.read(`SELECT * FROM "${table}"`)
        return Object.keys(rows[0] ?? {}).map((column) => ({
          where: `column ${table}.${column}`,
          bytes: Buffer.from(rows.map((row) => textOf(row[column])).join('\n')),
        }))
      }),
    )
    return places.flat()
  } finally {
    await database.close()
  }
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)
}
