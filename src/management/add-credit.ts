import { z } from 'zod'
import { NANOS_PER_USD } from '../kernel/money.ts'
import type { Credited } from '../ledger/ledger-store.ts'
import { formatInstant, instant } from './instant-field.ts'
import { refuseOtherCommand, replyRepeated, replyUnstored } from './reply-unstored.ts'
import { defineRoute, replyRefused } from './route.ts'
import { textField } from './text-field.ts'
import { usd, usdAmount, usdField } from './usd.ts'

const body = z.strictObject({
  amount_usd: usdField('amount_usd', { min: 1n, max: 1_000_000_000n * NANOS_PER_USD }).meta({
    description: 'How much to add, in US dollars with at most 9 decimals.',
  }),
  reason: textField('reason', 500).meta({ description: 'What the books say it was for.' }),
})

const creditSchema = z
  .object({
    id: z.string().regex(/^crd_[0-9A-HJKMNP-TV-Z]{26}$/),
    object: z.literal('credit'),
    amount_usd: usdAmount('What was added.'),
    reason: z.string(),
    created_at: instant(),
    balance_usd: usdAmount('The balance of the account with it.'),
  })
  .meta({ id: 'credit', description: 'An entry of the journal that adds credit.' })

/** Adds prepaid credit to the account. The first credit makes it count: from then on it is enforced. */
export const addCredit = defineRoute({
  method: 'POST',
  template: '/gateway/v1/credits',
  access: 'admin',
  operationId: 'add_credit',
  summary: 'Add prepaid credit to the account',
  description: 'From the first credit on, calls are admitted only while there is credit left.',
  query: null,
  body,
  success: { status: 201, schema: creditSchema },
  errors: ['bad_request', 'conflict', 'request_timeout'],
  async handle({ caller, body, once }, { clock, nextUlid, store, limitsMoved }) {
    const credit = {
      id: `crd_${nextUlid()}`,
      accountId: caller.accountId,
      amountNanos: body.amount_usd,
      reason: body.reason,
      atMs: clock.nowMs(),
    }
    const result = await store.addCredit(credit, once)
    if (result.kind === 'conflict') return replyRefused(refuseOtherCommand())
    limitsMoved()
    const reply = result.kind === 'repeated' ? replyRepeated : replyUnstored
    return reply(201, creditObject(result.value))
  },
})

function creditObject({ credit, balance }: Credited): Record<keyof z.infer<typeof creditSchema>, unknown> {
  return {
    id: credit.id,
    object: 'credit',
    amount_usd: usd(credit.amountNanos),
    reason: credit.reason,
    created_at: formatInstant(credit.atMs),
    balance_usd: usd(balance.creditedNanos - balance.chargedNanos),
  }
}
