import type { Written } from '../api/fields.ts'
import type { Bill, BillLine } from '../api/request.ts'
import { type Fraction, formatUsd, type Nanos, rawNumber, roundHalfEven } from '../kernel/money.ts'
import type { CallRecord } from '../ledger/call.ts'
import { FACTOR_ONE, NO_DISCOUNT, payableFor } from '../pricing/amounts.ts'
import { createRateAgain } from '../pricing/load-book.ts'
import type { RatedLine } from '../pricing/rate.ts'
import { readRating } from '../pricing/rating-context.ts'
import { type Management, usd } from './route.ts'

/** The database has only totals. The lines are computed again from usage, rating and prices, as in an audit. */

/** A line of the bill. `discount` is the fraction of the amount that is not billed, in billionths. */
function lineObject(line: RatedLine, discount: bigint): Written<BillLine> {
  return {
    label: line.unit.replaceAll('_', ' '),
    kind: line.unit,
    model: line.model,
    quantity: line.quantity,
    rate_usd: rawNumber(line.rate),
    rate_per: line.per,
    modifiers: line.modifiers,
    amount_usd: rawNumber(formatUsd(exactOf(line.amount), EXACT_PLACES)),
    discount: rawNumber(formatUsd(discount)),
  }
}

/** Exact amounts are in 1e-18 dollars: the cost of a token can have 15 decimals. */
const EXACT_PLACES = 18
const EXACT_PER_NANO = 1_000_000_000n

function exactOf({ numerator, denominator }: Fraction): bigint {
  return roundHalfEven({ numerator: numerator * EXACT_PER_NANO, denominator })
}

function roundingOf(listNanos: Nanos | null, lines: readonly RatedLine[]): bigint {
  if (listNanos === null || lines.length === 0) return 0n
  return lines.reduce((rest, { amount }) => rest - exactOf(amount), listNanos * EXACT_PER_NANO)
}

function whyHeld({ state, holdNanos, costNanos, overrun }: CallRecord, isUnbounded: boolean): string {
  if (state === 'waiting') return 'Nothing yet: the call waits for a budget or for credit.'
  if (state === 'refused') return 'Nothing: the call was refused.'
  if (holdNanos === 0n) return 'Nothing: the call could not cost anything.'
  const bound = isUnbounded
    ? 'This call has no maximum cost, so it reserved the rest of the budget. Without a budget it reserves at most ' +
      'limits.unbounded_hold_usd.'
    : 'This is the maximum cost of the call: the whole body as input, and the most output that the request and the model allow; ' +
      'or, if it is higher, the cost of an earlier call to this endpoint and model that exceeded its reservation.'
  if (costNanos === null) return bound
  return overrun
    ? `${bound} This call cost more, so later calls to this endpoint and model reserve more.`
    : `${bound} The amount above the cost was released.`
}

function noteOf({ state, usage, costNanos, objectId }: CallRecord): string | null {
  if (state === 'deferred') return 'Upstream has not stated the cost yet. Until then the reservation stays.'
  if (costNanos === null) return 'The call has not ended.'
  if (state === 'released') return 'Nothing was used, because the call did not reach upstream.'
  if (state === 'interrupted') return 'The usage is unknown, so nothing is charged.'
  if (usage === null && objectId !== null && state === 'settled')
    return 'The cost is in the child records of the batch: one record for each model.'
  if (usage === null) return 'Nothing is charged: the endpoint is free, or upstream answered with an error.'
  return null
}

const rateAgain = createRateAgain()

export async function billObject(
  call: CallRecord,
  { store }: Pick<Management, 'store'>,
): Promise<Written<Bill>> {
  const found = await linesOf(call, store)
  const lines = typeof found === 'string' ? [] : found
  const context = readRating(call.rating)
  const { discount } = context ?? { discount: NO_DISCOUNT }
  const { listNanos, costNanos } = call
  return {
    object: 'bill',
    price_version: call.priceVersion,
    lines: lines.map((line) => lineObject(line, FACTOR_ONE - payableFor(discount, line.model))),
    rounding_usd: rawNumber(formatUsd(roundingOf(listNanos, lines), EXACT_PLACES)),
    list_cost_usd: usd(listNanos),
    discount_usd: usd(listNanos === null ? null : listNanos - (costNanos ?? 0n)),
    cost_usd: usd(costNanos),
    held_usd: usd(call.holdNanos),
    held_list_usd: usd(call.holdListNanos),
    held_because: whyHeld(call, context?.isUnbounded === true),
    note: typeof found === 'string' ? found : null,
  }
}

async function linesOf(call: CallRecord, store: Management['store']): Promise<readonly RatedLine[] | string> {
  const note = noteOf(call)
  if (note !== null) return note
  const priceVersionJson = call.priceVersion === null ? null : await store.readPriceVersion(call.priceVersion)
  if (priceVersionJson === null || call.usage === null)
    return 'The price version of the call is no longer stored.'
  const rated = rateAgain({ usage: call.usage, rating: call.rating, priceVersionJson })
  if (rated === null) return 'No model of the call has a price.'
  return rated.lines.length === 0 ? 'Nothing was used.' : rated.lines
}
