import { matchesPattern, type NamedModels } from '../kernel/model-names.ts'
import {
  formatUsd,
  HOLD_NANOS_MAX,
  limitHold,
  NANOS_PER_USD,
  type Nanos,
  roundHalfEven,
} from '../kernel/money.ts'
import type { BudgetMode } from '../kernel/vocabulary.ts'
import type { KeyFunds } from '../keys/credential.ts'
import { type KeyLimits, keyStatus, type OverLimit } from '../keys/key-store.ts'
import type { BlockedBy, Budget, CallOpening, CallRefusal, SpentRefusal } from './call.ts'

/** The state of a key and its account, as the deciding transaction reads it. */
export interface KeyState extends KeyFunds, Pick<KeyLimits, 'allowedModels' | 'expiresAtMs'> {
  readonly revokedAtMs: number | null
  readonly isSuspended: boolean
  /** Overrides `countsHolds` of the opening for the key's own budgets. */
  readonly mode: BudgetMode | null
  /** Why another request would exceed the rate limit; null if it would not. */
  readonly overLimit: OverLimit | null
  /** The account's holds, as they count against the account. */
  readonly accountHeldNanos: Nanos
  /** The models of the batch file that the call names; null if this key did not upload the file. */
  readonly batchModels: readonly string[] | null
  /** The largest amount of this month by which a cost exceeded its bound. */
  readonly overrunNanos: Nanos
  /** By how much the account's open holds are short of their bounds. */
  readonly accountShortNanos: Nanos
}

interface Admitted {
  readonly kind: 'admit'
  readonly holdNanos: Nanos
  readonly holdListNanos: Nanos
  /** The hold as it counts against the account: at most what is left under the key's own ceilings. */
  readonly accountHoldNanos: Nanos
  /** The rest of the hold. */
  readonly shortNanos: Nanos
  /** The bound without the surcharge; 0 for a call without a bound. */
  readonly boundNanos: Nanos
}

type Decision =
  | Admitted
  | { readonly kind: 'refuse'; readonly refusal: CallRefusal }
  | { readonly kind: 'wait'; readonly by: BlockedBy }

const HOLDS_NOTHING: Admitted = {
  kind: 'admit',
  holdNanos: 0n,
  holdListNanos: 0n,
  accountHoldNanos: 0n,
  shortNanos: 0n,
  boundNanos: 0n,
}

/** Runs the checks of an admission in order. The first check that fails gives the answer. */
export function decideAdmission(opening: CallOpening, keyState: KeyState): Decision {
  const unratable = refuseUnratable(opening, keyState)
  const refusal =
    refuseByKey(opening, keyState) ??
    refuseByBody(opening, keyState) ??
    (unratable?.reason === 'endpoint_not_metered' ? unratable : null) ??
    refuseByModel(opening.models, keyState) ??
    unratable
  if (refusal !== null) return { kind: 'refuse', refusal }
  if (opening.isRequest && keyState.overLimit !== null) return { kind: 'refuse', refusal: keyState.overLimit }
  if (opening.hold.kind === 'none') return HOLDS_NOTHING
  const spent = refuseSpent(keyState) ?? refuseBatch(opening, keyState)
  if (spent !== null) return { kind: 'refuse', refusal: spent }
  if (opening.isCheckOnly) return HOLDS_NOTHING
  const by = blockingLimit(opening, keyState)
  if (by !== null) return { kind: 'wait', by }
  const admitted = holdsOf(opening, keyState)
  const tooShort = blockingShortHolds(admitted, opening, keyState)
  return tooShort === null ? admitted : { kind: 'wait', by: tooShort }
}

/** Whether the key is limited. Other keys may send anything that upstream accepts. */
function isLimited(keyState: KeyState): boolean {
  return keyState.allowedModels !== null || isCapped(keyState)
}

function isCapped({ keyCeilings, accountCeilings, creditEnforced }: KeyState): boolean {
  return keyCeilings.length > 0 || accountCeilings.length > 0 || creditEnforced
}

function refuseByKey({ atMs, hasBegun }: CallOpening, keyState: KeyState): CallRefusal | null {
  const status = keyStatus(keyState, atMs)
  if (hasBegun) return null
  if (status === 'usable') return keyState.isSuspended ? { reason: 'account_suspended' } : null
  return { reason: status === 'revoked' ? 'revoked_key' : 'expired_key' }
}

/** Refuses ambiguous bodies, because upstream may read them differently than the gateway. */
function refuseByBody({ ambiguity }: CallOpening, keyState: KeyState): CallRefusal | null {
  if (ambiguity === null || !isLimited(keyState)) return null
  return { reason: 'ambiguous_body', detail: ambiguity }
}

function refuseByModel(models: NamedModels, { allowedModels, batchModels }: KeyState): CallRefusal | null {
  if (allowedModels === null) return null
  const names = models.batchFile === null ? models.names : [...models.names, ...(batchModels ?? [])]
  const notAllowed = names.find((name) => !allowedModels.some((entry) => matchesPattern(entry, name)))
  if (notAllowed !== undefined) return { reason: 'model_not_allowed', model: notAllowed }
  if (models.unknown !== null) return { reason: 'models_unknown', detail: models.unknown }
  return models.batchFile !== null && batchModels === null ? { reason: 'batch_file_unknown' } : null
}

function refuseUnratable({ unratable }: CallOpening, keyState: KeyState): CallRefusal | null {
  if (unratable === null || unratable.refuse === 'never') return null
  const limited = unratable.reason === 'endpoint_not_metered' ? isLimited(keyState) : isCapped(keyState)
  return unratable.refuse === 'always' || limited ? { reason: unratable.reason } : null
}

/** Refuses a key whose budget or credit is exhausted, whatever the call may cost. */
export function refuseSpent(funds: KeyFunds): SpentRefusal | null {
  const { keyCeilings, accountCeilings, creditEnforced, balanceNanos } = funds
  const budget = keyCeilings.find(isSpent) ?? accountCeilings.find(isSpent)
  if (budget !== undefined) return { reason: 'budget_exceeded', budget }
  return creditEnforced && balanceNanos <= 0n ? { reason: 'credit_exhausted' } : null
}

function isSpent({ spentNanos, capNanos }: Budget): boolean {
  return spentNanos >= capNanos
}

/** The amount that must fit under a budget: 0 for a call; for a batch, all lines except the most expensive one. */
function neededOf({ hold }: CallOpening): Nanos {
  return (hold.kind === 'none' ? null : hold.neededNanos) ?? 0n
}

/** Refuses a batch that would not fit even with nothing else in flight. */
function refuseBatch(opening: CallOpening, keyState: KeyState): CallRefusal | null {
  const { keyCeilings, accountCeilings, creditEnforced, balanceNanos } = keyState
  const reason = 'batch_exceeds_budget'
  const neededNanos = neededOf(opening)
  if (neededNanos === 0n) return null
  const ceilings = [...keyCeilings, ...accountCeilings]
  const budget = ceilings.find(({ spentNanos, capNanos }) => spentNanos + neededNanos >= capNanos)
  if (budget !== undefined) return { reason, neededNanos, budget }
  return creditEnforced && neededNanos >= balanceNanos ? { reason, neededNanos, budget: null } : null
}

/** The limit that blocks the call now, but may admit it when calls in flight have settled; null if there is none. */
function blockingLimit(opening: CallOpening, keyState: KeyState): BlockedBy | null {
  const { keyCeilings, accountCeilings, creditEnforced, balanceNanos } = keyState
  const neededNanos = neededOf(opening)
  const isUsedUp = (ceiling: Budget) => remainingOf(ceiling) <= neededNanos
  const budget =
    (isExact(opening, keyState) ? keyCeilings.find(isUsedUp) : undefined) ??
    (opening.countsHolds ? accountCeilings.find(isUsedUp) : undefined)
  if (budget !== undefined) return { limit: 'budget', budget }
  const isOutOfCredit =
    creditEnforced && opening.countsHolds && balanceNanos - keyState.accountHeldNanos <= neededNanos
  return isOutOfCredit ? { limit: 'credit' } : null
}

function isExact({ countsHolds }: CallOpening, { mode }: KeyState): boolean {
  return mode === null ? countsHolds : mode === 'exact'
}

function remainingOf({ capNanos, spentNanos, heldNanos }: Budget): Nanos {
  return capNanos - spentNanos - heldNanos
}

/** The amount left of the budget that has least left; null if there are no budgets. */
function leastRemaining(ceilings: readonly Budget[]): Nanos | null {
  return ceilings.reduce<Nanos | null>((min, ceiling) => {
    const left = remainingOf(ceiling)
    return min === null || left < min ? left : min
  }, null)
}

/** The hold counts against the account only as far as the key's budgets cover it. An unbounded call holds them all. */
function holdsOf(opening: CallOpening, keyState: KeyState): Admitted {
  const { hold, unboundedNanos } = opening
  const remainingNanos = leastRemaining(keyState.keyCeilings)
  const keyLeftNanos = remainingNanos === null ? null : clamp(remainingNanos, 0n, HOLD_NANOS_MAX)
  if (hold.kind !== 'bound') {
    const holdNanos =
      keyLeftNanos ?? clamp(remainingOfAccount(keyState) ?? unboundedNanos, 0n, unboundedNanos)
    const accountHoldNanos = clamp(holdNanos, 0n, unboundedNanos)
    return { ...HOLDS_NOTHING, holdNanos, holdListNanos: accountHoldNanos, accountHoldNanos }
  }
  const surchargeNanos = hold.nanos === 0n ? 0n : clamp(keyState.overrunNanos, 0n, unboundedNanos)
  const holdNanos = limitHold(hold.nanos + surchargeNanos)
  const accountHoldNanos =
    keyLeftNanos !== null && isExact(opening, keyState) ? clamp(holdNanos, 0n, keyLeftNanos) : holdNanos
  return {
    kind: 'admit',
    holdNanos,
    holdListNanos: limitHold(hold.listNanos + surchargeNanos),
    accountHoldNanos,
    shortNanos: holdNanos - accountHoldNanos,
    boundNanos: hold.nanos,
  }
}

/** Many keys with little left could pass the account's limits together, so their short holds are limited together. */
function blockingShortHolds(
  { shortNanos }: Admitted,
  { countsHolds, unboundedNanos }: CallOpening,
  { accountCeilings, creditEnforced, accountShortNanos }: KeyState,
): BlockedBy | null {
  if (shortNanos === 0n || accountShortNanos === 0n || !countsHolds) return null
  if (accountShortNanos + shortNanos <= unboundedNanos) return null
  const [budget] = accountCeilings
  if (budget !== undefined) return { limit: 'budget', budget }
  return creditEnforced ? { limit: 'credit' } : null
}

function remainingOfAccount(keyState: KeyState): Nanos | null {
  const { accountCeilings, creditEnforced, balanceNanos, accountHeldNanos } = keyState
  const ofCeilings = leastRemaining(accountCeilings)
  if (!creditEnforced) return ofCeilings
  const ofCredit = balanceNanos - accountHeldNanos
  return ofCeilings === null || ofCredit < ofCeilings ? ofCredit : ofCeilings
}

function clamp(nanos: Nanos, min: Nanos, max: Nanos): Nanos {
  if (nanos < min) return min
  return nanos > max ? max : nanos
}

/** Begins the rating text of a call on the account's own upstream: the installation's provider does not report it. */
export const OWN_UPSTREAM = '{"ownUpstream":true,'

/** Applies the account's discount to the hold and the rating of an opening. */
export function applyDiscount(opening: CallOpening, discountBillionths: number | null): CallOpening {
  if (discountBillionths === null) return opening
  const { hold } = opening
  const { discounts: _, ...rating } = JSON.parse(opening.rating) as Record<string, unknown>
  const discount = formatUsd(BigInt(discountBillionths))
  const rated = { ...opening, rating: JSON.stringify({ ...rating, discount }) }
  if (hold.kind !== 'bound') return rated
  const nanos = discounted(hold.listNanos, discountBillionths)
  if (hold.neededNanos === undefined) return { ...rated, hold: { ...hold, nanos } }
  const neededNanos = hold.nanos === 0n ? 0n : (hold.neededNanos * nanos) / hold.nanos
  return { ...rated, hold: { ...hold, nanos, neededNanos } }
}

function discounted(listNanos: Nanos, discountBillionths: number): Nanos {
  return roundHalfEven({
    numerator: listNanos * (NANOS_PER_USD - BigInt(discountBillionths)),
    denominator: NANOS_PER_USD,
  })
}
