import { z } from 'zod'
import { type Fraction, formatUsd, type Nanos, rawNumber, roundHalfEven } from '../kernel/money.ts'
import { UNITS } from '../kernel/usage.ts'
import type { CallRecord } from '../ledger/call.ts'
import { NO_DISCOUNT, payableFor } from '../pricing/amounts.ts'
import { ONE } from '../pricing/modifiers.ts'
import { type Rating, readRating } from '../pricing/rate.ts'
import { createRateAgain } from '../pricing/rate-again.ts'
import { type Members, objectOf, schemaOf, usd, usdAmount } from './fields.ts'
import type { Management } from './route.ts'

/**
 * The bill of a call as arithmetic. Only its two totals are kept: the lines are derived again from the usage, the way of
 * rating and the prices that were kept with the call, as an audit derives them. So a bill of last year is shown at the
 * prices of last year, and a line that did not add up would show here.
 */

interface ShownLine {
  readonly line: Rating['lines'][number]
  /** The part of the amount that is not billed. */
  readonly discount: bigint
}

const lineMembers: Members<ShownLine> = {
  label: [z.string().describe('What was used, in words.'), ({ line }) => line.unit.replaceAll('_', ' ')],
  kind: [z.enum(UNITS), ({ line }) => line.unit],
  model: [z.string().describe('By its name in the price book.'), ({ line }) => line.model],
  quantity: [z.int().min(0), ({ line }) => line.quantity],
  rate_usd: [
    z.number().describe('The price of `rate_per` of them, as listed.'),
    ({ line }) => rawNumber(line.rate),
  ],
  rate_per: [
    z.int().min(1).describe('How many the rate buys: a million tokens, a thousand searches.'),
    ({ line }) => line.per,
  ],
  modifiers: [
    z.array(z.string()).describe('Tier, long context, multipliers and stand-ins, in words.'),
    ({ line }) => line.modifiers,
  ],
  amount_usd: [
    z.number().describe('At list price, with at most 18 decimals: nothing is rounded before the total.'),
    ({ line }) => exactUsd(line.amount),
  ],
  discount: [
    z.number().describe('The fraction of it that is not billed.'),
    ({ discount }) => rawNumber(formatUsd(discount)),
  ],
}

/** Exact amounts are in 1e-18 dollars: a token's cost, at a price with nine decimals per million, is three digits above. */
const EXACT_PER_NANO = 1_000_000_000n

function exactOf({ numerator, denominator }: Fraction): bigint {
  return roundHalfEven({ numerator: numerator * EXACT_PER_NANO, denominator })
}

function exactUsd(nanos: Fraction) {
  return formatExact(exactOf(nanos))
}

function formatExact(exact: bigint) {
  const places = 18
  const size = exact < 0n ? -exact : exact
  const digits = size.toString().padStart(places + 1, '0')
  const decimals = digits.slice(-places).replace(/0+$/, '')
  const whole = (exact < 0n ? '-' : '') + digits.slice(0, -places)
  return rawNumber(decimals === '' ? whole : `${whole}.${decimals}`)
}

interface ShownBill {
  readonly call: CallRecord
  readonly lines: readonly ShownLine[]
  readonly note: string | null
}

const billMembers: Members<ShownBill> = {
  object: [z.literal('bill'), () => 'bill'],
  price_version: [z.string().nullable(), ({ call }) => call.priceVersion],
  lines: [
    z.array(schemaOf(lineMembers)).describe('One for each kind of thing that a model used.'),
    ({ lines }) => lines.map((line) => objectOf(lineMembers, line)),
  ],
  rounding_usd: [
    z.number().describe('The list cost less the sum of the lines: it is rounded once, to the nanodollar.'),
    ({ call, lines }) => formatExact(roundingOf(call.listNanos, lines)),
  ],
  list_cost_usd: [usdAmount('The sum of the lines, rounded.').nullable(), ({ call }) => usd(call.listNanos)],
  discount_usd: [
    usdAmount('The list cost less the cost.').nullable(),
    ({ call }) => usd(call.listNanos === null ? null : call.listNanos - (call.costNanos ?? 0n)),
  ],
  cost_usd: [usdAmount('What the call cost.').nullable(), ({ call }) => usd(call.costNanos)],
  held_usd: [
    usdAmount('What was taken from the cap and the credit while the call ran.'),
    ({ call }) => usd(call.holdNanos),
  ],
  held_list_usd: [usdAmount('The same at list price.'), ({ call }) => usd(call.holdListNanos)],
  held_because: [z.string().describe('Why so much was held, in words.'), ({ call }) => whyHeld(call)],
  note: [z.string().nullable().describe('Why there are no lines, where there are none.'), 'note'],
}

export const billSchema = schemaOf(billMembers).meta({
  id: 'bill',
  description:
    'What a call cost, as arithmetic: lines + rounding_usd = list_cost_usd, less discount_usd = cost_usd.',
})

function roundingOf(listNanos: Nanos | null, lines: readonly ShownLine[]): bigint {
  if (listNanos === null || lines.length === 0) return 0n
  return lines.reduce((left, { line }) => left - exactOf(line.amount), listNanos * EXACT_PER_NANO)
}

function whyHeld({ state, holdNanos, costNanos, overrun }: CallRecord): string {
  if (state === 'waiting') return 'Nothing yet: the call waits for room under a cap or for credit.'
  if (state === 'refused') return 'Nothing: the call was refused.'
  if (holdNanos === 0n) return 'Nothing: by what was known before it ran, the call could not cost anything.'
  const bound =
    'The most that the call could cost by what it said: all that was sent as input, and as much output as the ' +
    'request and the model allow; or all that was left under the limits, where nothing bounds it.'
  if (costNanos === null) return bound
  return overrun
    ? `${bound} It cost more than that, so later calls of the kind hold more.`
    : `${bound} What it did not cost was given back.`
}

/** Why a call that has ended has no lines. */
function noteOf({ state, usage, costNanos, objectId }: CallRecord): string | null {
  if (state === 'deferred') return 'Upstream has not said yet what it costs. Until then the hold is in force.'
  if (costNanos === null) return 'The call has not ended.'
  if (state === 'released') return 'Nothing was used: the call did not reach upstream.'
  if (state === 'interrupted') return 'What was used cannot be known, so nothing is charged.'
  if (usage === null && objectId !== null && state === 'settled')
    return 'What its requests cost stands in a record for each model.'
  if (usage === null) return 'The endpoint is free, or upstream answered with an error, which costs nothing.'
  return null
}

const rateAgain = createRateAgain()

/** The bill of a call, derived again. */
export async function billObject(
  call: CallRecord,
  { store }: Pick<Management, 'store'>,
): Promise<Record<string, unknown>> {
  const note = noteOf(call)
  if (note !== null) return objectOf(billMembers, { call, lines: [], note })
  const priceVersionJson = call.priceVersion === null ? null : await store.readPriceVersion(call.priceVersion)
  const unknown = 'The prices that the call was rated with are not kept any more.'
  if (priceVersionJson === null || call.usage === null) {
    return objectOf(billMembers, { call, lines: [], note: unknown })
  }
  const rated = rateAgain({ usage: call.usage, rating: call.rating, priceVersionJson })
  if (rated === null) {
    return objectOf(billMembers, { call, lines: [], note: 'No model that did something has a price.' })
  }
  const discount = readRating(call.rating)?.discount ?? NO_DISCOUNT
  const lines = rated.lines.map((line) => ({ line, discount: ONE - payableFor(discount, line.model) }))
  return objectOf(billMembers, { call, lines, note: lines.length === 0 ? 'Nothing was used.' : null })
}
