import {
  type AccountEditFields,
  accountEditFields,
  accountListQuery,
  accountListSchema,
  accountSchema,
  newAccountFields,
  ownAccountSchema,
} from '../api/account.ts'
import { accountObject } from '../api/objects.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import { type OwnUpstream, SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import type { AccountChanges, AccountRecord } from '../ledger/account.ts'
import { refusedMissingAccount } from './resolve-account.ts'
import {
  defineRoute,
  type Management,
  type OwnReply,
  type Refused,
  refused,
  refusedOtherCommand,
  replyJson,
  replyOnce,
  replyPage,
  sent,
  usd,
} from './route.ts'

/** `before` is null for a new account. */
function changesOf(
  fields: AccountEditFields,
  id: string,
  before: AccountRecord | null,
  management: Management,
): AccountChanges {
  const { name, monthly_budget_usd, credit_enforced, force, discount, metadata, upstreams = {} } = fields
  const own = SURFACE_NAMES.flatMap((surface) => {
    const given = upstreams[surface]
    if (given === undefined) return []
    const known = before?.upstreams[surface] ?? null
    return [[surface, given === null ? null : ownUpstream(given, id, surface, known, management)]]
  })
  return {
    ...sent({
      name,
      monthlyBudgetNanos: monthly_budget_usd,
      creditEnforced: credit_enforced,
      force,
      metadata,
    }),
    ...(discount === undefined ? {} : { discountBillionths: discount === null ? null : Number(discount) }),
    upstreams: Object.fromEntries(own),
  }
}

/** The key is bound to its URL: a new URL needs the key again. */
function ownUpstream(
  { url: given, key }: { readonly url?: string | undefined; readonly key?: string | undefined },
  accountId: string,
  surface: Surface,
  before: OwnUpstream | null,
  { upstreamKeys }: Management,
): OwnUpstream {
  const url = given === undefined ? upstreamKeys.urlOf(surface) : new URL(given).href.replace(/\/$/, '')
  if (key !== undefined) return { url, sealedKey: upstreamKeys.seal(key, accountId, surface, url) }
  return { url, sealedKey: url === before?.url ? before.sealedKey : null }
}

function refusedNotPositive(balanceNanos: Nanos): Refused {
  const message = `The balance is ${formatUsd(balanceNanos)} USD, so every call would be refused. Add credit first, or force it.`
  return refused('balance_not_positive', message, 'credit_enforced')
}

const createAccount = defineRoute({
  endpoint: 'POST /gateway/v1/accounts',
  operationId: 'create_account',
  summary: 'Create an account',
  body: newAccountFields,
  repeatable: true,
  status: 201,
  answer: accountSchema,
  async handle({ body, actor, idempotency }, management) {
    const { store, clock, nextUlid } = management
    const id = `acct_${nextUlid()}`
    const createdAtMs = clock.nowMs()
    const account = { ...changesOf(body, id, null, management), id, name: body.name, createdAtMs }
    const result = await store.createAccount(account, actor, idempotency)
    if (result.kind === 'conflict') return refusedOtherCommand()
    if (result.kind === 'balance_not_positive') return refusedNotPositive(result.balanceNanos)
    if (body.upstreams !== undefined) await management.upstreamKeys.changed()
    return replyOnce(result, accountObject(result.value, createdAtMs))
  },
})

const listAccounts = defineRoute({
  endpoint: 'GET /gateway/v1/accounts',
  operationId: 'list_accounts',
  summary: 'List accounts, newest first',
  query: accountListQuery,
  answer: accountListSchema,
  async handle({ query: { status = null, search = null, after = null, limit } }, { store, clock }) {
    const atMs = clock.nowMs()
    const page = await store.listAccounts({ status, search, after, limit, atMs })
    const { spentNanos, heldNanos, balanceNanos } = page.total
    return replyPage(page, (account) => accountObject(account, atMs), {
      total: {
        month_spend_usd: usd(spentNanos),
        month_held_usd: usd(heldNanos),
        balance_usd: usd(balanceNanos),
      },
    })
  },
})

const getAccount = defineRoute({
  endpoint: 'GET /gateway/v1/accounts/{id}',
  operationId: 'get_account',
  summary: 'Show an account',
  answer: accountSchema,
  async handle({ params: [id = ''] }, { store, clock }) {
    const atMs = clock.nowMs()
    const account = await store.getAccount(id, atMs)
    return account === null ? refusedMissingAccount() : replyJson(200, accountObject(account, atMs))
  },
})

/** Upstreams and metadata are for operators only. */
const getOwnAccount = defineRoute({
  endpoint: 'GET /gateway/v1/accounts/self',
  operationId: 'get_own_account',
  summary: 'Show the account of the key: spend, budget and credit',
  answer: ownAccountSchema,
  async handle({ accountId }, { store, clock }) {
    const atMs = clock.nowMs()
    const account = await store.getAccount(accountId, atMs)
    if (account === null) return refusedMissingAccount()
    const { upstreams: _, metadata: _of, ...own } = accountObject(account, atMs)
    return replyJson(200, own)
  },
})

const updateAccount = defineRoute({
  endpoint: 'PATCH /gateway/v1/accounts/{id}',
  operationId: 'update_account',
  summary: 'Change an account',
  description:
    'While `credit_enforced` is true, calls are admitted only while credit is left. Turning it on with a balance of 0 or ' +
    'less would refuse every call, and is 409 `balance_not_positive` without `force`. A discount applies to calls admitted ' +
    'after the change.',
  body: accountEditFields,
  answer: accountSchema,
  async handle({ params: [id = ''], body, actor }, management) {
    const { store, clock, limitsMoved } = management
    const atMs = clock.nowMs()
    const before = await store.getAccount(id, atMs)
    if (before === null) return refusedMissingAccount()
    const edit = await store.updateAccount(id, changesOf(body, id, before, management), actor, atMs)
    if (edit.kind === 'none') return refusedMissingAccount()
    if (edit.kind === 'balance_not_positive') return refusedNotPositive(edit.balanceNanos)
    limitsMoved()
    if (body.upstreams !== undefined) await management.upstreamKeys.changed()
    return replyJson(200, accountObject(edit.account, atMs))
  },
})

const SUSPENDED = 'Its calls are 403 `account_suspended` from now on; running calls finish.'

const setStatus = (status: 'active' | 'suspended', verb: 'suspend' | 'resume') =>
  defineRoute({
    endpoint: `POST /gateway/v1/accounts/{id}/${verb}`,
    operationId: `${verb}_account`,
    summary: verb === 'suspend' ? 'Suspend an account' : 'Resume an account',
    description: verb === 'suspend' ? SUSPENDED : 'Its calls are admitted again.',
    answer: accountSchema,
    async handle({ params: [id = ''], actor }, { store, clock, limitsMoved }): Promise<OwnReply> {
      const atMs = clock.nowMs()
      const account = await store.setAccountStatus(id, status, actor, atMs)
      if (account === null) return refusedMissingAccount()
      limitsMoved()
      return replyJson(200, accountObject(account, atMs))
    },
  })

export const accountRoutes = [
  createAccount,
  listAccounts,
  getOwnAccount,
  getAccount,
  updateAccount,
  setStatus('suspended', 'suspend'),
  setStatus('active', 'resume'),
]
