import { limits } from '../../kernel/limits.ts'
import type { Bound } from '../../kernel/money.ts'
import type { Idempotency, IdempotentResult } from '../../kernel/vocabulary.ts'
import type { BatchFile, BoundedFile } from '../../ledger/account.ts'
import { bool, namesOf, present, type Row, text } from '../rows.ts'
import type { Operation } from './operation.ts'
import { FOR_DELETE, json, now, raw, type Sql, sql } from './sql.ts'

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
  // Rewrite an existing row unchanged, because only written rows are returned.
  const [row] = yield sql`
    INSERT INTO setting (name, value) VALUES (${name}, ${value})
    ON CONFLICT (name) DO UPDATE SET value = setting.value RETURNING value`
  return text(present(row), 'value')
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

/** The stored price version; null if there is none with this id. */
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

/** Runs a command at most once per idempotency key, and finds its answer for replays. */

type Read<T> = (subject: string) => Operation<T | null>

/**
 * Claims the key in the transaction of the command. Null: claimed, run the command now. Otherwise the command was run
 * before: return this answer and do nothing. If another transaction is claiming the key, this one waits for it without
 * locks of its own, so that many replays can read the answer at once.
 */
export function* claimKey<T>(
  idempotency: Idempotency | null,
  subject: string,
  read: Read<T>,
): Operation<IdempotentResult<T> | null> {
  if (idempotency === null) return null
  const { accountId, name, fingerprint } = idempotency
  const outdated = sql`at_ms <= (SELECT ${now(idempotency.atMs)} - ${AGE})`
  for (;;) {
    const [claimed] = yield sql`
      INSERT INTO idempotency (account_id, name, fingerprint, subject, at_ms)
      VALUES (${accountId}, ${name}, ${fingerprint}, ${subject}, ${now(idempotency.atMs)})
      ON CONFLICT (account_id, name) DO NOTHING
      RETURNING EXISTS (SELECT 1 FROM idempotency AS old WHERE old.${outdated}) AS has_outdated`
    if (claimed !== undefined) {
      if (bool(claimed, 'has_outdated')) yield forgetSome(outdated)
      return null
    }
    const replay = yield* findReplay(idempotency, read)
    if (replay !== null) return replay
    // Delete a key that has expired, and try the claim again.
    yield sql`DELETE FROM idempotency WHERE account_id = ${accountId} AND name = ${name} AND ${outdated}`
  }
}

const AGE = raw(`${limits.onceMs}`)

/** Expired keys deleted with each new key: more than one, so that a backlog shrinks, and few, so that no command takes long. */
const FORGOTTEN_AT_ONCE_MAX = 100

function forgetSome(outdated: Sql): Sql {
  return sql`
    WITH old AS MATERIALIZED (
      SELECT account_id, name FROM idempotency WHERE ${outdated}
      ORDER BY at_ms LIMIT ${FORGOTTEN_AT_ONCE_MAX} ${FOR_DELETE}
    )
    DELETE FROM idempotency WHERE (account_id, name) IN (SELECT account_id, name FROM old)`
}

/** The replay of a command that cannot run, perhaps because it ran before. Null: it did not. */
export function* findReplay<T>(
  idempotency: Idempotency | null,
  read: Read<T>,
): Operation<IdempotentResult<T> | null> {
  if (idempotency === null) return null
  const [row] = yield sql`
    SELECT subject, fingerprint FROM idempotency
    WHERE account_id = ${idempotency.accountId} AND name = ${idempotency.name} AND at_ms > ${now(idempotency.atMs)} - ${AGE}`
  return row === undefined ? null : yield* replay(row, idempotency, read)
}

/** The command did nothing, so its key may be used again. */
export function* giveUpKey(idempotency: Idempotency | null): Operation<void> {
  if (idempotency === null) return
  yield sql`
    DELETE FROM idempotency WHERE account_id = ${idempotency.accountId} AND name = ${idempotency.name}`
}

function* replay<T>(row: Row, idempotency: Idempotency, read: Read<T>): Operation<IdempotentResult<T>> {
  if (Buffer.compare(row['fingerprint'] as Uint8Array, idempotency.fingerprint) !== 0)
    return { kind: 'conflict' }
  // If the subject is not a record of this kind, another kind of command used the key.
  const value = yield* read(text(row, 'subject'))
  return value === null ? { kind: 'conflict' } : { kind: 'repeated', value }
}
