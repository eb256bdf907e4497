import { z } from 'zod'
import {
  type AccountObject,
  accountFields,
  accountSchema,
  balanceSchema,
  CREDITED_MAX,
  type CreditBackObject,
  creditBackSchema,
  creditFields,
  creditSchema,
} from '../api/credit.ts'
import type { Written } from '../api/fields.ts'
import { balanceObject, creditObject } from '../api/objects.ts'
import type { Actor } from '../kernel/actor.ts'
import { StoreRefused } from '../kernel/errors.ts'
import type { Idempotency, IdempotentResult } from '../kernel/idempotency.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import type { Balance, CreditBackOutcome, CreditedBack } from '../ledger/ledger-store.ts'
import {
  defineRoute,
  type Management,
  type OwnReply,
  refused,
  refusedOtherCommand,
  replyJson,
  replyOnce,
  usd,
} from './route.ts'

const leftOf = (balance: Balance) => usd(balance.creditedNanos - balance.chargedNanos)

const amountOf = (call: CreditBackOutcome): Nanos => (call.kind === 'credited' ? call.amountNanos : 0n)

function creditBackObject({ calls, balance }: CreditedBack, reason: string): Written<CreditBackObject> {
  return {
    object: 'credit_back',
    reason,
    credited_usd: usd(calls.reduce((sum, call) => sum + amountOf(call), 0n)),
    balance_usd: leftOf(balance),
    data: calls.map((call) => ({
      request_id: call.requestId,
      outcome: call.kind,
      credit_id: call.kind === 'credited' ? call.creditId : null,
      amount_usd: usd(amountOf(call)),
    })),
  }
}

const getBalance = defineRoute({
  endpoint: 'GET /gateway/v1/balance',
  operationId: 'get_balance',
  summary: 'Show the prepaid credit of the account',
  answer: balanceSchema,
  async handle({ accountId }, { store }) {
    return replyJson(200, balanceObject(await store.getBalance(accountId)))
  },
})

export const addCredit = defineRoute({
  endpoint: 'POST /gateway/v1/credits',
  operationId: 'add_credit',
  summary: 'Add prepaid credit to the account, or credit calls back',
  description:
    '`amount_usd` adds prepaid credit. `request_ids` ' +
    'credits back what was paid for these calls, once each; it does not change the spend of the key. Neither turns enforcement on.',
  body: creditFields,
  repeatable: true,
  status: 201,
  answer: z.discriminatedUnion('object', [creditSchema, creditBackSchema]),
  async handle({ accountId, actor, body, idempotency }, management) {
    const { amount_usd: amountNanos, request_ids: calls, reason } = body
    const command = { accountId, reason, idempotency, actor }
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
  readonly actor: Actor
}

async function topUp(
  amountNanos: Nanos,
  { idempotency, actor, ...command }: CreditCommand,
  management: Management,
): Promise<OwnReply> {
  const { clock, nextUlid, store } = management
  const credit = { ...command, id: `crd_${nextUlid()}`, amountNanos, atMs: clock.nowMs() }
  const { creditedNanos } = await store.getBalance(command.accountId)
  const tooMuch = creditedNanos + amountNanos > CREDITED_MAX
  if (tooMuch && idempotency === null) return refusedTooMuch()
  try {
    return reply(await store.addCredit(credit, idempotency, actor), creditObject, management)
  } catch (error) {
    // A command with an `Idempotency-Key` may be a replay whose amount the sum contains already. Only the store can tell.
    if (tooMuch && error instanceof StoreRefused) return refusedTooMuch()
    throw error
  }
}

async function creditBack(
  ids: readonly string[],
  { idempotency, actor, ...command }: CreditCommand,
  management: Management,
): Promise<OwnReply> {
  const { clock, nextUlid, store } = management
  const calls = ids.map((id) => ({ requestId: id, creditId: `crd_${nextUlid()}` }))
  const result = await store.creditBack({ ...command, calls, atMs: clock.nowMs() }, idempotency)
  return reply(result, (credited) => creditBackObject(credited, command.reason), management)
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
  const message = `amount_usd would raise the account's total credit above ${formatUsd(CREDITED_MAX)} US dollars.`
  return refused('bad_request', message, 'amount_usd')
}

// The account

function accountObject(id: string, balance: Balance): Written<AccountObject> {
  return { id, object: 'account', credit_enforced: balance.enforced, balance_usd: leftOf(balance) }
}

const getAccount = defineRoute({
  endpoint: 'GET /gateway/v1/accounts/default',
  operationId: 'get_account',
  summary: 'Show the account',
  answer: accountSchema,
  async handle({ accountId }, { store }) {
    return replyJson(200, accountObject(accountId, await store.getBalance(accountId)))
  },
})

const updateAccount = defineRoute({
  endpoint: 'PATCH /gateway/v1/accounts/default',
  operationId: 'update_account',
  summary: 'Turn the enforcement of credit on or off',
  description:
    'While `credit_enforced` is true, calls are admitted only while credit is left. Turning it on with a balance of 0 or ' +
    'less would refuse every call, and is 409 `balance_not_positive` without `force`.',
  body: accountFields,
  answer: accountSchema,
  async handle({ accountId, body }, { store, limitsMoved }) {
    const { credit_enforced: enforced, force = false } = body
    if (enforced === undefined)
      return replyJson(200, accountObject(accountId, await store.getBalance(accountId)))
    const { kind, balance } = await store.enforceCredit(accountId, enforced, force)
    if (kind === 'balance_not_positive') {
      const message = `The balance is ${formatUsd(balance.creditedNanos - balance.chargedNanos)} USD, so every call would be refused. Add credit first, or send "force": true.`
      return refused('balance_not_positive', message, 'credit_enforced')
    }
    limitsMoved()
    return replyJson(200, accountObject(accountId, balance))
  },
})

export const creditRoutes = [getBalance, addCredit, getAccount, updateAccount]
