import { changesOf, personObject } from '../../api/objects.ts'
import type { Actor } from '../../kernel/actor.ts'
import type { EventType } from '../../kernel/vocabulary.ts'
import type { Page } from '../../keys/key-store.ts'
import {
  PERSON_LIMIT_NAMES,
  type PersonLimits,
  type PersonQuery,
  type PersonRecord,
  type SignedIn,
  type SignIn,
} from '../../keys/person-store.ts'
import { columnOf } from '../../ledger/call-columns.ts'
import { pageOf, present, text } from '../rows.ts'
import { nextCheckMs } from './check-time.ts'
import { nextUlid, recordEvent } from './events.ts'
import { getKey, POSITION, recordKeyEvent, recordNewCaps, withMonth } from './keys.ts'
import { isUsable, readMemberLimits } from './member-limits.ts'
import { atomic, columnsEqual, currentTime, type Operation } from './operation.ts'
import { and, onPostgres, raw, type Sql, sql } from './sql.ts'
import { insertInto, updateRow } from './write-rows.ts'

/** People. Whoever changes a person, or creates a key or a session for one, has the lock of the person's budget. */

const personColumns = (nowMs: number): Sql => sql`
  p.id, p.account_id, p.budget_id, email, name, role, status, created_at_ms, last_seen_at_ms,
  ${raw(PERSON_LIMIT_NAMES.map(columnOf).join(', '))}, month, day, spent_nanos, held_nanos, lost_nanos, day_spent_nanos,
  (SELECT count(*) FROM api_key WHERE person_id = p.id AND ${isUsable(nowMs)}) AS keys`

export function* readPerson(id: string, nowMs: number): Operation<PersonRecord | null> {
  const [row] = yield sql`
    SELECT ${personColumns(nowMs)} FROM person AS p JOIN budget AS b ON b.id = p.budget_id WHERE p.id = ${id}`
  return row === undefined ? null : withMonth<PersonRecord>(row, nowMs)
}

function* getPerson(accountId: string, id: string, atMs: number): Operation<PersonRecord | null> {
  const person = yield* readPerson(id, yield* currentTime(atMs))
  return person?.accountId === accountId ? person : null
}

/** Admissions of the person's keys take this lock too. A move changes the budget, so the lock may have to follow. */
export function* lockPerson(id: string, atMs: number) {
  let locked: string | null = null
  for (;;) {
    const nowMs = yield* currentTime(atMs)
    const person = yield* readPerson(id, nowMs)
    if (person === null) return null
    if (person.budgetId === locked) return { person, nowMs }
    locked = person.budgetId
    yield onPostgres(sql`SELECT id FROM budget WHERE id = ${locked} FOR NO KEY UPDATE`)
  }
}

export function* recordPersonEvent(
  type: EventType & `person.${string}`,
  person: PersonRecord,
  actor: Actor,
  nowMs: number,
  extra: object = {},
): Operation<void> {
  const data = { person: personObject(person, nowMs), ...extra }
  yield* recordEvent({ accountId: person.accountId, type, actor, data }, nowMs)
}

/** Creates a person at the first sign-in. Later, role, name and email follow each sign-in. */
const signInPerson = atomic(function* (signIn: SignIn): Operation<SignedIn> {
  const { issuer, subject, accountId, refreshToken } = signIn
  // Two first sign-ins at once must not create two people.
  yield onPostgres(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`${issuer} ${subject}`}, 0))`)
  const [known] = yield sql`SELECT id FROM person WHERE issuer = ${issuer} AND subject = ${subject}`
  if (known === undefined) return { kind: 'signed_in', person: yield* createPerson(signIn) }
  const { person: before, nowMs } = present(yield* lockPerson(text(known, 'id'), signIn.atMs))
  if (before.status === 'blocked') return { kind: 'blocked' }
  if (before.accountId !== accountId) return { kind: 'other_account' }
  yield updateRow('person', before.id, {
    ...shownAs(signIn),
    lastSeenAtMs: nowMs,
    checkedAtMs: nowMs,
    checkDueMs: nextCheckMs(before.id, nowMs),
    refreshToken: refreshToken ?? undefined,
  })
  const person = present(yield* readPerson(before.id, nowMs))
  yield* recordUpdate(before, person, personActor(person), nowMs)
  return { kind: 'signed_in', person }
})

function* createPerson(signIn: SignIn): Operation<PersonRecord> {
  const { newId: id, accountId, issuer, subject, refreshToken } = signIn
  const nowMs = yield* currentTime(signIn.atMs)
  const budgetId = yield* createBudget(accountId, nowMs)
  const times = {
    createdAtMs: nowMs,
    lastSeenAtMs: nowMs,
    checkedAtMs: nowMs,
    checkDueMs: nextCheckMs(id, nowMs),
  }
  const row = { id, accountId, budgetId, issuer, subject, refreshToken, ...shownAs(signIn), ...times }
  yield insertInto('person', [row])
  const person = present(yield* readPerson(id, nowMs))
  yield* recordPersonEvent('person.created', person, personActor(person), nowMs)
  return person
}

/** A budget with the limits that the account gives to its people. */
function* createBudget(accountId: string, nowMs: number): Operation<string> {
  const id = `bud_${nextUlid(nowMs)}`
  yield insertInto('budget', [{ ...(yield* readMemberLimits(accountId)), id, accountId }])
  return id
}

const TEXT_CHARS_MAX = 256

function shownAs({ email, name, role }: SignIn) {
  const [shortEmail, shortName] = [email, name].map((given) => given.slice(0, TEXT_CHARS_MAX).toWellFormed())
  return {
    email: shortEmail,
    name: shortName,
    searchUpper: `${shortName}\n${shortEmail}`.toUpperCase(),
    role,
  }
}

export function personActor({ id, name, email }: Pick<PersonRecord, 'id' | 'name' | 'email'>): Actor {
  return { kind: 'person', id, name: name === '' ? email : name }
}

/** Records an event if fields that a sign-in or a PATCH sets have changed. `extra`: changes of the person's keys. */
export function* recordUpdate(
  before: PersonRecord,
  after: PersonRecord,
  actor: Actor,
  nowMs: number,
  extra: object = {},
): Operation<void> {
  const editable = ({ email, name, role, ...person }: PersonRecord): object => {
    const { monthly_budget_usd, daily_budget_usd, requests_per_minute, budget_mode } = personObject(
      { email, name, role, ...person },
      nowMs,
    )
    return { email, name, role, monthly_budget_usd, daily_budget_usd, requests_per_minute, budget_mode }
  }
  const changes = { ...changesOf(editable(before), editable(after)), ...extra }
  if (Object.keys(changes).length > 0)
    yield* recordPersonEvent('person.updated', after, actor, nowMs, { changes })
}

/** Null: the account has no person with this id. */
function* lockIn(accountId: string, id: string, atMs: number) {
  const locked = yield* lockPerson(id, atMs)
  return locked?.person.accountId === accountId ? locked : null
}

const updatePerson = atomic(function* (
  accountId: string,
  id: string,
  changes: Partial<PersonLimits>,
  actor: Actor,
  atMs: number,
): Operation<PersonRecord | null> {
  const locked = yield* lockIn(accountId, id, atMs)
  return locked && (yield* changeLimits(locked.person, changes, actor, locked.nowMs))
})

/** The person must be locked. `extra`: changes of the person's keys, for the event. */
export function* changeLimits(
  before: PersonRecord,
  changes: Partial<PersonLimits>,
  actor: Actor,
  nowMs: number,
  extra: object = {},
): Operation<PersonRecord> {
  const { id, budgetId, accountId } = before
  yield updateRow('budget', budgetId, changes)
  const person = present(yield* readPerson(id, nowMs))
  yield* recordUpdate(before, person, actor, nowMs, extra)
  // Events of a budget name a key. A budget that no key ever drew on has nothing to report.
  const [newest] = yield sql`SELECT id FROM api_key WHERE budget_id = ${budgetId} ORDER BY id DESC LIMIT 1`
  const key = newest && (yield* getKey(accountId, text(newest, 'id'), nowMs))
  if (key != null) yield* recordNewCaps(key, changes, actor, nowMs)
  return person
}

/** Revokes all keys, devices included, and ends all sessions. */
export function* endAccess({ id, accountId }: PersonRecord, actor: Actor, nowMs: number): Operation<void> {
  const revoked = yield sql`
    UPDATE api_key SET revoked_at_ms = ${nowMs}
    WHERE person_id = ${id} AND ${isUsable(nowMs)} RETURNING id`
  yield sql`DELETE FROM session WHERE person_id = ${id}`
  yield sql`DELETE FROM device_code WHERE person_id = ${id}`
  yield sql`UPDATE person SET refresh_token = NULL WHERE id = ${id}`
  for (const row of revoked) {
    const key = present(yield* getKey(accountId, text(row, 'id'), nowMs))
    yield* recordKeyEvent('key.revoked', key, actor, nowMs)
  }
}

const blockPerson = atomic(function* (accountId: string, id: string, actor: Actor, atMs: number) {
  const locked = yield* lockIn(accountId, id, atMs)
  if (locked === null || locked.person.status === 'blocked') return locked?.person ?? null
  yield* endAccess(locked.person, actor, locked.nowMs)
  return yield* setStatus(locked.person, 'blocked', actor, locked.nowMs)
})

const unblockPerson = atomic(function* (accountId: string, id: string, actor: Actor, atMs: number) {
  const locked = yield* lockIn(accountId, id, atMs)
  if (locked === null || locked.person.status === 'active') return locked?.person ?? null
  return yield* setStatus(locked.person, 'active', actor, locked.nowMs)
})

export function* setStatus(
  { id }: PersonRecord,
  status: PersonRecord['status'],
  actor: Actor,
  nowMs: number,
): Operation<PersonRecord> {
  yield updateRow('person', id, { status })
  const person = present(yield* readPerson(id, nowMs))
  yield* recordPersonEvent(status === 'blocked' ? 'person.blocked' : 'person.unblocked', person, actor, nowMs)
  return person
}

/** The old budget stays with the old keys and their spend. Each account gets an event that shows its own side only. */
const movePerson = atomic(function* (id: string, accountId: string, actor: Actor, atMs: number) {
  const locked = yield* lockPerson(id, atMs)
  if (locked === null || locked.person.accountId === accountId) return locked?.person ?? null
  const { nowMs } = locked
  yield* endAccess(locked.person, actor, nowMs)
  const left = present(yield* readPerson(id, nowMs))
  yield* recordPersonEvent('person.moved', left, actor, nowMs)
  yield updateRow('person', id, { accountId, budgetId: yield* createBudget(accountId, nowMs) })
  const person = present(yield* readPerson(id, nowMs))
  yield* recordPersonEvent('person.moved', person, actor, nowMs)
  return person
})

function* listPeople(query: PersonQuery): Operation<Page<PersonRecord>> {
  const { accountId, status, search, after, limit, atMs } = query
  const nowMs = yield* currentTime(atMs)
  const where = [sql`true`, ...columnsEqual({ account_id: accountId, status })]
  if (search !== null)
    where.push(
      sql`(${POSITION}(search_upper, ${search.toUpperCase()}) > 0 OR ${POSITION}(id, ${search}) > 0)`,
    )
  if (after !== null) where.push(sql`id < ${after}`)
  // Limit the page before joining the budgets.
  const page = sql`(SELECT * FROM person WHERE ${and(where)} ORDER BY id DESC LIMIT ${limit + 1})`
  const rows = yield sql`
    SELECT ${personColumns(nowMs)} FROM ${page} AS p JOIN budget AS b ON b.id = p.budget_id ORDER BY p.id DESC`
  return pageOf(rows, limit, (row) => withMonth<PersonRecord>(row, nowMs))
}

export const PEOPLE = {
  brief: {
    getPerson,
    signInPerson,
    updatePerson,
    blockPerson,
    unblockPerson,
    movePerson,
  },
  reads: { listPeople },
}
