import type { Bound } from '../../kernel/money.ts'
import type { BatchFile, BoundedFile } from '../../ledger/ledger-store.ts'
import { namesOf, present, text } from '../rows.ts'
import type { Operation } from './operation.ts'
import { json, sql } from './sql.ts'

/** Small records that are written once and looked up: settings, price versions, batch files. */

export function* readSetting(name: string): Operation<string | null> {
  const [row] = yield sql`SELECT value FROM setting WHERE name = ${name}`
  return row === undefined ? null : text(row, 'value')
}

export function* writeSetting(name: string, value: string): Operation<void> {
  yield sql`
    INSERT INTO setting (name, value) VALUES (${name}, ${value})
    ON CONFLICT (name) DO UPDATE SET value = excluded.value`
}

/** The value that was there first stays. */
function* getOrCreateSetting(name: string, value: string): Operation<string> {
  // An existing row is written as it was, because only written rows are returned.
  const [row] = yield sql`
    INSERT INTO setting (name, value) VALUES (${name}, ${value})
    ON CONFLICT (name) DO UPDATE SET value = setting.value RETURNING value`
  return text(present(row), 'value')
}

function* probeWrite(): Operation<void> {
  // SQLite would not write a value that stays the same.
  yield sql`
    INSERT INTO setting (name, value) VALUES ('write_probe', '0')
    ON CONFLICT (name) DO UPDATE SET value = CASE setting.value WHEN '0' THEN '1' ELSE '0' END`
}

export function* storePriceVersion(id: string, priceJson: string): Operation<void> {
  yield sql`INSERT INTO price_version (id, json) VALUES (${id}, ${priceJson}) ON CONFLICT DO NOTHING`
}

/** The price version as it was stored; null if there is none of this id. */
function* readPriceVersion(id: string): Operation<string | null> {
  const [row] = yield sql`SELECT json FROM price_version WHERE id = ${id}`
  return row === undefined ? null : text(row, 'json')
}

function* storeBatchFile(file: BatchFile): Operation<void> {
  const { accountId, keyId, fileId, models, bound, atMs } = file
  yield sql`
    INSERT INTO batch_file (account_id, key_id, file_id, models, bound, at_ms)
    VALUES (${accountId}, ${keyId}, ${fileId}, ${json(models)}, ${writeBound(bound)}, ${atMs})
    ON CONFLICT (account_id, file_id) DO UPDATE SET key_id = excluded.key_id, models = excluded.models,
      bound = excluded.bound, at_ms = excluded.at_ms`
}

function* findBatchFile(digest: Buffer, fileId: string): Operation<BoundedFile | null> {
  const [row] = yield sql`
    SELECT models, bound FROM batch_file f JOIN api_key k ON k.id = f.key_id AND k.account_id = f.account_id
    WHERE k.digest = ${digest} AND f.file_id = ${fileId} AND bound IS NOT NULL`
  if (row === undefined) return null
  return { models: namesOf(row['models']) ?? [], bound: readBound(text(row, 'bound')) }
}

function writeBound(bound: Bound | null): string | null {
  if (bound === null) return null
  return JSON.stringify(bound, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
}

function readBound(json: string): Bound {
  return JSON.parse(json, (name, value: unknown) =>
    name.endsWith('Nanos') ? BigInt(String(value)) : value,
  ) as Bound
}

export const SETTINGS = {
  brief: {
    readSetting,
    getOrCreateSetting,
    probeWrite,
    storePriceVersion,
    readPriceVersion,
    storeBatchFile,
    findBatchFile,
  },
  reads: {},
}
