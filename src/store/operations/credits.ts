import { balanceObject, creditObject } from '../../api/objects.ts'
import { type Actor, SYSTEM } from '../../kernel/actor.ts'
import type { Idempotency, IdempotentResult } from '../../kernel/idempotency.ts'
import type { Nanos } from '../../kernel/money.ts'
import type {
  Balance,
  CreditBack,
  CreditBackOutcome,
  Credited,
  CreditedBack,
  EnforceResult,
  NewCredit,
} from '../../ledger/ledger-store.ts'
import { CREDIT_BACK } from '../../ledger/rerate.ts'
import { bool, nanos, number, present, type Row, text } from '../rows.ts'
import { recordBalanceMove } from './budget-events.ts'
import { recordEvent } from './events.ts'
import { claimKey, keepSubject } from './idempotency.ts'
import { FOR_LIMIT } from './money-rows.ts'
import { atomic, type Operation } from './operation.ts'
import { FOR_UPDATE, join, onPostgres, raw, type Sql, sql } from './sql.ts'

/**
 * The account's balance and the journal of credits. Every operation that moves an account locks calls first, then the
 * account, then the days, as settlement does; and the account as late as can be, since all admissions wait for it.
 */

const BALANCE = raw('credited_nanos, charged_nanos, held_nanos, credit_enforced')

export function* getBalance(accountId: string): Operation<Balance> {
  const [row] = yield sql`SELECT ${BALANCE} FROM account WHERE id = ${accountId}`
  return balanceOf(present(row))
}

export function* sumHeld(): Operation<Nanos> {
  const [row] = yield sql`SELECT CAST(coalesce(sum(held_nanos), 0) AS bigint) AS held_nanos FROM account`
  return nanos(present(row), 'held_nanos')
}

export const addCredit = atomic(function* (
  credit: NewCredit,
  idempotency: Idempotency | null,
  actor: Actor = SYSTEM,
): Operation<IdempotentResult<Credited>> {
  const { id, accountId, amountNanos, reason, atMs } = credit
  // Before anything that refers to the account, and so shares its lock.
  yield onPostgres(sql`SELECT id FROM account WHERE id = ${accountId} ${FOR_LIMIT}`)
  const replay = yield* claimKey(idempotency, id, (booked) => readCredited(accountId, booked))
  if (replay !== null) return replay
  yield sql`
    INSERT INTO credit (id, account_id, kind, amount_nanos, reason, at_ms)
    VALUES (${id}, ${accountId}, 'top_up', ${amountNanos}, ${reason}, ${atMs})`
  const [account] = yield sql`
    UPDATE account SET credited_nanos = credited_nanos + ${amountNanos}
    WHERE id = ${accountId} RETURNING ${BALANCE}`
  const balance = balanceOf(present(account))
  const data = { credit: creditObject({ credit, balance }), balance: balanceObject(balance) }
  yield* recordEvent({ accountId, type: 'credit.added', actor, data }, atMs)
  yield* recordBalanceMove({ accountId, after: balance, movedNanos: amountNanos, actor }, atMs)
  return { kind: 'done', value: { credit, balance } }
})

/** Adding credit never turns enforcement on. An account that owes money is held to its balance only by force. */
export const enforceCredit = atomic(function* (
  accountId: string,
  enforced: boolean,
  force: boolean,
): Operation<EnforceResult> {
  yield onPostgres(sql`SELECT id FROM account WHERE id = ${accountId} ${FOR_LIMIT}`)
  const balance = yield* getBalance(accountId)
  const isPositive = balance.creditedNanos > balance.chargedNanos
  if (enforced && !balance.enforced && !isPositive && !force) return { kind: 'balance_not_positive', balance }
  yield sql`UPDATE account SET credit_enforced = ${enforced} WHERE id = ${accountId}`
  return { kind: 'done', balance: { ...balance, enforced } }
})

function* readCredited(accountId: string, id: string): Operation<Credited | null> {
  const [row] = yield sql`
    SELECT amount_nanos, reason, at_ms FROM credit WHERE id = ${id} AND account_id = ${accountId}`
  if (row === undefined) return null
  const credit = {
    ...{ id, accountId, amountNanos: nanos(row, 'amount_nanos') },
    ...{ reason: text(row, 'reason'), atMs: number(row, 'at_ms') },
  }
  return { credit, balance: yield* getBalance(accountId) }
}

/**
 * Gives back the cost of calls. A call stays as it was billed, and its key's month with it: a credit-back makes no room
 * under a cap. The entry, the account's credit, the mark on the call and the credited sum of its day move together.
 */
export const creditBack = atomic(function* (
  command: CreditBack,
  idempotency: Idempotency | null,
): Operation<IdempotentResult<CreditedBack>> {
  const { accountId, reason, atMs } = command
  // The empty subject is replaced by `keepSubject` once the outcomes are known.
  const replay = yield* claimKey(idempotency, '', (subject) => readCreditedBack(subject, command))
  if (replay !== null) return replay
  const found = yield* lockCalls(command)
  const outcomes = outcomesOf(command, found)
  const credited = outcomes.filter((outcome) => outcome.kind === 'credited')
  yield* keepSubject(idempotency, SUBJECT + outcomes.map(({ kind }) => KINDS.indexOf(kind)).join(''))
  if (credited.length === 0)
    return { kind: 'done', value: { calls: outcomes, balance: yield* getBalance(accountId) } }

  // After this point the calls are credited back. A second entry of the kind would break the unique index, and with it
  // the whole command.
  const entries = credited.map(
    ({ requestId, creditId, amountNanos }) => sql`(${creditId}, ${accountId}, 'credit_back', ${amountNanos},
      ${reason}, ${requestId}, ${CREDIT_BACK}, ${atMs})`,
  )
  yield sql`
    INSERT INTO credit (id, account_id, kind, amount_nanos, reason, call_id, once, at_ms) VALUES ${join(entries)}`
  const parts = credited.map(({ requestId, amountNanos }) => dayOf(found, requestId, accountId, amountNanos))
  yield sql`
    UPDATE call SET credited = true WHERE id IN (${join(credited.map(({ requestId }) => requestId))})
      AND month IN (${join([...new Set(parts.map(({ day }) => day.slice(0, 7)))])})`
  const total = credited.reduce((sum, { amountNanos }) => sum + amountNanos, 0n)
  const balance = yield* moveAccount(accountId, total)
  yield* creditDays(parts)
  return { kind: 'done', value: { calls: outcomes, balance } }
})

/** The calls by id, with their cost less the credits since. Once the calls are locked that sum cannot change any more. */
function* lockCalls({ accountId, calls }: CreditBack): Operation<ReadonlyMap<string, Row>> {
  if (calls.length === 0) return new Map()
  // The account is compared in a way for which no index serves: the index by account would read all of its calls.
  const these = sql`FROM call WHERE id IN (${join(calls.map(({ requestId }) => requestId))})
    AND account_id IS NOT DISTINCT FROM ${accountId}`
  yield onPostgres(sql`SELECT id ${these} ORDER BY id ${FOR_UPDATE}`)
  const rows = yield sql`
    SELECT id, state, credited, key_id, day, coalesce(model_served, model_asked, '') AS model,
      coalesce(cost_nanos, 0) - ${CREDITED_NANOS} AS paid_nanos ${these}`
  return new Map(rows.map((row) => [text(row, 'id'), row]))
}

/** The sum that entries about a call have given back so far. */
export const CREDITED_NANOS: Sql = sql`CAST(
  (SELECT coalesce(sum(amount_nanos), 0) FROM credit WHERE credit.call_id = call.id) AS bigint)`

function outcomesOf({ calls }: CreditBack, found: ReadonlyMap<string, Row>): CreditBackOutcome[] {
  const credited = new Set<string>()
  return calls.map(({ requestId, creditId }) => {
    const call = found.get(requestId)
    if (call === undefined) return { kind: 'not_found', requestId }
    const state = text(call, 'state')
    if (state === 'in_flight') return { kind: 'in_flight', requestId }
    if (bool(call, 'credited') || credited.has(requestId)) return { kind: 'already_credited', requestId }
    const amountNanos = nanos(call, 'paid_nanos')
    if (state !== 'settled' || amountNanos <= 0n) return { kind: 'nothing_to_credit', requestId }
    credited.add(requestId)
    return { kind: 'credited', requestId, creditId, amountNanos }
  })
}

/** The result of the command when it was done: the outcome of each call is in the subject, its entry in the journal. */
function* readCreditedBack(subject: string, command: CreditBack): Operation<CreditedBack | null> {
  const { calls: asked, accountId } = command
  if (!subject.startsWith(SUBJECT) || subject.length !== SUBJECT.length + asked.length) return null
  const rows = yield sql`
    SELECT id, call_id, amount_nanos FROM credit WHERE account_id = ${accountId} AND once = ${CREDIT_BACK}
      AND call_id IN (${join(['', ...asked.map(({ requestId }) => requestId)])})`
  const entries = new Map(rows.map((row) => [text(row, 'call_id'), row]))
  const calls: CreditBackOutcome[] = []
  for (const [i, { requestId }] of asked.entries()) {
    const kind = KINDS[Number(subject[SUBJECT.length + i])]
    if (kind === undefined) return null
    if (kind !== 'credited') {
      calls.push({ kind, requestId })
      continue
    }
    const entry = entries.get(requestId)
    if (entry === undefined) return null
    calls.push({ kind, requestId, creditId: text(entry, 'id'), amountNanos: nanos(entry, 'amount_nanos') })
  }
  return { calls, balance: yield* getBalance(accountId) }
}

export function* moveAccount(accountId: string, amountNanos: Nanos): Operation<Balance> {
  const [row] = yield sql`
    UPDATE account SET credited_nanos = credited_nanos + ${amountNanos} WHERE id = ${accountId}
    RETURNING ${BALANCE}`
  return balanceOf(present(row))
}

/** The amount by which the credited sum of a call's day moves. */
export interface DayPart {
  readonly accountId: string
  readonly day: string
  readonly model: string
  readonly keyId: string
  readonly amountNanos: Nanos
}

function dayOf(
  found: ReadonlyMap<string, Row>,
  requestId: string,
  accountId: string,
  amountNanos: Nanos,
): DayPart {
  const call = present(found.get(requestId))
  const [day, model, keyId] = [text(call, 'day'), text(call, 'model'), text(call, 'key_id')]
  return { accountId, day, model, keyId, amountNanos }
}

/** The lock of the account protects its days: settlement locks the account before them. */
export function* creditDays(parts: readonly DayPart[]): Operation<void> {
  const days = new Map<string, DayPart>()
  for (const part of parts) {
    const name = JSON.stringify([part.accountId, part.day, part.model, part.keyId])
    const amountNanos = (days.get(name)?.amountNanos ?? 0n) + part.amountNanos
    days.set(name, { ...part, amountNanos })
  }
  const rows = [...days.values()].map(
    ({ accountId, day, model, keyId, amountNanos }) =>
      sql`(${accountId}, ${day}, ${model}, ${keyId}, ${amountNanos})`,
  )
  const moved = yield sql`
    WITH part (account_id, day, model, key_id, nanos) AS (VALUES ${join(rows)})
    UPDATE rollup SET credited_nanos = credited_nanos + part.nanos FROM part
    WHERE rollup.account_id = part.account_id AND rollup.day = part.day AND rollup.model = part.model
      AND rollup.key_id = part.key_id RETURNING 1 AS moved`
  if (moved.length !== rows.length)
    throw new Error('there is no rollup for a call; tollgate audit says what is wrong with the books')
}

function balanceOf(row: Row): Balance {
  return {
    creditedNanos: nanos(row, 'credited_nanos'),
    chargedNanos: nanos(row, 'charged_nanos'),
    heldNanos: nanos(row, 'held_nanos'),
    enforced: bool(row, 'credit_enforced'),
  }
}

/**
 * The subject under an `Idempotency-Key`: a digit for each call, in the order asked. The calls themselves need not be
 * kept, since only the very same request is a repetition. The order of the kinds is on disk: add at the end.
 */
const SUBJECT = 'credit_back:'
const KINDS = [
  'credited',
  'already_credited',
  'nothing_to_credit',
  'in_flight',
  'not_found',
] as const satisfies readonly CreditBackOutcome['kind'][]
