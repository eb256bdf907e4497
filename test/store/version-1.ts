import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { ColumnKind } from '../../src/store/columns.ts'
import { FIRST_ROWS, SCHEMA } from '../../src/store/schema.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Table } from '../../src/store/table.ts'
import { TABLES } from '../../src/store/tables.ts'
import { createRecord, type SchemaPlace } from '../../src/store/upgrades.ts'
import { addKey, closing, NOON, opening } from './conformance/fixtures.ts'

/**
 * Databases of schema version 1, as SQL. They never change once version 1 is released. Until then,
 * `node test/store/version-1.ts` writes them anew.
 */
export const PLACES: readonly SchemaPlace[] = ['postgres', 'main', 'bodies']

const fileOf = (place: SchemaPlace) => new URL(`version-1.${place}.sql`, import.meta.url)

export const versionOne = (place: SchemaPlace): string => readFileSync(fileOf(place), 'utf8')

/** The statements that create version 1, without a row of ours. They are the beginning of the file. */
export const creationOf = (place: SchemaPlace): string => `${createRecord(AT_1)};\n${SCHEMA.create(place)}\n`

export const AT_1 = { version: 1, oldestVersion: 1 }

type Row = Readonly<Record<string, unknown>>

/** A settled call with its bodies, and on SQLite an open one: on PostgreSQL it would belong to a node. */
async function fill(file: string, place: SchemaPlace): Promise<void> {
  const store = await openSqliteStore(file, (error) => {
    throw error
  })
  await addKey(store, 'a')
  await store.admit(opening('req_0', 'a'))
  await store.settle(closing('req_0'))
  if (place !== 'postgres') await store.admit(opening('req_1', 'a'))
  const request = { compressed: Buffer.of(1), contentType: null, lengthBytes: 1, truncated: false }
  await store.storeBodies({ requestId: 'req_0', atMs: NOON, request, response: null })
  await store.close()
}

function literalOf(value: unknown, kind: ColumnKind, place: SchemaPlace): string {
  if (value === null) return 'NULL'
  if (value instanceof Uint8Array) {
    const hex = Buffer.from(value).toString('hex')
    return place === 'postgres' ? `'\\x${hex}'` : `X'${hex}'`
  }
  if (kind === 'flag' && place === 'postgres') return String(value === 1n)
  return typeof value === 'bigint' ? String(value) : `'${String(value).replaceAll("'", "''")}'`
}

function insertOf({ name, columns }: Table, row: Row, place: SchemaPlace): string {
  const given = columns.filter((column) => column.name in row)
  const values = given.map((column) => literalOf(row[column.name], column.kind, place))
  return `INSERT INTO ${name} (${given.map((column) => column.name).join(', ')}) VALUES (${values.join(', ')});`
}

function rowsOf(folder: string, { name, location }: Table): readonly Row[] {
  if (location === 'postgres') return []
  const db = new DatabaseSync(join(folder, location === 'bodies' ? 'bodies.db' : 'tollgate.db'), {
    readBigInts: true,
  })
  const rows = db.prepare(`SELECT * FROM ${name}`).all()
  db.close()
  return rows
}

async function write(place: SchemaPlace): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-version-1-'))
  await fill(join(folder, 'tollgate.db'), place)
  const tables = TABLES.filter(({ location }) => place === 'postgres' || location === place)
  const first = tables.filter(({ name }) => name in FIRST_ROWS).map(({ name }) => `DELETE FROM ${name};`)
  const rows = tables.flatMap((table) => rowsOf(folder, table).map((row) => insertOf(table, row, place)))
  writeFileSync(fileOf(place), `${creationOf(place)}${[...first, ...rows].join('\n')}\n`)
  rmSync(folder, { recursive: true })
}

if (import.meta.main) for (const place of PLACES) await write(place)
