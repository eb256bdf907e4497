import { balanceObject, creditObject } from '../../api/objects.ts'
import type { Idempotency } from '../../kernel/idempotency.ts'
import type { Nanos } from '../../kernel/money.ts'
import type { CreditKind } from '../../kernel/vocabulary.ts'
import type { ListQuery, Page } from '../../keys/key-store.ts'
import {
  type Balance,
  CREDITED_MAX,
  type CreditBack,
  type CreditBackOutcomes,
  type CreditEntry,
  type CreditedBack,
  type NewCredit,
  type NotCredited,
} from '../../ledger/account.ts'
import { CREDIT_BACK } from '../../ledger/rerate.ts'
import { bool, nanos, present, type Row, readWideSum, recordOf, text, wideSum } from '../rows.ts'
import { IS_LIMITED } from './batch-rows.ts'
import { recordBalanceChange } from './budget-events.ts'
import { actorOf, recordEvent } from './events.ts'
import { atomic, columnsEqual, type Operation, selectPage } from './operation.ts'
import { runOnce } from './settings.ts'
import { rollupOrder } from './settlement.ts'
import { FOR_UPDATE, join, onPostgres, raw, type Sql, sql } from './sql.ts'
import { insertInto } from './write-rows.ts'

/**
 * Commands lock calls, then what batches lock, in their order: the account if it is limited, rollups, else the account.
 * They lock the account late, because admissions wait for it.
 */

const BALANCE = raw('credited_nanos, charged_nanos, held_nanos, credit_enforced')

export function* getBalance(accountId: string): Operation<Balance> {
  const [row] = yield sql`SELECT ${BALANCE} FROM account WHERE id = ${accountId}`
  return recordOf(present(row))
}

function* sumHeld(): Operation<Nanos> {
  const [row] = yield sql`SELECT ${raw(wideSum('held_nanos', 'held'))} FROM account`
  return readWideSum(present(row), 'held')
}

const addCredit = atomic(function* (credit: NewCredit, idempotency: Idempotency | null) {
  const { id, accountId, amountNanos } = credit
  const read = (entryId: string) => readEntry(accountId, entryId)
  return yield* runOnce(idempotency, id, read, function* () {
    const [account] = yield sql`SELECT credited_nanos FROM account WHERE id = ${accountId} ${FOR_UPDATE}`
    const creditedNanos = nanos(present(account), 'credited_nanos') + amountNanos
    if (creditedNanos > CREDITED_MAX || creditedNanos < -CREDITED_MAX) return { kind: 'too_much' } as const
    const entry = yield* insertEntry({ ...credit, kind: amountNanos < 0n ? 'correction' : 'top_up' })
    return { kind: 'done', value: entry } as const
  })
})

function* insertEntry(credit: NewCredit & { readonly kind: CreditKind }): Operation<CreditEntry> {
  const { id, accountId, kind, amountNanos, reason, actor, atMs } = credit
  const [account] = yield sql`
    UPDATE account SET credited_nanos = credited_nanos + ${amountNanos} WHERE id = ${accountId}
    RETURNING ${BALANCE}`
  const balance = recordOf<Balance>(present(account))
  const balanceAfterNanos = balance.creditedNanos - balance.chargedNanos
  const entry = { ...credit, balanceAfterNanos }
  const row = { id, accountId, kind, amountNanos, reason, balanceAfterNanos, atMs }
  yield insertInto('credit', [{ ...row, actorKind: actor.kind, actorId: actor.id, actorName: actor.name }])
  const data = { credit: creditObject(entry), balance: balanceObject(balance) }
  yield* recordEvent({ accountId, type: 'credit.added', actor, data }, atMs)
  yield* recordBalanceChange(accountId, balance, amountNanos, actor, atMs)
  return entry
}

function* listCredits(query: ListQuery): Operation<Page<CreditEntry>> {
  const where = columnsEqual({ account_id: query.accountId })
  return yield* selectPage({ select: raw('*'), from: raw('credit'), where }, query, toEntry)
}

function* readEntry(accountId: string, id: string): Operation<CreditEntry | null> {
  const [row] = yield sql`SELECT * FROM credit WHERE id = ${id} AND account_id = ${accountId}`
  return row === undefined ? null : toEntry(row)
}

function toEntry(row: Row): CreditEntry {
  const { actorKind, actorId, actorName, removedNanos, ...entry } = recordOf<
    CreditEntry & Record<string, unknown>
  >(row)
  return { ...entry, actor: actorOf(row) } as CreditEntry
}

/** Refunds calls. The call and its key's month stay as billed, so a refund frees nothing of a budget. */
const creditBack = atomic(function* (command: CreditBack, idempotency: Idempotency | null) {
  const { requestIds: _, ...credit } = command
  const read = (id: string) => readCreditedBack(id, command)
  return yield* runOnce(idempotency, command.id, read, function* () {
    const found = yield* lockCalls(command)
    const outcomes = outcomesOf(command, found, (call) => bool(call, 'credited'))
    const { credited } = outcomes
    if (credited.length === 0) return { kind: 'nothing', ...outcomes } as const
    const callCredits = credited.map((requestId): CallCredit => {
      const call = present(found.get(requestId))
      const [day, model, keyId] = [text(call, 'day'), text(call, 'model'), text(call, 'key_id')]
      return { callId: requestId, day, model, keyId, amountNanos: nanos(call, 'paid_nanos') }
    })
    // A second row for a call would violate the primary key and fail the whole command.
    const rows = callCredits.map(({ callId, amountNanos }) => ({ callId, amountNanos }))
    yield insertInto(
      'credit_call',
      rows.map((row) => ({ ...row, once: CREDIT_BACK, creditId: command.id })),
    )
    yield sql`UPDATE call SET credited = true WHERE id IN (${join(credited)})`
    const entry = yield* creditCalls({ ...credit, kind: CREDIT_BACK }, callCredits)
    return { kind: 'done', value: { entry, ...outcomes } } as const
  })
})

interface CallCredit {
  readonly callId: string
  readonly day: string
  readonly model: string
  readonly keyId: string
  readonly amountNanos: Nanos
}

/** Writes one ledger entry for calls, and changes the account's credit and the credited sums of the calls' days. */
export function* creditCalls(
  credit: Omit<NewCredit, 'amountNanos'> & { readonly kind: CreditKind },
  callCredits: readonly CallCredit[],
): Operation<CreditEntry> {
  const totalNanos = callCredits.reduce((sum, { amountNanos }) => sum + amountNanos, 0n)
  yield onPostgres(
    sql`SELECT id FROM account WHERE id = ${credit.accountId} AND ${raw(IS_LIMITED)} ${FOR_UPDATE}`,
  )
  yield* creditRollups(credit.accountId, callCredits)
  return yield* insertEntry({ ...credit, amountNanos: totalNanos })
}

/** Locks the calls, and returns their cost minus earlier credits, by id. */
function* lockCalls({ accountId, requestIds }: CreditBack): Operation<ReadonlyMap<string, Row>> {
  const fromCalls = sql`FROM call WHERE id IN (${join(['', ...requestIds])}) AND account_id = ${accountId}`
  yield onPostgres(sql`SELECT id ${fromCalls} ORDER BY id ${FOR_UPDATE}`)
  const read = yield sql`
    SELECT id, state, credited, key_id, day, coalesce(model_served, model_asked, '') AS model,
      ${PAID_NANOS} AS paid_nanos,
      (SELECT credit_id FROM credit_call WHERE call_id = call.id AND once = ${CREDIT_BACK}) AS credit_id ${fromCalls}`
  const isOne = sql`id IN (${join(['', ...requestIds])}) AND account_id = ${accountId}`
  const others = yield sql`
    SELECT id, state, false AS credited, CAST(0 AS bigint) AS paid_nanos FROM (
      SELECT id, 'refused' AS state FROM refused_call WHERE ${isOne}
      UNION ALL SELECT id, 'in_flight' AS state FROM hold WHERE ${isOne} AND state <> 'interrupted') other`
  return new Map([...others, ...read].map((row) => [text(row, 'id'), row]))
}

/** The cost of a call minus later credits. */
export const PAID_NANOS: Sql = sql`CAST(coalesce(cost_nanos, 0) -
  (SELECT coalesce(sum(amount_nanos), 0) FROM credit_call AS paid WHERE paid.call_id = call.id) AS bigint)`

/** `wasCreditedBefore`: whether an earlier command credited the call. */
function outcomesOf(
  { requestIds }: CreditBack,
  found: ReadonlyMap<string, Row>,
  wasCreditedBefore: (call: Row) => boolean,
): CreditBackOutcomes {
  const credited: string[] = []
  const alreadyCredited: string[] = []
  const notCredited: { requestId: string; why: NotCredited }[] = []
  for (const requestId of new Set(requestIds)) {
    const call = found.get(requestId)
    const why = call === undefined ? 'not_found' : whyNotCredited(call)
    if (why !== null) notCredited.push({ requestId, why })
    else if (call !== undefined && wasCreditedBefore(call)) alreadyCredited.push(requestId)
    else credited.push(requestId)
  }
  return { credited, alreadyCredited, notCredited }
}

function whyNotCredited(call: Row): NotCredited | null {
  const state = text(call, 'state')
  if (state === 'in_flight') return 'in_flight'
  if (bool(call, 'credited')) return null
  return state !== 'settled' || nanos(call, 'paid_nanos') <= 0n ? 'nothing_to_credit' : null
}

/** The result of the command that wrote the entry, with the current state of the calls. */
function* readCreditedBack(id: string, command: CreditBack): Operation<CreditedBack | null> {
  const entry = yield* readEntry(command.accountId, id)
  if (entry === null || entry.kind !== CREDIT_BACK) return null
  const found = yield* lockCalls(command)
  return { entry, ...outcomesOf(command, found, (call) => call['credit_id'] !== id) }
}

/** Changes one rollup after the other, in the order of settlements. */
function* creditRollups(accountId: string, callCredits: readonly CallCredit[]): Operation<void> {
  const rollups = Map.groupBy(callCredits, ({ day, model, keyId }) =>
    rollupOrder(accountId, day, model, keyId),
  )
  const inOrder = [...rollups].sort(([a], [b]) => (a < b ? -1 : 1))
  for (const [, parts] of inOrder) {
    const { day, model, keyId } = present(parts[0])
    const amountNanos = parts.reduce((sum, part) => sum + part.amountNanos, 0n)
    const [moved] = yield sql`
      UPDATE rollup SET credited_nanos = credited_nanos + ${amountNanos}
      WHERE account_id = ${accountId} AND day = ${day} AND model = ${model} AND key_id = ${keyId} RETURNING 1 AS moved`
    if (moved === undefined)
      throw new Error('there is no rollup for a call; run tollgate audit to find the difference')
  }
}

export const CREDITS = { brief: { getBalance, sumHeld, addCredit, creditBack }, reads: { listCredits } }
