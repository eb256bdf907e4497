import type { Nanos } from '../kernel/money.ts'
import type { CallRecord } from './call-columns.ts'

/** Null: the version has no price for the call. Throws if the record is unreadable. Caches compare `json`. */
export type RateAgain = (call: {
  readonly usage: string
  readonly rating: string
  readonly priceVersionJson: string
}) => { readonly costNanos: Nanos; readonly listNanos: Nanos } | null

/** Prefix of `credit_call.once` for a rerate, followed by the price version's id. */
export const RERATE = 'rerate:'

/** The `credit_call.once` of a credit-back. A call has at most one credit-back, and no rerate after it. */
export const CREDIT_BACK = 'credit_back' as const

/** The current price book, to price past calls as if it had applied then. */
export interface CurrentPrices {
  /**
   * The price version that applied at the time of the call, as known now, or the first later one with a price for its model.
   * `json` is the same string whenever the version is the same.
   */
  versionFor(call: Pick<RerateCandidate, 'startedAtMs' | 'model' | 'modelAsked'>): {
    readonly id: string
    readonly json: string
  }
  readonly rateAgain: RateAgain
}

export interface RerateCandidate
  extends Pick<CallRecord, 'accountId' | 'keyId' | 'modelAsked' | 'startedAtMs' | 'unpriced' | 'usage'>,
    Pick<CallRecord, 'rating' | 'credited'> {
  readonly id: string
  readonly day: string
  readonly model: string
  /** The amount paid for the call so far: its cost minus credits. */
  readonly paidNanos: Nanos
  /** The `once` of each rerate of the call, one per line. */
  readonly rerates: string | null
}

export type UnchangedBecause =
  | 'same_price'
  | 'no_usage'
  | 'no_price'
  | 'credited_back'
  | 'unreadable'
  /** The call was rerated with this version before, and with another since. Each version applies only once. */
  | 'rerated_before'

export interface ChangedCall {
  readonly call: RerateCandidate
  readonly versionId: string
  readonly newCostNanos: Nanos
}

/** The change for the customer: above 0 a credit, below 0 a charge. */
export function creditOf({ call, newCostNanos }: ChangedCall): Nanos {
  return call.paidNanos - newCostNanos
}

export function rerateCall(
  call: RerateCandidate,
  { versionFor, rateAgain }: CurrentPrices,
): ChangedCall | UnchangedBecause {
  const { usage, rating } = call
  if (usage === null) return 'no_usage'
  // A call that was credited in full stays free at any price.
  if (call.credited) return 'credited_back'
  const version = versionFor(call)
  let rated: ReturnType<RateAgain>
  try {
    rated = rateAgain({ usage, rating, priceVersionJson: version.json })
  } catch {
    return 'unreadable'
  }
  if (rated === null) return 'no_price'
  if (call.paidNanos === rated.costNanos) return 'same_price'
  if (call.rerates?.split('\n').includes(`${RERATE}${version.id}`)) return 'rerated_before'
  return { call, versionId: version.id, newCostNanos: rated.costNanos }
}
