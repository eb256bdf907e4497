import type { Admission, BlockedBy, Budget, CallOpening, CallRefusal } from '../../../src/ledger/call.ts'
import {
  accountOf,
  addToMonth,
  budgetIdOf,
  type CallModel,
  countedDay,
  countedMonth,
  endOf,
  firstOf,
  type KeyModel,
  keyOf,
  monthAt,
  monthKey,
  sumsOf,
  type World,
} from './simulation-world.ts'

const HUNDRED_THOUSAND_DOLLARS = 100_000_000_000_000n

/** The answer that a store should give to an admission, and the changes that it should make. */
export function admit(world: World, keyId: string, opening: CallOpening): Admission {
  if (!world.keys.has(keyId))
    return { kind: 'refused', refusal: { reason: 'unknown_key' }, balanceNanos: null }
  const key = keyOf(world, keyId)
  const end = endOf(key, opening.atMs)
  if (end !== null && !opening.hasBegun)
    return { kind: 'refused', refusal: { reason: end }, balanceNanos: null }

  const answer = judge(world, key, opening)
  if (answer.kind === 'admitted') open(world, key, opening)
  return answer
}

function judge(world: World, key: KeyModel, opening: CallOpening): Admission {
  const account = accountOf(world, key.accountId)
  const balanceNanos = account.creditedNanos - account.chargedNanos
  const refused = (refusal: CallRefusal): Admission => ({ kind: 'refused', refusal, balanceNanos })
  const capNanos = key.monthlyBudgetNanos
  const underMoney = capNanos !== null || account.creditEnforced

  if (opening.ambiguity !== null && (underMoney || key.allowedModels !== null)) {
    return refused({ reason: 'ambiguous_body', detail: opening.ambiguity })
  }
  const { unratable } = opening
  const isLimited = underMoney || (unratable?.reason === 'endpoint_not_metered' && key.allowedModels !== null)
  const isUnratable = unratable?.refuse === 'always' || (unratable?.refuse === 'limited' && isLimited)
  if (isUnratable && unratable.reason === 'endpoint_not_metered') return refused({ reason: unratable.reason })
  if (key.allowedModels !== null) {
    const refusal = judgeModels(world, key, key.allowedModels, opening)
    if (refusal !== null) return refused(refusal)
  }
  if (isUnratable) return refused({ reason: unratable.reason })

  const admitted = {
    kind: 'admitted' as const,
    keyId: key.id,
    budgetId: budgetIdOf(world, key.id),
    accountId: key.accountId,
    logRequests: key.logRequests,
    balanceNanos,
    ...{ hasOthers: false, terms: null },
  }
  // A free call needs no room under a limit.
  if (opening.hold.kind === 'none') return admitted

  const { spentNanos, heldNanos } = sumsOf(world, key.id, countedMonth(world, key.id, opening.atMs))
  const budget: Budget = {
    ...{ scope: 'key', period: 'month', spentNanos, heldNanos, capNanos: capNanos ?? 0n },
    resetsAtMs: monthAt(opening.atMs).endMs,
  }
  if (capNanos !== null && spentNanos >= capNanos) return refused({ reason: 'budget_exceeded', budget })
  if (account.creditEnforced && account.chargedNanos >= account.creditedNanos) {
    return refused({ reason: 'credit_exhausted' })
  }

  const heldHere = opening.countsHolds ? heldNanos : 0n
  const heldThere = opening.countsHolds ? account.heldNanos : 0n
  const blocked = (by: BlockedBy): Admission => {
    const { keyId, budgetId, accountId } = admitted
    return { kind: 'blocked', by, ...{ keyId, personId: null, budgetId, accountId }, balanceNanos }
  }
  if (capNanos !== null && spentNanos + heldHere >= capNanos) return blocked({ limit: 'budget', budget })
  const isHeld = account.chargedNanos + heldThere >= account.creditedNanos
  const isShort = opening.countsHolds && isTooShort(world, key, opening)
  if (account.creditEnforced && (isHeld || isShort)) return blocked({ limit: 'credit' })
  return admitted
}

/** A name that is not on the list is reported before unknown names. */
function judgeModels(
  world: World,
  key: KeyModel,
  allowed: readonly string[],
  { models }: CallOpening,
): CallRefusal | null {
  const kept = models.batchFile === null ? null : world.files.get(`${key.accountId} ${models.batchFile}`)
  const file = kept?.keyId === key.id ? kept : null
  const listed = new Set(allowed)
  for (const model of [...models.names, ...(file?.models ?? [])]) {
    if (!listed.has(model)) return { reason: 'model_not_allowed', model }
  }
  if (models.unknown !== null) return { reason: 'models_unknown', detail: models.unknown }
  if (models.batchFile === null || file !== null) return null
  return { reason: 'batch_file_unknown' }
}

/** A second short hold of an account is placed only if all of them are short by little. */
function isTooShort(world: World, key: KeyModel, opening: CallOpening): boolean {
  const { shortNanos } = holdFor(world, key, opening)
  const open = [...world.calls.values()].filter(
    (call) => call.state === 'in_flight' && call.accountId === key.accountId && call.shortNanos > 0n,
  )
  const sum = open.reduce((total, call) => total + call.shortNanos, shortNanos)
  return shortNanos > 0n && open.length > 0 && sum > opening.unboundedNanos
}

function open(world: World, key: KeyModel, opening: CallOpening): void {
  const call: CallModel = {
    id: opening.requestId,
    keyId: key.id,
    accountId: key.accountId,
    state: 'in_flight',
    startedAtMs: opening.atMs,
    month: countedMonth(world, key.id, opening.atMs),
    day: countedDay(world, key.id, opening.atMs),
    endedAtMs: null,
    ...holdFor(world, key, opening),
    costNanos: null,
    lostNanos: 0n,
    balanceNanos: null,
    overrun: false,
  }
  const account = accountOf(world, key.accountId)
  if (opening.hold.kind !== 'none') {
    const creditNanos = account.creditEnforced ? account.creditedNanos : null
    world.events.push({ kind: 'admitted', call, capNanos: key.monthlyBudgetNanos, creditNanos })
  }
  world.calls.set(call.id, call)
  world.accounts.set(key.accountId, { ...account, heldNanos: account.heldNanos + call.accountHoldNanos })
  addToMonth(world, call, { heldNanos: call.holdNanos })
}

type Holds = Pick<CallModel, 'holdNanos' | 'holdListNanos' | 'accountHoldNanos' | 'shortNanos' | 'boundNanos'>

const NOTHING_HELD: Holds = {
  holdNanos: 0n,
  holdListNanos: 0n,
  accountHoldNanos: 0n,
  shortNanos: 0n,
  boundNanos: 0n,
}

function holdFor(world: World, key: KeyModel, opening: CallOpening): Holds {
  const { hold, atMs, unboundedNanos } = opening
  if (hold.kind === 'none') return NOTHING_HELD
  const month = countedMonth(world, key.id, atMs)
  const { spentNanos, heldNanos } = sumsOf(world, key.id, month)
  const cap = key.monthlyBudgetNanos
  const left =
    cap === null ? null : smaller(HUNDRED_THOUSAND_DOLLARS, larger(0n, cap - (spentNanos + heldNanos)))
  if (hold.kind === 'bound') {
    // The hold is larger by the largest overrun of the budget in this month.
    const overrun = world.overruns.get(monthKey(firstOf(world, key.id), month)) ?? 0n
    const surcharge = hold.nanos === 0n ? 0n : smaller(overrun, unboundedNanos)
    const holdNanos = smaller(HUNDRED_THOUSAND_DOLLARS, hold.nanos + surcharge)
    // Against the account, a hold counts at most the rest of the key's own cap.
    const accountHoldNanos = left !== null && opening.countsHolds ? smaller(holdNanos, left) : holdNanos
    return {
      holdNanos,
      holdListNanos: smaller(HUNDRED_THOUSAND_DOLLARS, hold.listNanos + surcharge),
      accountHoldNanos,
      shortNanos: holdNanos - accountHoldNanos,
      boundNanos: hold.nanos,
    }
  }
  const account = accountOf(world, key.accountId)
  const credit = account.creditedNanos - (account.chargedNanos + account.heldNanos)
  const shared = account.creditEnforced ? smaller(unboundedNanos, larger(0n, credit)) : unboundedNanos
  const holdNanos = left ?? shared
  const accountHoldNanos = smaller(holdNanos, unboundedNanos)
  return { ...NOTHING_HELD, holdNanos, holdListNanos: accountHoldNanos, accountHoldNanos }
}

const larger = (a: bigint, b: bigint): bigint => (a < b ? b : a)
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b)
