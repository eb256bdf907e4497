import { z } from 'zod'
import { NANOS_PER_USD } from '../kernel/money.ts'
import { checkBody } from './check-body.ts'
import { type Route, replyJson, replyRefused } from './route.ts'
import { usd, usdField } from './usd.ts'

const body = z.strictObject({
  amount_usd: usdField('amount_usd', { min: 1n, max: 1_000_000_000n * NANOS_PER_USD }),
  reason: z
    .string('reason must be a text of 1 to 500 characters.')
    .min(1, 'reason must not be empty.')
    .max(500, 'reason must have at most 500 characters.'),
})

/** Adds prepaid credit to the account. The first credit makes it count: from then on it is enforced. */
export const addCredit: Route = {
  method: 'POST',
  template: '/gateway/v1/credits',
  access: 'admin',
  async handle(request, { clock, nextUlid, store }) {
    const checked = checkBody(body, request.body)
    if (checked.kind === 'refused') return replyRefused(checked.refusal)
    const { amount_usd: amountNanos, reason } = checked.value
    const credit = {
      id: `crd_${nextUlid()}`,
      accountId: request.caller.accountId,
      amountNanos,
      reason,
      atMs: clock.nowMs(),
    }
    const balance = await store.addCredit(credit)
    return replyJson(201, {
      id: credit.id,
      object: 'credit',
      amount_usd: usd(amountNanos),
      reason,
      created_at: new Date(credit.atMs).toISOString(),
      balance_usd: usd(balance.creditedNanos - balance.chargedNanos),
    })
  },
}
