import { z } from 'zod'
import { StoreRefused } from '../kernel/errors.ts'
import type { Idempotency, IdempotentResult } from '../kernel/idempotency.ts'
import { limits } from '../kernel/limits.ts'
import { formatUsd, NANOS_PER_USD, type Nanos, withCommas } from '../kernel/money.ts'
import type { Balance, CreditBackOutcome, Credited, CreditedBack } from '../ledger/ledger-store.ts'
import {
  creditId,
  formatInstant,
  instant,
  type Members,
  objectOf,
  REQUEST_ID,
  schemaOf,
  textField,
  usd,
  usdAmount,
  usdField,
} from './fields.ts'
import {
  defineRoute,
  type Management,
  type OwnReply,
  refused,
  refusedOtherCommand,
  replyJson,
  replyOnce,
} from './route.ts'

const leftOf = (balance: Balance) => usd(balance.creditedNanos - balance.chargedNanos)

export const balanceMembers: Members<Balance> = {
  object: [z.literal('balance'), () => 'balance'],
  balance_usd: [usdAmount('Credit less charges; negative where calls cost more than there was.'), leftOf],
  held_usd: [usdAmount('What calls in flight may still cost at most.'), (balance) => usd(balance.heldNanos)],
  credited_usd: [usdAmount('All credit that was ever added.'), (balance) => usd(balance.creditedNanos)],
  charged_usd: [usdAmount('All that calls have cost.'), (balance) => usd(balance.chargedNanos)],
  enforced: [
    z.boolean().describe('Whether calls are refused once the credit is used up: from the first top-up on.'),
    'enforced',
  ],
}

export const balanceSchema = schemaOf(balanceMembers).meta({
  id: 'balance',
  description: 'The prepaid credit of the account.',
})

export function balanceObject(balance: Balance): Record<string, unknown> {
  return objectOf(balanceMembers, balance)
}

const getBalance = defineRoute({
  endpoint: 'GET /gateway/v1/balance',
  operationId: 'get_balance',
  summary: 'Show the prepaid credit of the account',
  success: {
    status: 200,
    schema: balanceSchema,
  },
  async handle({ caller }, { store }) {
    return replyJson(200, balanceObject(await store.getBalance(caller.accountId)))
  },
})

const creditMembers: Members<Credited> = {
  id: [creditId(), ({ credit }) => credit.id],
  object: [z.literal('credit'), () => 'credit'],
  amount_usd: [usdAmount('What was added.'), ({ credit }) => usd(credit.amountNanos)],
  reason: [z.string(), ({ credit }) => credit.reason],
  created_at: [instant(), ({ credit }) => formatInstant(credit.atMs)],
  balance_usd: [usdAmount('The balance of the account with it.'), ({ balance }) => leftOf(balance)],
}

const creditSchema = schemaOf(creditMembers).meta({
  id: 'credit',
  description: 'An entry of the journal that adds credit.',
})

const listed = `request_ids must be a list of 1 to ${withCommas(limits.creditBackCallsMax)} request ids.`

/** The calls to give back. A list with a malformed or repeated id is refused before any call is credited. */
export const requestIds = z
  .array(
    z
      .string('Each of request_ids must be a request id.')
      .regex(REQUEST_ID, 'Each of request_ids must be `req_` and a ULID.'),
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

const amountOf = (call: CreditBackOutcome): Nanos => (call.kind === 'credited' ? call.amountNanos : 0n)

const outcomeMembers: Members<CreditBackOutcome> = {
  request_id: [z.string(), 'requestId'],
  outcome: [
    z
      .enum(OUTCOMES)
      .describe(
        '`already_credited`: by another request before. `nothing_to_credit`: nothing was paid for it. ' +
          '`in_flight`: it has not ended; ask again. Only `credited` moved money.',
      ),
    'kind',
  ],
  credit_id: [
    creditId().nullable().describe('The entry of the journal, if this request made one.'),
    (call) => (call.kind === 'credited' ? call.creditId : null),
  ],
  amount_usd: [usdAmount('What this request gave back for it.'), (call) => usd(amountOf(call))],
}

const creditBackMembers: Members<CreditedBack & { readonly reason: string }> = {
  object: [z.literal('credit_back'), () => 'credit_back'],
  reason: [z.string(), ({ reason }) => reason],
  credited_usd: [
    usdAmount('What was given back in all.'),
    ({ calls }) => usd(calls.reduce((sum, call) => sum + amountOf(call), 0n)),
  ],
  balance_usd: [usdAmount('The balance of the account with it.'), ({ balance }) => leftOf(balance)],
  data: [
    z.array(schemaOf(outcomeMembers)).describe('What came of each call, in the order asked.'),
    ({ calls }) => calls.map((call) => objectOf(outcomeMembers, call)),
  ],
}

const creditBackSchema = schemaOf(creditBackMembers).meta({
  id: 'credit_back',
  description: 'What calls cost, given back as entries of the journal.',
})

/** The most credit that an account may ever be given. 64 bits hold 9.2 billion dollars; the rest is for credit back. */
const CREDITED_MAX: Nanos = 9_000_000_000n * NANOS_PER_USD

const creditFields = z
  .strictObject({
    amount_usd: usdField('amount_usd', { min: 1n, max: 1_000_000_000n * NANOS_PER_USD })
      .optional()
      .describe(
        'How much to add, in US dollars with at most 9 decimals. All credit together is at most ' +
          `${formatUsd(CREDITED_MAX)}.`,
      ),
    request_ids: requestIds.optional(),
    reason: textField('reason', 500).describe('What the books say it was for.'),
  })
  // A union of two objects would say of every mistake only that neither fits; one object lets the refusal name the field.
  .meta({
    oneOf: [
      { type: 'object', required: ['amount_usd'] },
      { type: 'object', required: ['request_ids'] },
    ],
  })

/** Adds prepaid credit to the account, which is enforced from the first time on, or gives back the cost of calls. */
export const addCredit = defineRoute({
  endpoint: 'POST /gateway/v1/credits',
  operationId: 'add_credit',
  summary: 'Add prepaid credit to the account, or give back what calls cost',
  description:
    'With `amount_usd` it adds prepaid credit: from the first time on, calls are admitted only while there is ' +
    'credit left. With `request_ids` it gives back what was paid for these calls, each once; that does not make ' +
    "credit count, and leaves the key's month as it is.",
  body: creditFields,
  repeatable: true,
  success: { status: 201, schema: z.discriminatedUnion('object', [creditSchema, creditBackSchema]) },
  async handle({ caller, body, idempotency }, management) {
    const { amount_usd: amountNanos, request_ids: calls, reason } = body
    const command = { accountId: caller.accountId, reason, idempotency }
    if (amountNanos !== undefined && calls !== undefined) {
      return refused('bad_request', 'request_ids and amount_usd cannot be used together.', 'request_ids')
    }
    if (amountNanos !== undefined) return topUp(amountNanos, command, management)
    if (calls !== undefined) return creditBack(calls, command, management)
    return refused('bad_request', 'amount_usd or request_ids is required.', 'amount_usd')
  },
})

interface CreditCommand {
  readonly accountId: string
  readonly reason: string
  readonly idempotency: Idempotency | null
}

async function topUp(
  amountNanos: Nanos,
  { idempotency, ...command }: CreditCommand,
  management: Management,
): Promise<OwnReply> {
  const { clock, nextUlid, store } = management
  const credit = { ...command, id: `crd_${nextUlid()}`, amountNanos, atMs: clock.nowMs() }
  const { creditedNanos } = await store.getBalance(command.accountId)
  const tooMuch = creditedNanos + amountNanos > CREDITED_MAX
  if (tooMuch && idempotency === null) return refusedTooMuch()
  try {
    const show = (credited: Credited) => objectOf(creditMembers, credited)
    return reply(await store.addCredit(credit, idempotency), show, management)
  } catch (error) {
    // A command with an `Idempotency-Key` may repeat a command that is part of the sum already. Only the store can tell,
    // and it refuses a sum that 64 bits do not hold.
    if (tooMuch && error instanceof StoreRefused) return refusedTooMuch()
    throw error
  }
}

async function creditBack(
  ids: readonly string[],
  { idempotency, ...command }: CreditCommand,
  management: Management,
): Promise<OwnReply> {
  const { clock, nextUlid, store } = management
  const calls = ids.map((id) => ({ requestId: id, creditId: `crd_${nextUlid()}` }))
  const result = await store.creditBack({ ...command, calls, atMs: clock.nowMs() }, idempotency)
  const show = (credited: CreditedBack) =>
    objectOf(creditBackMembers, { ...credited, reason: command.reason })
  return reply(result, show, management)
}

function reply<T>(
  result: IdempotentResult<T>,
  show: (value: T) => unknown,
  { limitsMoved }: Management,
): OwnReply {
  if (result.kind === 'conflict') return refusedOtherCommand()
  limitsMoved()
  return replyOnce(result, show(result.value))
}

function refusedTooMuch(): OwnReply {
  const message = `amount_usd would take all credit of the account beyond ${formatUsd(CREDITED_MAX)} US dollars.`
  return refused('bad_request', message, 'amount_usd')
}

export const creditRoutes = [getBalance, addCredit]
