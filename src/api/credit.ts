import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { formatUsd, NANOS_PER_USD, type Nanos, withCommas } from '../kernel/money.ts'
import { CREDIT_KINDS } from '../kernel/vocabulary.ts'
import { CREDITED_MAX } from '../ledger/account.ts'
import * as f from './fields.ts'

export const balanceSchema = z
  .object({
    object: z.literal('balance'),
    balance_usd: f.usdAmount('Credit minus charges; may be negative.'),
    held_usd: f.usdAmount('The maximum cost of the calls in flight.'),
    credited_usd: f.usdAmount(
      'All entries of the credit ledger added up: top-ups, corrections and credit-backs. (In usage, `credited_usd` is only ' +
        'what was credited back for the calls of a bucket.)',
    ),
    charged_usd: f.usdAmount('The cost of all calls, as billed.'),
    enforced: f.flag('Whether calls are refused once the credit is used up.'),
  })
  .meta({ id: 'balance', description: 'The prepaid credit of the account.' })
export type BalanceObject = z.infer<typeof balanceSchema>

export const creditSchema = z
  .object({
    id: f.idOf('credit'),
    object: z.literal('credit'),
    account_id: z.string(),
    amount_usd: f.usdAmount('The change of the balance; negative if it was lowered.'),
    reason: z.string(),
    kind: z.enum(CREDIT_KINDS).describe('`correction`: a negative amount, or the difference of a rerate.'),
    actor: f.actorSchema,
    created_at: f.instant(),
    balance_after_usd: f.usdAmount('The balance of the account afterwards.'),
  })
  .meta({ id: 'credit', description: 'An entry of the credit ledger.' })
export type Credit = z.infer<typeof creditSchema>

const NOT_CREDITED = ['not_found', 'in_flight', 'nothing_to_credit'] as const

export const addedCreditSchema = creditSchema
  .extend({
    credited: z.array(z.string()).optional().describe('For a credit-back: the calls that it credited.'),
    already_credited: z
      .array(z.string())
      .optional()
      .describe('For a credit-back: calls that were credited before.'),
    not_credited: z
      .array(
        z.object({
          request_id: z.string(),
          reason: z
            .enum(NOT_CREDITED)
            .describe('`in_flight`: not ended yet, try again later. `nothing_to_credit`: it cost nothing.'),
        }),
      )
      .optional()
      .describe('For a credit-back: the other calls of the request.'),
  })
  .meta({ id: 'added_credit', description: 'The entry that a request wrote.' })
export type AddedCredit = z.infer<typeof addedCreditSchema>

export const creditListQuery = z.strictObject(f.paging('credit'))

const listed = `request_ids must be a list of 1 to ${withCommas(limits.creditBackCallsMax)} request ids.`

/** If an id is malformed or repeated, the whole list is refused before any call is credited. */
const requestIds = z
  .array(
    z
      .string('Each of request_ids must be a request id.')
      .regex(f.REQUEST_ID, 'Each of request_ids must be `req_` and a ULID.'),
    listed,
  )
  .min(1, listed)
  .max(limits.creditBackCallsMax, listed)
  .refine((ids) => new Set(ids).size === ids.length, 'request_ids must not name a call twice.')
  .meta({ uniqueItems: true, description: 'The calls whose cost is credited back, each once.' })

const AMOUNT_MAX: Nanos = 1_000_000_000n * NANOS_PER_USD

export const creditFields = z
  .strictObject({
    amount_usd: f
      .usdField('amount_usd', { min: -AMOUNT_MAX, max: AMOUNT_MAX })
      .refine((nanos) => nanos !== 0n, 'amount_usd must not be 0.')
      .optional()
      .describe(
        'The amount to add, in US dollars with at most 9 decimals; a negative amount is a correction. All credit together ' +
          `is at most ${formatUsd(CREDITED_MAX)}.`,
      ),
    request_ids: requestIds.optional(),
    reason: f.textField('reason', 500).describe('The reason, as recorded in the ledger.'),
  })
  .meta(f.oneRequired('amount_usd', 'request_ids'))
