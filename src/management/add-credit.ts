import { z } from 'zod'
import { refuse, StoreRefused } from '../kernel/errors.ts'
import { formatUsd, NANOS_PER_USD, type Nanos } from '../kernel/money.ts'
import type { Once, OnceResult } from '../kernel/once.ts'
import type { Credited } from '../ledger/ledger-store.ts'
import { creditBackObject, creditBackSchema, requestIds } from './credit-back.ts'
import { formatInstant, instant } from './instant-field.ts'
import { refuseOtherCommand, replyRepeated, replyUnstored } from './reply-unstored.ts'
import { defineRoute, type Management, type OwnReply, replyRefused } from './route.ts'
import { textField } from './text-field.ts'
import { usd, usdAmount, usdField } from './usd.ts'

/** All credit that an account was ever given. 64 bits hold 9.2 billion dollars; what is left is for credit back. */
const CREDITED_MAX: Nanos = 9_000_000_000n * NANOS_PER_USD

const body = z
  .strictObject({
    amount_usd: usdField('amount_usd', { min: 1n, max: 1_000_000_000n * NANOS_PER_USD })
      .optional()
      .meta({
        description:
          'How much to add, in US dollars with at most 9 decimals. All credit together is at most ' +
          `${formatUsd(CREDITED_MAX)}.`,
      }),
    request_ids: requestIds.optional(),
    reason: textField('reason', 500).meta({ description: 'What the books say it was for.' }),
  })
  // A union of two objects would say of every mistake only that neither fits; this way it names the field.
  .meta({
    oneOf: [
      { type: 'object', required: ['amount_usd'] },
      { type: 'object', required: ['request_ids'] },
    ],
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

/** Adds prepaid credit to the account, which counts from the first time on, or gives back what calls cost. */
export const addCredit = defineRoute({
  method: 'POST',
  template: '/gateway/v1/credits',
  access: 'admin',
  operationId: 'add_credit',
  summary: 'Add prepaid credit to the account, or give back what calls cost',
  description:
    'With `amount_usd` it adds prepaid credit: from the first time on, calls are admitted only while there is ' +
    'credit left. With `request_ids` it gives back what was paid for these calls, each once; that does not make ' +
    "credit count, and leaves the key's month as it is.",
  query: null,
  body,
  repeatable: true,
  success: { status: 201, schema: z.discriminatedUnion('object', [creditSchema, creditBackSchema]) },
  errors: ['bad_request', 'request_timeout'],
  async handle({ caller, body, once }, management) {
    const { amount_usd: amountNanos, request_ids: calls, reason } = body
    const command = { accountId: caller.accountId, reason, once }
    if (amountNanos !== undefined && calls !== undefined) {
      return refuseField('request_ids', 'request_ids and amount_usd cannot be used together.')
    }
    if (amountNanos !== undefined) return topUp(amountNanos, command, management)
    if (calls !== undefined) return creditBack(calls, command, management)
    return refuseField('amount_usd', 'amount_usd or request_ids is required.')
  },
})

interface CreditCommand {
  readonly accountId: string
  readonly reason: string
  readonly once: Once | null
}

async function topUp(
  amountNanos: Nanos,
  { once, ...command }: CreditCommand,
  management: Management,
): Promise<OwnReply> {
  const { clock, nextUlid, store } = management
  const credit = { ...command, id: `crd_${nextUlid()}`, amountNanos, atMs: clock.nowMs() }
  const { creditedNanos } = await store.getBalance(command.accountId)
  const tooMuch = creditedNanos + amountNanos > CREDITED_MAX
  if (tooMuch && once === null) return refuseTooMuch()
  try {
    return reply(await store.addCredit(credit, once), creditObject, management)
  } catch (error) {
    // A command with a name may repeat one that is part of the sum already. Only the store can tell, and it takes none
    // of which 64 bits do not hold the sum.
    if (tooMuch && error instanceof StoreRefused) return refuseTooMuch()
    throw error
  }
}

async function creditBack(
  ids: readonly string[],
  { once, ...command }: CreditCommand,
  management: Management,
): Promise<OwnReply> {
  const { clock, nextUlid, store } = management
  const calls = ids.map((requestId) => ({ requestId, creditId: `crd_${nextUlid()}` }))
  const result = await store.creditBack({ ...command, calls, atMs: clock.nowMs() }, once)
  return reply(result, (credited) => creditBackObject(credited, command.reason), management)
}

function reply<T>(result: OnceResult<T>, show: (value: T) => unknown, { limitsMoved }: Management): OwnReply {
  if (result.kind === 'conflict') return replyRefused(refuseOtherCommand())
  limitsMoved()
  return (result.kind === 'repeated' ? replyRepeated : replyUnstored)(201, show(result.value))
}

function refuseTooMuch(): OwnReply {
  const message = `amount_usd would take all credit of the account beyond ${formatUsd(CREDITED_MAX)} US dollars.`
  return refuseField('amount_usd', message)
}

function refuseField(param: string, message: string): OwnReply {
  return replyRefused(refuse('bad_request', message, { param }))
}

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
