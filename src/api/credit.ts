import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { formatUsd, NANOS_PER_USD, type Nanos, withCommas } from '../kernel/money.ts'
import { idOf, instant, REQUEST_ID, textField, usdAmount, usdField } from './fields.ts'

export const balanceSchema = z
  .object({
    object: z.literal('balance'),
    balance_usd: usdAmount('Credit less charges; it may be negative.'),
    held_usd: usdAmount('The most that calls in flight may still cost.'),
    credited_usd: usdAmount('All credit ever added.'),
    charged_usd: usdAmount('The cost of all calls.'),
    enforced: z.boolean().describe('Whether calls are refused once the credit is used up.'),
  })
  .meta({ id: 'balance', description: 'The prepaid credit of the account.' })
export type BalanceObject = z.infer<typeof balanceSchema>

export const accountSchema = z
  .object({
    id: z.string(),
    object: z.literal('account'),
    credit_enforced: z.boolean().describe('Whether calls are refused once the credit is used up.'),
    balance_usd: usdAmount('Credit less charges; it may be negative.'),
  })
  .meta({ id: 'account', description: 'The account that keys and credit belong to.' })
export type AccountObject = z.infer<typeof accountSchema>

export const accountFields = z.strictObject({
  credit_enforced: z
    .boolean('credit_enforced must be true or false.')
    .optional()
    .describe('Whether calls are refused once the credit is used up. Adding credit does not turn it on.'),
  force: z
    .boolean('force must be true or false.')
    .optional()
    .describe('Turns enforcement on even though the balance is 0 or less.'),
})

export const creditSchema = z
  .object({
    id: idOf('credit'),
    object: z.literal('credit'),
    amount_usd: usdAmount('The amount added.'),
    reason: z.string(),
    created_at: instant(),
    balance_usd: usdAmount('The balance of the account after it.'),
  })
  .meta({ id: 'credit', description: 'A ledger entry that adds credit.' })
export type Credit = z.infer<typeof creditSchema>

export const CREDIT_OUTCOMES = [
  'credited',
  'already_credited',
  'nothing_to_credit',
  'in_flight',
  'not_found',
] as const

export const creditBackSchema = z
  .object({
    object: z.literal('credit_back'),
    reason: z.string(),
    credited_usd: usdAmount('The sum credited back.'),
    balance_usd: usdAmount('The balance of the account after it.'),
    data: z
      .array(
        z.object({
          request_id: z.string(),
          outcome: z
            .enum(CREDIT_OUTCOMES)
            .describe(
              '`already_credited`: by an earlier request. `nothing_to_credit`: the call cost nothing. `in_flight`: it has ' +
                'not ended; ask again. Only `credited` moved money.',
            ),
          credit_id: idOf('credit').nullable().describe('The ledger entry, if this request wrote one.'),
          amount_usd: usdAmount('What this request credited back for the call.'),
        }),
      )
      .describe('The outcome for each call, in the order of the request.'),
  })
  .meta({ id: 'credit_back', description: 'The cost of calls, credited back as ledger entries.' })
export type CreditBackObject = z.infer<typeof creditBackSchema>

const listed = `request_ids must be a list of 1 to ${withCommas(limits.creditBackCallsMax)} request ids.`

/** A list with a malformed or repeated id is refused before any call is credited. */
const requestIds = z
  .array(
    z
      .string('Each of request_ids must be a request id.')
      .regex(REQUEST_ID, 'Each of request_ids must be `req_` and a ULID.'),
    listed,
  )
  .min(1, listed)
  .max(limits.creditBackCallsMax, listed)
  .refine((ids) => new Set(ids).size === ids.length, 'request_ids must not name a call twice.')
  .meta({ uniqueItems: true, description: 'The calls whose cost is credited back, each once.' })

/** The most credit that an account may ever have. 64 bits hold 9.2 billion dollars; the rest is for credit-backs. */
export const CREDITED_MAX: Nanos = 9_000_000_000n * NANOS_PER_USD

export const creditFields = z
  .strictObject({
    amount_usd: usdField('amount_usd', { min: 1n, max: 1_000_000_000n * NANOS_PER_USD })
      .optional()
      .describe(
        'The amount to add, in US dollars with at most 9 decimals. All credit together is at most ' +
          `${formatUsd(CREDITED_MAX)}.`,
      ),
    request_ids: requestIds.optional(),
    reason: textField('reason', 500).describe('What the ledger says it was for.'),
  })
  // A union of two objects would say of every mistake only that neither fits.
  .meta({
    oneOf: [
      { type: 'object', required: ['amount_usd'] },
      { type: 'object', required: ['request_ids'] },
    ],
  })
