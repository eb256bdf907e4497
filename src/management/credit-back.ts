import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import type { CreditBackOutcome, CreditedBack } from '../ledger/ledger-store.ts'
import { usd, usdAmount } from './usd.ts'

const callsMax = limits.creditBackCallsMax.toLocaleString('en')
const listed = `request_ids must be a list of 1 to ${callsMax} request ids.`

/** The calls to give back. A list that is not what its sender believes it to be is refused before any is credited. */
export const requestIds = z
  .array(
    z
      .string('Each of request_ids must be a request id.')
      .regex(/^req_[0-9A-HJKMNP-TV-Z]{26}$/, 'Each of request_ids must be `req_` and a ULID.'),
    listed,
  )
  .min(1, listed)
  .max(limits.creditBackCallsMax, listed)
  .refine((ids) => new Set(ids).size === ids.length, 'request_ids must not name a call twice.')
  .meta({
    uniqueItems: true,
    description: 'The calls of which what they cost is given back, each once however often it is asked.',
  })

const OUTCOMES = [
  'credited',
  'already_credited',
  'nothing_to_credit',
  'in_flight',
  'not_found',
] as const satisfies readonly CreditBackOutcome['kind'][]

const outcomeSchema = z.object({
  request_id: z.string(),
  outcome: z.enum(OUTCOMES).meta({
    description:
      '`already_credited`: by another request before. `nothing_to_credit`: nothing was paid for it. ' +
      '`in_flight`: it has not ended; ask again. Only `credited` moved money.',
  }),
  credit_id: z
    .string()
    .regex(/^crd_[0-9A-HJKMNP-TV-Z]{26}$/)
    .nullable()
    .meta({ description: 'The entry of the journal, if this request made one.' }),
  amount_usd: usdAmount('What this request gave back for it.'),
})

export const creditBackSchema = z
  .object({
    object: z.literal('credit_back'),
    reason: z.string(),
    credited_usd: usdAmount('What was given back in all.'),
    balance_usd: usdAmount('The balance of the account with it.'),
    data: z.array(outcomeSchema).meta({ description: 'What came of each call, in the order asked.' }),
  })
  .meta({ id: 'credit_back', description: 'What calls cost, given back as entries of the journal.' })

export function creditBackObject(
  { calls, balance }: CreditedBack,
  reason: string,
): Record<keyof z.infer<typeof creditBackSchema>, unknown> {
  return {
    object: 'credit_back',
    reason,
    credited_usd: usd(calls.reduce((sum, call) => sum + amountOf(call), 0n)),
    balance_usd: usd(balance.creditedNanos - balance.chargedNanos),
    data: calls.map(outcomeObject),
  }
}

function outcomeObject(call: CreditBackOutcome): Record<keyof z.infer<typeof outcomeSchema>, unknown> {
  return {
    request_id: call.requestId,
    outcome: call.kind,
    credit_id: call.kind === 'credited' ? call.creditId : null,
    amount_usd: usd(amountOf(call)),
  }
}

function amountOf(call: CreditBackOutcome): bigint {
  return call.kind === 'credited' ? call.amountNanos : 0n
}
