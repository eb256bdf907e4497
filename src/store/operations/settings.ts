import type { Idempotency, IdempotentResult } from '../../kernel/idempotency.ts'
import { limits } from '../../kernel/limits.ts'
import type { Bound } from '../../kernel/money.ts'
import type { BatchFile, BoundedFile } from '../../ledger/account.ts'
import { namesOf, present, text } from '../rows.ts'
import type { Operation } from './operation.ts'
import { now, sql } from './sql.ts'
import { insertInto } from './write-rows.ts'

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

function* getOrCreateSetting(name: string, value: string): Operation<string> {
  // Rewrite an existing row unchanged, because only written rows are returned.
  const [row] = yield sql`
    INSERT INTO setting (name, value) VALUES (${name}, ${value})
    ON CONFLICT (name) DO UPDATE SET value = setting.value RETURNING value`
  return text(present(row), 'value')
}

/** False: the value is not `from` any more. One of several nodes can claim work with it. */
function* replaceSetting(name: string, from: string, to: string): Operation<boolean> {
  const replaced =
    yield sql`UPDATE setting SET value = ${to} WHERE name = ${name} AND value = ${from} RETURNING name`
  return replaced.length > 0
}

function* probeWrite(): Operation<void> {
  // SQLite skips the write if the value does not change, so toggle it.
  yield sql`
    INSERT INTO setting (name, value) VALUES ('write_probe', '0')
    ON CONFLICT (name) DO UPDATE SET value = CASE setting.value WHEN '0' THEN '1' ELSE '0' END`
}

export function* storePriceVersion(id: string, priceJson: string): Operation<void> {
  yield sql`INSERT INTO price_version (id, json) VALUES (${id}, ${priceJson}) ON CONFLICT DO NOTHING`
}

function* readPriceVersion(id: string): Operation<string | null> {
  const [row] = yield sql`SELECT json FROM price_version WHERE id = ${id}`
  return row === undefined ? null : text(row, 'json')
}

function* storeBatchFile(file: BatchFile): Operation<void> {
  yield insertInto(
    'batch_file',
    [{ ...file, bound: writeBound(file.bound) }],
    sql`ON CONFLICT (account_id, file_id) DO UPDATE SET key_id = excluded.key_id, models = excluded.models,
      bound = excluded.bound, at_ms = excluded.at_ms`,
  )
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
    writeSetting,
    getOrCreateSetting,
    replaceSetting,
    probeWrite,
    storePriceVersion,
    readPriceVersion,
    storeBatchFile,
    findBatchFile,
  },
  reads: {},
}

/** Runs a command once per idempotency key. The claim must be the first lock: a concurrent repetition waits for it. */
export function* runOnce<T, R extends { readonly kind: string }>(
  idempotency: Idempotency | null,
  subject: string,
  read: (subject: string) => Operation<T | null>,
  run: () => Operation<R>,
): Operation<R | IdempotentResult<T>> {
  if (idempotency === null) return yield* run()
  const { accountId, name, fingerprint } = idempotency
  const isThis = sql`account_id = ${accountId} AND name = ${name}`
  const expiredMs = sql`${now(idempotency.atMs)} - ${limits.onceMs}`
  const readEarlier = sql`SELECT subject, fingerprint FROM idempotency WHERE ${isThis} AND at_ms > ${expiredMs}`
  // Read before claiming: a claim locks the row, and repeated commands would wait for each other.
  let [earlier] = yield readEarlier
  if (earlier === undefined) {
    const claim = { accountId, name, fingerprint, subject, atMs: now(idempotency.atMs) }
    const claimed = yield insertInto(
      'idempotency',
      [claim],
      sql`ON CONFLICT (account_id, name) DO UPDATE SET fingerprint = excluded.fingerprint, subject = excluded.subject,
        at_ms = excluded.at_ms WHERE idempotency.at_ms <= ${expiredMs} RETURNING name`,
    )
    if (claimed.length > 0) {
      const result = yield* run()
      if (result.kind !== 'done') yield sql`DELETE FROM idempotency WHERE ${isThis}`
      return result
    }
    ;[earlier] = yield readEarlier
  }
  const { subject: earlierSubject, fingerprint: earlierFingerprint } = present(earlier)
  if (Buffer.compare(earlierFingerprint as Uint8Array, fingerprint) !== 0) return { kind: 'conflict' }
  // If the subject is not a record of this kind, another kind of command used the key.
  const value = yield* read(String(earlierSubject))
  return value === null ? { kind: 'conflict' } : { kind: 'repeated', value }
}
