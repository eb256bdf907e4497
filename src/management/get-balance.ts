import { z } from 'zod'
import type { Balance } from '../ledger/ledger-store.ts'
import { replyUnstored } from './reply-unstored.ts'
import { defineRoute } from './route.ts'
import { usd, usdAmount } from './usd.ts'

const balanceSchema = z
  .object({
    object: z.literal('balance'),
    balance_usd: usdAmount('Credit less charges; negative where calls cost more than there was.'),
    held_usd: usdAmount('What calls in flight may still cost at most.'),
    credited_usd: usdAmount('All credit that was ever added.'),
    charged_usd: usdAmount('All that calls have cost.'),
    enforced: z.boolean().meta({
      description: 'Whether calls are refused once the credit is used up: from the first credit on.',
    }),
  })
  .meta({ id: 'balance', description: 'The prepaid credit of the account.' })

export const getBalance = defineRoute({
  method: 'GET',
  template: '/gateway/v1/balance',
  access: 'admin',
  operationId: 'get_balance',
  summary: 'Show the prepaid credit of the account',
  query: null,
  body: null,
  repeatable: false,
  success: { status: 200, schema: balanceSchema },
  errors: ['bad_request'],
  async handle({ caller }, { store }) {
    return replyUnstored(200, balanceObject(await store.getBalance(caller.accountId)))
  },
})

function balanceObject(balance: Balance): Record<keyof z.infer<typeof balanceSchema>, unknown> {
  return {
    object: 'balance',
    balance_usd: usd(balance.creditedNanos - balance.chargedNanos),
    held_usd: usd(balance.heldNanos),
    credited_usd: usd(balance.creditedNanos),
    charged_usd: usd(balance.chargedNanos),
    enforced: balance.enforced,
  }
}
