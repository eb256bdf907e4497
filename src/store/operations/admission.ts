import type { Surface } from '../../kernel/vocabulary.ts'
import type { AccountTerms } from '../../ledger/account.ts'
import { dayOf, monthOf } from '../../ledger/calendar.ts'
import { type Admission, type CallOpening, type CallRefusal, requestsOf } from '../../ledger/call.ts'
import { columnOf, OPENING_NAMES } from '../../ledger/call-columns.ts'
import { applyDiscount, decideAdmission, type KeyState } from '../../ledger/decide-admission.ts'
import { namesOf, nanos, text } from '../rows.ts'
import type { BatchRows, CallRow } from './batch-rows.ts'
import {
  type AccountState,
  accountCeilings,
  type BudgetState,
  keyCeilings,
  overLimit,
  upstreamOf,
} from './money-rows.ts'
import { type Batch, step } from './operation.ts'
import { prepare, prepareInserts } from './prepared.ts'
import type { BoundValue } from './sql.ts'

/** Admits the calls of a batch in order, because each decision depends on the holds of the calls before it. */

const READ_HOLD_FLOOR = prepare`
  SELECT max(month) AS month, max(nanos) AS nanos, max(list_nanos) AS list_nanos FROM hold_floor
  WHERE budget_id = ${'text'} AND month = ${'text'}
    AND ((endpoint = ${'text'} AND model = ${'text'}) OR (endpoint = '' AND model = ''))`

const INSERT_CALLS = prepareInserts('call', [
  ...['account_id', 'key_id', 'node_id', 'started_at_ms', 'month', 'day', 'hold_nanos', 'hold_list_nanos'],
  ...['account_hold_nanos', 'requests', 'state', 'endpoint', ...OPENING_NAMES.map(columnOf)],
])

const MARK_USED = prepare`
  UPDATE api_key SET last_used_at_ms = ${'bigint'} WHERE id = ${'text'} AND coalesce(last_used_at_ms, 0) < ${'bigint'}`

/** Places the holds in `money`. Returns the answers, the admitted calls, and the statements that write them. */
export function admitCalls(
  openings: readonly CallOpening[],
  { keys, money, files, nowMs }: BatchRows,
  holdFloors: readonly (MonthlyHoldFloor | null)[],
  nodeId: string,
) {
  const uses = new Map<string, number>()
  const opened: CallRow[] = []
  const rows: BoundValue[][] = []

  const admitted = openings.map((submitted, n): Admission => {
    const key = keys[n]
    if (key === undefined) return refused({ reason: 'unknown_key' }, null)
    const { id: keyId, budgetId, accountId, logRequests } = key
    const budget = money.budget(budgetId)
    const account = money.account(accountId)
    const timed = nowMs === null ? submitted : { ...submitted, atMs: nowMs }
    const opening = applyDiscount(timed, account.discountBillionths)
    const { atMs } = opening
    const periodMs = periodTimeMs(atMs, budget)
    const month = monthOf(periodMs)
    const day = dayOf(periodMs)
    const balanceNanos = account.creditedNanos - account.chargedNanos
    const floor = holdFloors[n] ?? null
    const decision = decideAdmission(opening, {
      revokedAtMs: key.revokedAtMs,
      isSuspended: account.status === 'suspended',
      expiresAtMs: key.expiresAtMs,
      allowedModels: key.allowedModels,
      keyCeilings: keyCeilings(budget, day, atMs),
      mode: budget.budgetMode,
      overLimit: overLimit(budget, atMs),
      accountCeilings: accountCeilings(account, day, atMs),
      creditEnforced: account.creditEnforced,
      balanceNanos,
      accountHeldNanos: account.heldNanos,
      batchModels: files.size === 0 ? null : namesOf(files.get(submitted)?.['models'] ?? null),
      // An earlier call of this batch may have begun a new month, but the floors were read for the old month.
      holdFloor: floor?.month === month ? floor : null,
    })
    // Do not reveal anything about the account to the holder of a revoked or expired key.
    if (decision.kind === 'refuse' && isKeyRefusal(decision.refusal)) return refused(decision.refusal, null)
    // The row of an admitted call has the time of use already.
    if (!opening.hasWaited && decision.kind !== 'admit') uses.set(keyId, Math.max(atMs, uses.get(keyId) ?? 0))
    if (decision.kind === 'refuse') return refused(decision.refusal, balanceNanos)
    if (decision.kind === 'wait')
      return { kind: 'blocked', by: decision.by, keyId, budgetId, accountId, balanceNanos }

    const { holdNanos, holdListNanos, accountHoldNanos } = decision
    if (!opening.isCheckOnly) {
      const { requestId: id, modelAsked, endpoint } = opening
      const requests = requestsOf(opening)
      const row: BoundValue[] = [accountId, keyId, nodeId, atMs, month, day, holdNanos, holdListNanos]
      row.push(accountHoldNanos, requests, 'in_flight', endpoint)
      for (const name of OPENING_NAMES) row.push(opening[name])
      rows.push(row)
      opened.push({
        ...{ id, accountId, budgetId, keyId, state: 'in_flight', startedAtMs: atMs, month, day, modelAsked },
        ...{ endpoint, holdNanos, holdListNanos, accountHoldNanos, lostListNanos: 0n, balanceNanos: null },
        requests,
      })
      money.change(budgetId, accountId, {
        month,
        day,
        heldNanos: holdNanos,
        accountHeldNanos: accountHoldNanos,
        costNanos: 0n,
        lostNanos: 0n,
      })
    }
    if (opening.isRequest) money.countRequest(budgetId, atMs)
    const { hasOthers } = account
    const terms = termsOf(account, opening.surface)
    return { kind: 'admitted', keyId, budgetId, accountId, logRequests, balanceNanos, hasOthers, terms }
  })
  const markUses = [...uses].map(([keyId, atMs]) => MARK_USED([atMs, keyId, atMs]))
  return { admitted, opened, writes: [INSERT_CALLS(rows), ...markUses] }
}

function termsOf(account: AccountState, surface: Surface): AccountTerms | null {
  const { discountBillionths } = account
  const upstream = upstreamOf(account, surface)
  return discountBillionths === null && upstream === null ? null : { discountBillionths, upstream }
}

type MonthlyHoldFloor = NonNullable<KeyState['holdFloor']> & { readonly month: string }

/** Reads the hold floors of the budgets. Few budgets have any, so usually no statement is sent. */
export function* readHoldFloors(
  openings: readonly CallOpening[],
  { keys, money, nowMs }: BatchRows,
): Batch<readonly (MonthlyHoldFloor | null)[]> {
  const reads = openings.map((opening, n) => {
    const key = keys[n]
    if (key === undefined || opening.hold.kind !== 'bound') return null
    const budget = money.budget(key.budgetId)
    const { id, month, hasFloors } = budget
    if (!hasFloors || month !== monthOf(periodTimeMs(nowMs ?? opening.atMs, budget))) return null
    return READ_HOLD_FLOOR([id, month, opening.endpoint, opening.modelAsked ?? ''])
  })
  const statements = reads.filter((statement) => statement !== null)
  if (statements.length === 0) return []
  const found = (yield step(statements)).values()
  return reads.map((statement) => {
    const row = statement === null ? undefined : found.next().value?.[0]
    if (row === undefined || row['nanos'] === null) return null
    return { month: text(row, 'month'), nanos: nanos(row, 'nanos'), listNanos: nanos(row, 'list_nanos') }
  })
}

/** The time that decides a call's month and day. If the clock was set back, the budget's current period continues. */
function periodTimeMs(atMs: number, { month, day, dailyBudgetNanos }: BudgetState): number {
  if (dailyBudgetNanos !== null) return dayOf(atMs) < day ? Date.parse(day) : atMs
  return monthOf(atMs) < month ? Date.parse(month) : atMs
}

function isKeyRefusal({ reason }: CallRefusal): boolean {
  return reason === 'revoked_key' || reason === 'expired_key'
}

function refused(refusal: CallRefusal, balanceNanos: bigint | null): Admission {
  return { kind: 'refused', refusal, balanceNanos }
}
