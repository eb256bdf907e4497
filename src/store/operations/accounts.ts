import { accountObject, changesOf } from '../../api/objects.ts'
import type { Actor } from '../../kernel/actor.ts'
import type { Idempotency } from '../../kernel/idempotency.ts'
import { SURFACE_NAMES } from '../../kernel/vocabulary.ts'
import type {
  AccountChanges,
  AccountList,
  AccountQuery,
  AccountRecord,
  NewAccount,
} from '../../ledger/account.ts'
import { dayOf, monthOf } from '../../ledger/calendar.ts'
import { present, readWideSum, recordOf, text, wideSum } from '../rows.ts'
import { recordCapChange } from './budget-events.ts'
import { recordEvent } from './events.ts'
import { orMetadataPair, POSITION } from './keys.ts'
import {
  ACCOUNT_RECORD,
  type AccountState,
  accountCeilings,
  accountRecord,
  upstreamOf,
} from './money-rows.ts'
import { atomic, columnsEqual, currentTime, type Operation, selectPage } from './operation.ts'
import { runOnce } from './settings.ts'
import { and, FOR_UPDATE, now, onPostgres, raw, sql } from './sql.ts'
import { insertInto, updateRow } from './write-rows.ts'

/** Accounts are never deleted. */

function* hasAccount(id: string): Operation<boolean> {
  return (yield sql`SELECT id FROM account WHERE id = ${id}`).length > 0
}

export function* readOwnUpstreams(): Operation<readonly Pick<AccountRecord, 'id' | 'name' | 'upstreams'>[]> {
  const rows = yield sql`
    SELECT id, name, messages_url, messages_key, chat_url, chat_key FROM account
    WHERE messages_url IS NOT NULL OR chat_url IS NOT NULL ORDER BY id`
  return rows.map(recordOf<AccountState & AccountRecord>).map((account) => ({
    ...{ id: account.id, name: account.name },
    upstreams: { messages: upstreamOf(account, 'messages'), chat: upstreamOf(account, 'chat') },
  }))
}

/** Tables whose rows belong to an account, by the prefix of their ids. */
const TABLES_BY_PREFIX: ReadonlyMap<string, readonly string[]> = new Map([
  ['key', ['api_key']],
  ['req', ['call', 'hold', 'refused_call']],
  ['wh', ['webhook']],
  ['adm', ['admin_key']],
  ['evt', ['event']],
  ['per', ['person']],
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

/** Whether the record with this id is of the account and of the person. */
function* isOfPerson(id: string, personId: string, accountId: string): Operation<boolean> {
  const [prefix = ''] = id.split('_')
  const tables = prefix === 'key' || prefix === 'req' ? (TABLES_BY_PREFIX.get(prefix) ?? []) : []
  for (const table of tables) {
    const rows = yield sql`
      SELECT id FROM ${raw(table)} WHERE id = ${id} AND person_id = ${personId} AND account_id = ${accountId}`
    if (rows.length > 0) return true
  }
  return false
}

export function* getAccount(id: string, atMs: number): Operation<AccountRecord | null> {
  const [row] = yield sql`SELECT ${ACCOUNT_RECORD}, ${now(atMs)} AS now_ms FROM account a WHERE id = ${id}`
  return row === undefined ? null : accountRecord(row)
}

const createAccount = atomic(function* (account: NewAccount, actor: Actor, idempotency: Idempotency | null) {
  const { id, name, createdAtMs, ...changes } = account
  const readNow = (subject: string) => getAccount(subject, createdAtMs)
  return yield* runOnce(idempotency, id, readNow, function* () {
    if (changes.creditEnforced === true && changes.force !== true)
      return { kind: 'balance_not_positive', balanceNanos: 0n } as const
    const columns = columnsOf({ name, ...changes })
    yield insertInto('account', [{ id, createdAtMs: now(createdAtMs), hasOthers: true, ...columns }])
    yield sql`UPDATE account SET has_others = true, terms_version = terms_version + 1 WHERE NOT has_others`
    const value = present(yield* getAccount(id, createdAtMs))
    const data = { account: accountObject(value, createdAtMs) }
    yield* recordEvent({ accountId: id, type: 'account.created', actor, data }, createdAtMs)
    return { kind: 'done', value } as const
  })
})

const updateAccount = atomic(function* (id: string, changes: AccountChanges, actor: Actor, atMs: number) {
  // Admissions that read the old terms either come first, or run again because the version of the terms differs.
  yield onPostgres(sql`SELECT id FROM account WHERE id = ${id} ${FOR_UPDATE}`)
  const nowMs = yield* currentTime(atMs)
  const before = yield* getAccount(id, nowMs)
  if (before === null) return { kind: 'none' } as const
  const { balanceNanos } = before
  const startsEnforcing = changes.creditEnforced === true && !before.creditEnforced
  if (startsEnforcing && balanceNanos <= 0n && changes.force !== true)
    return { kind: 'balance_not_positive', balanceNanos } as const
  yield updateRow('account', id, { ...columnsOf(changes), termsVersion: sql`terms_version + 1` })
  const account = present(yield* getAccount(id, nowMs))
  yield* recordAccountEvent(before, account, actor, nowMs)
  const { monthlyBudgetNanos = null } = changes
  const changed = { ...account, monthlyBudgetNanos, month: monthOf(nowMs) }
  const subject = { account: accountObject(account, nowMs) }
  const edit = { accountId: id, budgetId: id, subject, actor }
  yield* recordCapChange(edit, accountCeilings(changed, dayOf(nowMs), nowMs), nowMs)
  return { kind: 'done', account } as const
})

function columnsOf({ force: _, upstreams = {}, ...changes }: AccountChanges): object {
  const columns = SURFACE_NAMES.filter((surface) => upstreams[surface] !== undefined).flatMap((surface) => [
    [`${surface}Url`, upstreams[surface]?.url ?? null],
    [`${surface}Key`, upstreams[surface]?.sealedKey ?? null],
  ])
  return { ...changes, nameUpper: changes.name?.toUpperCase(), ...Object.fromEntries(columns) }
}

/** Records an event if something changed. Upstream keys appear by name, without values. */
function* recordAccountEvent(
  before: AccountRecord,
  after: AccountRecord,
  actor: Actor,
  nowMs: number,
): Operation<void> {
  const account = accountObject(after, nowMs)
  const secrets = SURFACE_NAMES.filter(
    (surface) => before.upstreams[surface]?.sealedKey !== after.upstreams[surface]?.sealedKey,
  ).map((surface) => [`upstreams.${surface}.key`, { old: null, new: null }] as const)
  const fields = changesOf(accountObject(before, nowMs), account) ?? {}
  const changes = { ...fields, ...Object.fromEntries(secrets) }
  if (Object.keys(changes).length === 0) return
  const event = { accountId: after.id, actor }
  if (before.status === after.status)
    yield* recordEvent({ ...event, type: 'account.updated', data: { account, changes } }, nowMs)
  else {
    const type = after.status === 'active' ? 'account.resumed' : 'account.suspended'
    yield* recordEvent({ ...event, type, data: { account } }, nowMs)
  }
}

/** Newest first, read in the order of the primary key. The first account, whose id is not a ULID, comes last. */
function* listAccounts({ status, search, after, limit, atMs }: AccountQuery): Operation<AccountList> {
  const nowMs = yield* currentTime(atMs)
  const where = columnsEqual({ status })
  if (search !== null)
    where.push(sql`(${POSITION}(name_upper, ${search.toUpperCase()}) > 0 OR ${POSITION}(id, ${search}) > 0
      ${orMetadataPair(search)})`)
  const select = sql`${ACCOUNT_RECORD}, ${now(atMs)} AS now_ms`
  const page = { select, from: raw('account a'), where: [sql`id <> 'default'`, ...where] }
  // No id sorts before the empty text.
  const isEnd = after === 'default'
  const others = yield* selectPage(page, { after: isEnd ? '' : after, limit }, accountRecord)
  const isFirstNext = !isEnd && !others.more
  const first = isFirstNext
    ? yield sql`SELECT ${select} FROM account a WHERE ${and([sql`id = 'default'`, ...where])}`
    : []
  const rows = [...others.rows, ...first.map(accountRecord)]
  const spent = sql`CASE WHEN month = ${monthOf(nowMs)} THEN spent_nanos ELSE 0 END`
  const [total] = yield sql`
    SELECT ${raw(`${wideSum('spent_nanos', 'spent')}, ${wideSum('held_nanos', 'held')}`)},
      ${raw(wideSum('credited_nanos - charged_nanos', 'balance'))}
    FROM (SELECT ${spent} AS spent_nanos, held_nanos, credited_nanos, charged_nanos FROM account
      WHERE ${and([sql`true`, ...where])}) AS a`
  const sumOf = (name: string) => readWideSum(present(total), name)
  return {
    rows: rows.slice(0, limit),
    more: others.more || rows.length > limit,
    total: { spentNanos: sumOf('spent'), heldNanos: sumOf('held'), balanceNanos: sumOf('balance') },
  }
}

export const ACCOUNTS = {
  brief: {
    hasAccount,
    findAccountOf,
    isOfPerson,
    createAccount,
    getAccount,
    updateAccount,
    readOwnUpstreams,
  },
  reads: { listAccounts },
}
