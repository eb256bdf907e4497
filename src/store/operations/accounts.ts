import { accountObject, changesOf } from '../../api/objects.ts'
import { type AccountStatus, type Actor, type Idempotency, SURFACE_NAMES } from '../../kernel/vocabulary.ts'
import type {
  AccountChanges,
  AccountCreation,
  AccountEdit,
  AccountList,
  AccountQuery,
  AccountRecord,
  NewAccount,
} from '../../ledger/account.ts'
import { dayOf, monthOf } from '../../ledger/calendar.ts'
import { pageOf, present, readWideSum, text, wideSum } from '../rows.ts'
import { recordCapEdit } from './budget-events.ts'
import { recordEvent } from './events.ts'
import { POSITION } from './keys.ts'
import {
  ACCOUNT_COLUMNS,
  ACCOUNT_RECORD,
  accountCeilings,
  accountRecord,
  accountState,
  upstreamOf,
} from './money-rows.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { claimKey } from './settings.ts'
import { and, FOR_UPDATE, join, json, now, onPostgres, raw, sql } from './sql.ts'

/** Accounts are never deleted. */

function* hasAccount(id: string): Operation<boolean> {
  return (yield sql`SELECT id FROM account WHERE id = ${id}`).length > 0
}

/** The accounts that have upstreams of their own. */
function* readOwnUpstreams(): Operation<readonly Pick<AccountRecord, 'id' | 'upstreams'>[]> {
  const rows = yield sql`
    SELECT id, messages_url, messages_key, chat_url, chat_key FROM account
    WHERE messages_url IS NOT NULL OR chat_url IS NOT NULL`
  return rows.map(accountState).map((account) => ({
    id: account.id,
    upstreams: { messages: upstreamOf(account, 'messages'), chat: upstreamOf(account, 'chat') },
  }))
}

/** Tables whose rows belong to an account, by the prefix of their ids. */
const TABLES_BY_PREFIX: ReadonlyMap<string, readonly string[]> = new Map([
  ['key', ['api_key']],
  ['req', ['call', 'refused_call']],
  ['wh', ['webhook']],
  ['adm', ['admin_key']],
])

/** The account of the record with this id; null if there is none, or if it belongs to no account. */
function* findAccountOf(id: string): Operation<string | null> {
  const [prefix = ''] = id.split('_')
  for (const table of TABLES_BY_PREFIX.get(prefix) ?? []) {
    const [row] = yield sql`SELECT account_id FROM ${raw(table)} WHERE id = ${id} AND account_id IS NOT NULL`
    if (row !== undefined) return text(row, 'account_id')
  }
  return null
}

export function* getAccount(id: string, atMs: number): Operation<AccountRecord | null> {
  const [row] = yield sql`SELECT ${ACCOUNT_RECORD}, ${now(atMs)} AS now_ms FROM account a WHERE id = ${id}`
  return row === undefined ? null : accountRecord(row)
}

const createAccount = atomic(function* (
  account: NewAccount,
  actor: Actor,
  idempotency: Idempotency | null,
): Operation<AccountCreation> {
  const { id, name, createdAtMs, ...changes } = account
  const replay = yield* claimKey(idempotency, id, (subject) => getAccount(subject, createdAtMs))
  if (replay !== null) return replay
  if (changes.creditEnforced === true && changes.force !== true)
    return { kind: 'balance_not_positive', balanceNanos: 0n }
  yield sql`
    INSERT INTO account (id, name, name_upper, created_at_ms, has_others)
    VALUES (${id}, ${name}, ${name.toUpperCase()}, ${now(createdAtMs)}, true)`
  yield* change(id, changes)
  // There is now more than one account. The lock waits for admissions that still read the first as the only one.
  yield onPostgres(sql`SELECT id FROM account WHERE NOT has_others ${FOR_UPDATE}`)
  yield sql`UPDATE account SET has_others = true WHERE NOT has_others`
  const value = yield* recordChange('account.created', id, actor, createdAtMs)
  return { kind: 'done', value }
})

const updateAccount = atomic(function* (
  id: string,
  changes: AccountChanges,
  actor: Actor,
  atMs: number,
): Operation<AccountEdit> {
  yield onPostgres(sql`SELECT id FROM account WHERE id = ${id} ${FOR_UPDATE}`)
  const before = yield* getAccount(id, atMs)
  if (before === null) return { kind: 'none' }
  const { balanceNanos } = before
  const isTurnedOn = changes.creditEnforced === true && !before.creditEnforced
  if (isTurnedOn && balanceNanos <= 0n && changes.force !== true)
    return { kind: 'balance_not_positive', balanceNanos }
  yield* change(id, changes)
  const account = yield* recordChange('account.updated', id, actor, atMs, before)
  if (changes.monthlyBudgetNanos != null) yield* recordCap(id, account, actor, atMs)
  return { kind: 'done', account }
})

/** Setting the cap at or below the spend exceeds the budget. */
function* recordCap(id: string, account: AccountRecord, actor: Actor, atMs: number): Operation<void> {
  const nowMs = yield* currentTime(atMs)
  const [row] = yield sql`SELECT ${ACCOUNT_COLUMNS} FROM account a WHERE a.id = ${id}`
  const ceilings = accountCeilings(accountState(present(row)), dayOf(nowMs))
  const subject = { account: accountObject(account, nowMs) }
  yield* recordCapEdit({ accountId: id, budgetId: id, subject, actor }, ceilings, atMs)
}

function* change(id: string, changes: AccountChanges): Operation<void> {
  const { name, monthlyBudgetNanos, creditEnforced, discountBillionths, upstreams = {}, metadata } = changes
  const set = [
    ...(name === undefined ? [] : [sql`name = ${name}, name_upper = ${name.toUpperCase()}`]),
    ...(monthlyBudgetNanos === undefined ? [] : [sql`monthly_budget_nanos = ${monthlyBudgetNanos}`]),
    ...(creditEnforced === undefined ? [] : [sql`credit_enforced = ${creditEnforced}`]),
    ...(discountBillionths === undefined ? [] : [sql`discount_billionths = ${discountBillionths}`]),
    ...(metadata === undefined ? [] : [sql`metadata = ${json(metadata)}`]),
    ...SURFACE_NAMES.flatMap((surface) => {
      const own = upstreams[surface]
      if (own === undefined) return []
      const [url, key] = [raw(`${surface}_url`), raw(`${surface}_key`)]
      return [sql`${url} = ${own?.url ?? null}, ${key} = ${own?.sealedKey ?? null}`]
    }),
  ]
  if (set.length > 0) yield sql`UPDATE account SET ${join(set)} WHERE id = ${id}`
}

const setAccountStatus = atomic(function* (
  id: string,
  status: AccountStatus,
  actor: Actor,
  atMs: number,
): Operation<AccountRecord | null> {
  // Waits for running admissions; later ones see the change.
  yield onPostgres(sql`SELECT id FROM account WHERE id = ${id} ${FOR_UPDATE}`)
  const changed =
    yield sql`UPDATE account SET status = ${status} WHERE id = ${id} AND status <> ${status} RETURNING id`
  if (changed.length === 0) return yield* getAccount(id, atMs)
  return yield* recordChange(status === 'active' ? 'account.resumed' : 'account.suspended', id, actor, atMs)
})

/** Records an event if something changed. Upstream keys appear by name, without values. */
function* recordChange(
  type: 'account.created' | 'account.updated' | 'account.suspended' | 'account.resumed',
  id: string,
  actor: Actor,
  atMs: number,
  before: AccountRecord | null = null,
): Operation<AccountRecord> {
  const nowMs = yield* currentTime(atMs)
  const account = yield* getAccount(id, atMs)
  if (account === null) throw new Error(`the account ${id} is gone`)
  const object = accountObject(account, nowMs)
  if (before === null) {
    yield* recordEvent({ accountId: id, type, actor, data: { account: object } }, atMs)
    return account
  }
  const secrets = SURFACE_NAMES.filter(
    (surface) => before.upstreams[surface]?.sealedKey !== account.upstreams[surface]?.sealedKey,
  ).map((surface) => [`upstreams.${surface}.key`, { old: null, new: null }] as const)
  const fields = changesOf(accountObject(before, nowMs), object) ?? {}
  const changes = { ...fields, ...Object.fromEntries(secrets) }
  if (Object.keys(changes).length > 0)
    yield* recordEvent({ accountId: id, type, actor, data: { account: object, changes } }, atMs)
  return account
}

/** Sort key of accounts. The first account, whose id is not a ULID, comes last. */
const PLACE = sql`coalesce(nullif(id, 'default'), '')`

function* listAccounts({ status, search, after, limit, atMs }: AccountQuery): Operation<AccountList> {
  const nowMs = yield* currentTime(atMs)
  const matching = and([
    sql`true`,
    ...(status === null ? [] : [sql`status = ${status}`]),
    ...(search === null
      ? []
      : [sql`(${POSITION}(name_upper, ${search.toUpperCase()}) > 0 OR ${POSITION}(id, ${search}) > 0)`]),
  ])
  const older = after === null ? sql`true` : sql`${PLACE} < ${after === 'default' ? '' : after}`
  const rows = yield sql`
    SELECT ${ACCOUNT_RECORD}, ${now(atMs)} AS now_ms FROM account a WHERE ${matching} AND ${older}
    ORDER BY ${PLACE} DESC LIMIT ${limit + 1}`
  const spent = sql`CASE WHEN month = ${monthOf(nowMs)} THEN spent_nanos ELSE 0 END`
  const [total] = yield sql`
    SELECT ${raw(`${wideSum('spent_nanos', 'spent')}, ${wideSum('held_nanos', 'held')}`)},
      ${raw(wideSum('credited_nanos - charged_nanos', 'balance'))}
    FROM (SELECT ${spent} AS spent_nanos, held_nanos, credited_nanos, charged_nanos FROM account WHERE ${matching}) AS a`
  const sumOf = (name: string) => readWideSum(present(total), name)
  return {
    ...pageOf(rows, limit, accountRecord),
    total: { spentNanos: sumOf('spent'), heldNanos: sumOf('held'), balanceNanos: sumOf('balance') },
  }
}

export const ACCOUNTS = {
  brief: {
    hasAccount,
    findAccountOf,
    createAccount,
    getAccount,
    updateAccount,
    setAccountStatus,
  },
  reads: { listAccounts, readOwnUpstreams },
}
