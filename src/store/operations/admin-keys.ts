import { adminKeyObject } from '../../api/objects.ts'
import type { Actor } from '../../kernel/actor.ts'
import type { AdminKeyQuery, AdminKeyRecord, AdminScope, NewAdminKey, Page } from '../../keys/key-store.ts'
import { present } from '../rows.ts'
import { tables } from '../tables.ts'
import { recordEvent } from './events.ts'
import { endSessionsOf } from './key-lookup.ts'
import { atomic, type Operation, selectPage } from './operation.ts'
import { now, onPostgres, raw, type Sql, sql } from './sql.ts'
import { insertInto } from './write-rows.ts'

const RECORD = tables.adminKey.select([
  'id',
  'role',
  'accountId',
  'name',
  'prefix',
  'last4',
  'createdAtMs',
  'revokedAtMs',
  'lastUsedAtMs',
  'bootstrap',
])
const COLUMNS = raw(RECORD.list)

/** Serialises creating and revoking operator keys, also between nodes that start at the same time. */
const LOCK = onPostgres(`SELECT pg_advisory_xact_lock(hashtextextended('tollgate operator keys', 0))`)

const createAdminKey = atomic(function* (key: NewAdminKey, actor: Actor) {
  if (key.bootstrap) {
    yield LOCK
    yield* revokeBootstrapKeysWhere(sql`digest <> ${key.digest}`, actor, key.createdAtMs)
  }
  const [previous] = yield sql`SELECT revoked_at_ms FROM admin_key WHERE digest = ${key.digest}`
  const onConflict = key.bootstrap
    ? sql`ON CONFLICT (digest) DO UPDATE SET revoked_at_ms = NULL, bootstrap = true`
    : sql``
  const [row] = yield insertInto('admin_key', [key], sql`${onConflict} RETURNING ${COLUMNS}`)
  const record = RECORD.read(present(row))
  const isNew = previous === undefined || previous['revoked_at_ms'] !== null
  if (isNew) yield* recordAdminKeyEvent('admin_key.created', record, actor, key.createdAtMs)
  return record
})

const revokeBootstrapKeys = atomic(function* (actor: Actor, atMs: number) {
  yield LOCK
  yield* revokeBootstrapKeysWhere(sql`true`, actor, atMs)
})

function* hasOperatorKey(): Operation<boolean> {
  const rows = yield sql`SELECT id FROM admin_key WHERE role = 'operator' AND revoked_at_ms IS NULL LIMIT 1`
  return rows.length > 0
}

function* revokeBootstrapKeysWhere(condition: Sql, actor: Actor, atMs: number): Operation<void> {
  const revoked = yield sql`
    UPDATE admin_key SET revoked_at_ms = ${now(atMs)} WHERE bootstrap AND revoked_at_ms IS NULL AND ${condition}
    RETURNING ${COLUMNS}`
  for (const key of revoked.map(RECORD.read)) {
    yield* endSessionsOf(key.id)
    yield* recordAdminKeyEvent('admin_key.revoked', key, actor, atMs)
  }
}

function* listAdminKeys(query: AdminKeyQuery): Operation<Page<AdminKeyRecord>> {
  const page = { select: COLUMNS, from: raw('admin_key'), where: [inScope(query.scope)] }
  return yield* selectPage(page, query, RECORD.read)
}

const revokeAdminKey = atomic(function* (scope: AdminScope, id: string, actor: Actor, atMs: number) {
  yield LOCK
  const [row] = yield sql`SELECT ${COLUMNS} FROM admin_key WHERE id = ${id} AND ${inScope(scope)}`
  if (row === undefined) return { kind: 'none' } as const
  const before = RECORD.read(row)
  if (before.revokedAtMs !== null) return { kind: 'revoked', key: before } as const
  if (before.bootstrap) return { kind: 'configured' } as const
  if (before.role === 'operator') {
    const others = yield sql`
      SELECT id FROM admin_key WHERE role = 'operator' AND revoked_at_ms IS NULL AND id <> ${id} LIMIT 1`
    if (others.length === 0) return { kind: 'last_operator' } as const
  }
  const [revoked] = yield sql`
    UPDATE admin_key SET revoked_at_ms = coalesce(revoked_at_ms, ${now(atMs)}) WHERE id = ${id} RETURNING ${COLUMNS}`
  yield* endSessionsOf(id)
  const key = RECORD.read(present(revoked))
  yield* recordAdminKeyEvent('admin_key.revoked', key, actor, atMs)
  return { kind: 'revoked', key } as const
})

function inScope({ accountId, operators }: AdminScope): Sql {
  if (accountId === null) return sql`true`
  return operators ? sql`(account_id = ${accountId} OR account_id IS NULL)` : sql`account_id = ${accountId}`
}

/** Events about operator keys belong to the first account. */
function* recordAdminKeyEvent(
  type: 'admin_key.created' | 'admin_key.revoked',
  key: AdminKeyRecord,
  actor: Actor,
  atMs: number,
): Operation<void> {
  const accountId = key.accountId ?? 'default'
  yield* recordEvent({ accountId, type, actor, data: { admin_key: adminKeyObject(key) } }, atMs)
}

export const ADMIN_KEYS = {
  brief: { createAdminKey, revokeBootstrapKeys, hasOperatorKey, revokeAdminKey },
  reads: { listAdminKeys },
}
