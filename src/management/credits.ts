import { creditFields, creditListQuery } from '../api/credit.ts'
import { balanceObject, creditObject } from '../api/objects.ts'
import { refuse } from '../kernel/errors.ts'
import type { Idempotency } from '../kernel/idempotency.ts'
import { formatUsd } from '../kernel/money.ts'
import { CREDITED_MAX, type CreditBack, type CreditBackOutcomes, type NewCredit } from '../ledger/account.ts'
import { defineRoute, invalid, type Management, type OwnReply, pageObject, replyIdempotent } from './route.ts'

export const showBalance = defineRoute({
  summary: 'Show the prepaid credit of the account',
  async handle({ accountId }, { store }) {
    return balanceObject(await store.getBalance(accountId))
  },
})

export const listCredits = defineRoute({
  summary: 'List the credit ledger, newest first',
  query: creditListQuery,
  async handle({ listedAccountId: accountId, query: { after = null, limit } }, { store }) {
    return pageObject(await store.listCredits({ accountId, after, limit }), creditObject)
  },
})

export const addCredit = defineRoute({
  summary: 'Add prepaid credit to the account, correct it, or credit calls back',
  description:
    '`amount_usd` adds prepaid credit; a negative amount is a correction. `request_ids` credits back what was paid for these ' +
    'calls, once each, as one ledger entry; the spend of the key does not change. If none of the calls is left to ' +
    'credit: 409 `conflict`, or 404 `not_found` if the account has none of them. None of this turns enforcement on.',
  body: creditFields,
  repeatable: true,
  status: 201,
  async handle({ accountId, actor, body, idempotency, atMs }, management) {
    const { amount_usd: amountNanos, request_ids: requestIds, reason } = body
    const command = { id: `crd_${management.nextUlid()}`, accountId, reason, actor, atMs }
    if (amountNanos !== undefined && requestIds !== undefined) {
      return invalid('request_ids', 'request_ids and amount_usd cannot be used together. Send one of them.')
    }
    if (amountNanos !== undefined) return changeBalance({ ...command, amountNanos }, idempotency, management)
    if (requestIds !== undefined) return creditBack({ ...command, requestIds }, idempotency, management)
    return invalid('amount_usd', 'amount_usd or request_ids is required.')
  },
})

async function changeBalance(
  credit: NewCredit,
  idempotency: Idempotency | null,
  { store, recheckWaitingCalls }: Management,
): Promise<OwnReply> {
  const result = await store.addCredit(credit, idempotency)
  if (result.kind === 'too_much') {
    const message = `amount_usd is too large: all credit of an account together is at most ${formatUsd(CREDITED_MAX)} US dollars.`
    return invalid('amount_usd', message)
  }
  recheckWaitingCalls()
  return replyIdempotent(result, creditObject)
}

async function creditBack(
  command: CreditBack,
  idempotency: Idempotency | null,
  { store, recheckWaitingCalls, refusedCalls }: Management,
): Promise<OwnReply> {
  await refusedCalls.written()
  const result = await store.creditBack(command, idempotency)
  if (result.kind === 'nothing') return refuseCreditBack(result)
  recheckWaitingCalls()
  return replyIdempotent(result, (done) => ({ ...creditObject(done.entry), ...outcomesObject(done) }))
}

function refuseCreditBack(outcomes: CreditBackOutcomes): OwnReply {
  const isUnknown = ({ why }: CreditBackOutcomes['notCredited'][number]) => why === 'not_found'
  const isKnown = outcomes.alreadyCredited.length > 0 || !outcomes.notCredited.every(isUnknown)
  const [code, message] = isKnown
    ? ([
        'conflict',
        'There is nothing to credit back: each of these calls was credited before, cost nothing, has not ended, or is unknown.',
      ] as const)
    : ([
        'not_found',
        'The account has no call with such an id. Check the ids, or use the account of the calls. Calls of old months may have been removed (requests.keep_months).',
      ] as const)
  return { kind: 'refused', refusal: refuse(code, message, { details: outcomesObject(outcomes) }) }
}

function outcomesObject(outcomes: CreditBackOutcomes) {
  return {
    credited: outcomes.credited,
    already_credited: outcomes.alreadyCredited,
    not_credited: outcomes.notCredited.map(({ requestId, why }) => ({ request_id: requestId, reason: why })),
  }
}
