import type { Nanos } from '../kernel/money.ts'

/**
 * Prices a call from its record alone. Null: the version has no price for the call, which then costs nothing. Throws if
 * the record cannot be read. The same version comes as the same string, so a parsed version can be cached by that string.
 */
export type RateAgain = (call: {
  readonly usage: string
  readonly rating: string
  readonly priceVersionJson: string
}) => { readonly costNanos: Nanos; readonly listNanos: Nanos } | null

/** The prefix of `credit_call.once` where a call is priced again; the id of the price version follows. */
export const RERATE = 'rerate:'

/** The `credit_call.once` where a call's cost is given back: a call has at most one, and no row after it. */
export const CREDIT_BACK = 'credit_back' as const

/** The current price book, to price past calls as if it had applied then. */
export interface CurrentPrices {
  /** The version for calls of that instant. `json` is the same string every time for the same version. */
  versionAt(atMs: number): { readonly id: string; readonly json: string }
  readonly rateAgain: RateAgain
}

/** Which calls to price again. All of them are settled. */
export interface RerateSelection {
  readonly fromMs: number
  /** The end of the range, not included. */
  readonly toMs: number
  /** The exact name of the model asked for or served. Null: all models. */
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
  /** The sum that entries about the call have given back so far. */
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
  /** A rerate with this very version came before a later one changed the price. A version can be booked only once. */
  | 'rerated_before'

export type Rerated =
  | { readonly kind: 'unchanged'; readonly because: UnchangedBecause }
  | {
      readonly kind: 'changed'
      readonly call: RerateCandidate
      readonly version: { readonly id: string; readonly json: string }
      /** The sum paid for the call until now: its cost less the credits given back since. */
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
  // A customer that got the whole call back is owed nothing more by a lower price, and owes nothing by a higher one.
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

/** Models beyond this number share a line: the names of fine-tuned models are the customers' own, and without limit. */
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

/** The ledger as `tollgate rerate` uses it, beside running nodes. */
export interface RerateWriter {
  count(selection: RerateSelection): Promise<number>
  /** The selected calls after an id, in the order of their ids. The empty id comes before all. */
  read(selection: RerateSelection, afterId: string): Promise<readonly RerateCandidate[]>
  /** One transaction. Calls that were booked before, or have changed since they were read, are left out. */
  book(changed: readonly ChangedCall[]): Promise<Booked>
  close(): Promise<void>
}

export interface Booked {
  readonly calls: number
  readonly nanos: Nanos
}
