import type { Nanos } from '../kernel/money.ts'

/**
 * Prices a call from its record alone. Null: the version has no price for it. Throws if the record is unreadable. The
 * same version is always the same string, so the parsed version can be cached by it.
 */
export type RateAgain = (call: {
  readonly usage: string
  readonly rating: string
  readonly priceVersionJson: string
}) => { readonly costNanos: Nanos; readonly listNanos: Nanos } | null

/** Prefix of `credit_call.once` for a rerate, followed by the price version's id. */
export const RERATE = 'rerate:'

/** `credit_call.once` of a credit-back. A call has at most one, and no later rows. */
export const CREDIT_BACK = 'credit_back' as const

/** The current price book, to price past calls as if it had applied then. */
export interface CurrentPrices {
  /** The version for calls of that time. `json` is the same string for the same version. */
  versionAt(atMs: number): { readonly id: string; readonly json: string }
  readonly rateAgain: RateAgain
}

/** Which calls to price again. All of them are settled. */
export interface RerateSelection {
  readonly fromMs: number
  /** The end of the range, not included. */
  readonly toMs: number
  /** Exact name of the requested or served model. Null: all models. */
  readonly model: string | null
  readonly unpricedOnly: boolean
}

export interface RerateCandidate {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly day: string
  readonly model: string
  readonly startedAtMs: number
  readonly usage: string | null
  readonly rating: string
  readonly costNanos: Nanos
  readonly listNanos: Nanos
  /** The amount credited for the call so far. */
  readonly creditedNanos: Nanos
  readonly creditedBack: boolean
  /** The `once` of each rerate of the call. */
  readonly rerates: readonly string[]
}

/** Why the price of a call is unchanged. */
export type UnchangedBecause =
  | 'same_price'
  | 'no_usage'
  | 'no_price'
  | 'credited_back'
  | 'unreadable'
  /** The call was rerated with this version before, and again with another since. A version can be booked only once. */
  | 'rerated_before'

export type Rerated =
  | { readonly kind: 'unchanged'; readonly because: UnchangedBecause }
  | {
      readonly kind: 'changed'
      readonly call: RerateCandidate
      readonly version: { readonly id: string; readonly json: string }
      /** The amount paid for the call so far: its cost minus credits. */
      readonly oldCostNanos: Nanos
      readonly newCostNanos: Nanos
      readonly newListNanos: Nanos
    }

export type ChangedCall = Extract<Rerated, { kind: 'changed' }>

/** The change for the customer: above 0 a credit, below 0 a charge. */
export function creditOf(changed: ChangedCall): Nanos {
  return changed.oldCostNanos - changed.newCostNanos
}

export function rerateCall(call: RerateCandidate, prices: CurrentPrices): Rerated {
  if (call.usage === null) return { kind: 'unchanged', because: 'no_usage' }
  // A call that was credited in full stays free at any price.
  if (call.creditedBack) return { kind: 'unchanged', because: 'credited_back' }
  const version = prices.versionAt(call.startedAtMs)
  let rated: ReturnType<RateAgain>
  try {
    rated = prices.rateAgain({ usage: call.usage, rating: call.rating, priceVersionJson: version.json })
  } catch {
    return { kind: 'unchanged', because: 'unreadable' }
  }
  if (rated === null) return { kind: 'unchanged', because: 'no_price' }
  const oldCostNanos = call.costNanos - call.creditedNanos
  if (oldCostNanos === rated.costNanos) return { kind: 'unchanged', because: 'same_price' }
  if (call.rerates.includes(`${RERATE}${version.id}`)) return { kind: 'unchanged', because: 'rerated_before' }
  return {
    kind: 'changed',
    call,
    version,
    oldCostNanos,
    newCostNanos: rated.costNanos,
    newListNanos: rated.listNanos,
  }
}

export interface RerateLine {
  calls: number
  oldListNanos: Nanos
  newListNanos: Nanos
  oldCostNanos: Nanos
  newCostNanos: Nanos
}

/** Further models share a line: customers can create any number of fine-tuned models. */
const MODELS_MAX = 500
const OTHER_MODELS = '(other models)'

export class RerateSummary {
  readonly models = new Map<string, RerateLine>()
  readonly total = emptyLine()
  readonly unchanged: Record<UnchangedBecause, number> = {
    same_price: 0,
    no_usage: 0,
    no_price: 0,
    credited_back: 0,
    unreadable: 0,
    rerated_before: 0,
  }
  creditCalls = 0
  creditNanos = 0n
  chargeCalls = 0
  chargeNanos = 0n

  add(rerated: Rerated): void {
    if (rerated.kind === 'unchanged') {
      this.unchanged[rerated.because] += 1
      return
    }
    for (const line of [this.lineOf(rerated.call.model), this.total]) {
      line.calls += 1
      line.oldListNanos += rerated.call.listNanos
      line.newListNanos += rerated.newListNanos
      line.oldCostNanos += rerated.oldCostNanos
      line.newCostNanos += rerated.newCostNanos
    }
    const nanos = creditOf(rerated)
    if (nanos > 0n) {
      this.creditCalls += 1
      this.creditNanos += nanos
    } else {
      this.chargeCalls += 1
      this.chargeNanos -= nanos
    }
  }

  private lineOf(model: string): RerateLine {
    const name = this.models.has(model) || this.models.size < MODELS_MAX ? model : OTHER_MODELS
    const line = this.models.get(name) ?? emptyLine()
    this.models.set(name, line)
    return line
  }
}

function emptyLine(): RerateLine {
  return { calls: 0, oldListNanos: 0n, newListNanos: 0n, oldCostNanos: 0n, newCostNanos: 0n }
}

/** The ledger for `tollgate rerate`, which may run while nodes serve. */
export interface RerateWriter {
  count(selection: RerateSelection): Promise<number>
  /** The selected calls after an id, ordered by id. An empty id starts at the beginning. */
  read(selection: RerateSelection, afterId: string): Promise<readonly RerateCandidate[]>
  /** One transaction. Skips calls that were booked before or have changed since they were read. */
  book(changed: readonly ChangedCall[]): Promise<Booked>
  close(): Promise<void>
}

export interface Booked {
  readonly calls: number
  readonly nanos: Nanos
}
