import { NANOS_PER_USD, type Nanos } from '../kernel/money.ts'
import { type KeyLimits, keyStatus } from '../keys/key-store.ts'
import type { Budget, CallOpening, CallRefusal, HeldBy, HoldFloor, NamedModels } from './call.ts'

/** How a key and its account stand at the instant of the question, read in the transaction that decides. */
export interface KeyState extends Pick<KeyLimits, 'allowedModels' | 'expiresAtMs'> {
  readonly accountId: string
  readonly revokedAtMs: number | null
  /** Null where the key has no cap. */
  readonly budget: Budget | null
  readonly creditEnforced: boolean
  readonly balanceNanos: Nanos
  /** The holds of the whole account. */
  readonly heldNanos: Nanos
  /** The models of the batch file that the call names; null if this key did not upload the file. */
  readonly batchModels: readonly string[] | null
  /** The floor of the call's endpoint and model; null where no call has cost more than it held. */
  readonly holdFloor: HoldFloor | null
}

export type Decision =
  | { readonly kind: 'admit'; readonly holdNanos: Nanos; readonly holdListNanos: Nanos }
  | { readonly kind: 'refuse'; readonly refusal: CallRefusal }
  | { readonly kind: 'wait'; readonly by: HeldBy }

/** The checks of an admission, in the order in which they count: the first that fails is the answer. */
export function decideAdmission(opening: CallOpening, keyState: KeyState): Decision {
  const refusal =
    refuseByKey(opening, keyState) ??
    refuseByBody(opening, keyState) ??
    refuseByModel(opening.models, keyState) ??
    refuseUnratable(opening, keyState) ??
    refuseByMoney(opening, keyState)
  if (refusal !== null) return { kind: 'refuse', refusal }
  const by = heldBy(opening, keyState)
  if (by !== null) return { kind: 'wait', by }
  return admit(opening, keyState)
}

/** Odd requests of a key without limits are left to upstream to judge. */
function isLimited({ budget, allowedModels, creditEnforced }: KeyState): boolean {
  return budget !== null || allowedModels !== null || creditEnforced
}

function refuseByKey({ atMs, hasBegun }: CallOpening, keyState: KeyState): CallRefusal | null {
  const status = keyStatus(keyState, atMs)
  if (status === 'usable' || hasBegun) return null
  return { reason: status === 'revoked' ? 'revoked_key' : 'expired_key' }
}

/** Parsers disagree on ambiguous bodies: the reading that we judge may not be the reading that upstream obeys. */
function refuseByBody({ ambiguity }: CallOpening, keyState: KeyState): CallRefusal | null {
  if (ambiguity === null || !isLimited(keyState)) return null
  return { reason: 'ambiguous_body', detail: ambiguity }
}

export const FOREIGN_FILE = 'The batch is not made of a file that this key uploaded here in one request.'

function refuseByModel(models: NamedModels, { allowedModels, batchModels }: KeyState): CallRefusal | null {
  if (allowedModels === null) return null
  const names = models.batchFile === null ? models.names : [...models.names, ...(batchModels ?? [])]
  const stranger = names.find((name) => !allowedModels.some((entry) => covers(entry, name)))
  if (stranger !== undefined) return { reason: 'model_not_allowed', model: stranger }
  if (models.unknown !== null) return { reason: 'models_unknown', detail: models.unknown }
  if (models.batchFile !== null && batchModels === null) {
    return { reason: 'models_unknown', detail: FOREIGN_FILE }
  }
  return null
}

/** An entry is an exact name, or a pattern that ends in `*`. */
function covers(entry: string, name: string): boolean {
  return entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : name === entry
}

function refuseUnratable({ unratable }: CallOpening, keyState: KeyState): CallRefusal | null {
  if (unratable === null || unratable.refuse === 'never') return null
  const { budget, creditEnforced } = keyState
  const limited =
    unratable.reason === 'endpoint_not_metered' ? isLimited(keyState) : budget !== null || creditEnforced
  return unratable.refuse === 'always' || limited ? { reason: unratable.reason } : null
}

function refuseByMoney({ hold }: CallOpening, keyState: KeyState): CallRefusal | null {
  const { budget, creditEnforced, balanceNanos } = keyState
  if (hold.kind === 'none') return null
  if (budget !== null && budget.spentNanos >= budget.capNanos) return { reason: 'budget_exceeded', budget }
  if (creditEnforced && balanceNanos <= 0n) return { reason: 'credit_exhausted' }
  return null
}

/** The limit that has no room for the call now and may have room later; null if there is room. */
function heldBy({ hold, heldCounts, ahead }: CallOpening, keyState: KeyState): HeldBy | null {
  if (hold.kind === 'none') return null
  const { budget, creditEnforced, balanceNanos, accountId } = keyState
  if (budget !== null && ((heldCounts && leftOf(budget) <= 0n) || ahead.key))
    return { limit: 'budget', budget }
  if (!creditEnforced) return null
  const noRoom = heldCounts && balanceNanos - keyState.heldNanos <= 0n
  return noRoom || ahead.key || ahead.accounts.includes(accountId) ? { limit: 'credit' } : null
}

function leftOf({ capNanos, spentNanos, heldNanos }: Budget): Nanos {
  return capNanos - spentNanos - heldNanos
}

/** A sum that no call has reached: the most that an unbounded call holds of the credit that it shares with other keys. */
export const UNBOUNDED_NANOS = 1_000n * NANOS_PER_USD

/** Ten thousand holds of this size still fit a 64-bit column. */
export const HOLD_NANOS_MAX = 100_000n * NANOS_PER_USD

/** A call that nothing bounds holds all that is left of its key's cap: the key's other calls wait until it is settled. */
function admit({ hold }: CallOpening, keyState: KeyState): Decision {
  if (hold.kind === 'none') return { kind: 'admit', holdNanos: 0n, holdListNanos: 0n }
  if (hold.kind === 'bound') {
    const { nanos = 0n, listNanos = 0n } = keyState.holdFloor ?? {}
    const holdListNanos = larger(hold.listNanos, listNanos)
    return { kind: 'admit', holdNanos: larger(hold.nanos, nanos), holdListNanos }
  }
  const { budget, creditEnforced, balanceNanos } = keyState
  const most =
    budget !== null ? leftOf(budget) : creditEnforced ? balanceNanos - keyState.heldNanos : UNBOUNDED_NANOS
  // Where only settled costs count, calls in flight may hold more than there is.
  const nanos = within(most, 0n, budget === null ? UNBOUNDED_NANOS : HOLD_NANOS_MAX)
  return { kind: 'admit', holdNanos: nanos, holdListNanos: within(nanos, 0n, UNBOUNDED_NANOS) }
}

function larger(a: Nanos, b: Nanos): Nanos {
  return a > b ? a : b
}

function within(nanos: Nanos, least: Nanos, most: Nanos): Nanos {
  if (nanos < least) return least
  return nanos > most ? most : nanos
}
