import type { Surface } from '../../kernel/vocabulary.ts'
import type { AccountTerms } from '../../ledger/account.ts'
import { dayOf, monthOf } from '../../ledger/calendar.ts'
import { type Admission, type CallOpening, type CallRefusal, requestsOf } from '../../ledger/call.ts'
import { columnOf, OPENING_NAMES } from '../../ledger/call-columns.ts'
import { applyDiscount, decideAdmission, OWN_UPSTREAM } from '../../ledger/decide-admission.ts'
import { compileList } from '../compile-literal.ts'
import { namesOf } from '../rows.ts'
import type { BatchRows } from './batch-rows.ts'
import {
  type AccountState,
  accountCeilings,
  type BudgetState,
  keyCeilings,
  overLimit,
  upstreamOf,
} from './money-rows.ts'
import { prepareInserts } from './prepared.ts'
import type { BoundValue } from './sql.ts'

/** Admits the calls of a batch in order, because each decision depends on the holds of the calls before it. */

const INSERT_HOLDS = prepareInserts('hold', [
  ...['account_id', 'key_id', 'person_id', 'budget_id', 'node_id', 'state', 'started_at_ms', 'month', 'day'],
  ...['requests', 'hold_nanos', 'hold_list_nanos', 'account_hold_nanos', 'short_nanos', 'bound_nanos'],
  ...OPENING_NAMES.map(columnOf),
])

const openingColumns = compileList(OPENING_NAMES)

/** Places the holds in `money`. Returns the answers, and the statements that write the holds. */
export function admitCalls(
  openings: readonly CallOpening[],
  { keys, money, files, nowMs }: BatchRows,
  nodeId: string,
) {
  const rows: BoundValue[][] = []

  const admitted = openings.map((submitted, n): Admission => {
    const key = keys[n]
    if (key === undefined) return refused({ reason: 'unknown_key' }, null)
    const { id: keyId, personId, budgetId, accountId, logRequests } = key
    const budget = money.budget(budgetId)
    const account = money.account(accountId)
    const timed = nowMs === null ? submitted : { ...submitted, atMs: nowMs }
    const opening = applyDiscount(timed, account.discountBillionths)
    const { atMs } = opening
    const periodMs = periodTimeMs(atMs, budget)
    const month = monthOf(periodMs)
    const day = dayOf(periodMs)
    const balanceNanos = account.creditedNanos - account.chargedNanos
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
      overrunNanos: budget.month === month ? budget.overrunNanos : 0n,
      accountShortNanos: account.shortNanos,
    })
    // Do not reveal anything about the account to the holder of a revoked or expired key.
    if (decision.kind === 'refuse' && isKeyRefusal(decision.refusal)) return refused(decision.refusal, null)
    if (decision.kind === 'refuse') return refused(decision.refusal, balanceNanos)
    if (decision.kind === 'wait')
      return { kind: 'blocked', by: decision.by, keyId, personId, budgetId, accountId, balanceNanos }

    if (!opening.isCheckOnly) {
      const { holdNanos, holdListNanos, accountHoldNanos, shortNanos, boundNanos } = decision
      const state = opening.isStanding ? 'standing' : 'in_flight'
      const isOwn = upstreamOf(account, opening.surface) !== null
      const rated = isOwn ? { ...opening, rating: OWN_UPSTREAM + opening.rating.slice(1) } : opening
      rows.push([
        ...[accountId, keyId, personId, budgetId, nodeId, state, atMs, month, day, requestsOf(opening)],
        ...[holdNanos, holdListNanos, accountHoldNanos, shortNanos, boundNanos],
        ...openingColumns<BoundValue>(rated),
      ])
      const none = { costNanos: 0n, lostNanos: 0n }
      const held = { heldNanos: holdNanos, accountHeldNanos: accountHoldNanos, shortNanos }
      money.change(key, { month, day, ...held, ...none })
    }
    if (opening.isRequest) money.countRequest(budgetId, atMs)
    const { hasOthers } = account
    const terms = termsOf(account, opening.surface)
    return { kind: 'admitted', keyId, budgetId, accountId, logRequests, balanceNanos, hasOthers, terms }
  })
  return { admitted, writes: [INSERT_HOLDS(rows)] }
}

function termsOf(account: AccountState, surface: Surface): AccountTerms | null {
  const { discountBillionths } = account
  const upstream = upstreamOf(account, surface)
  return discountBillionths === null && upstream === null ? null : { discountBillionths, upstream }
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
