import {
  type AccountEditFields,
  accountEditFields,
  accountListQuery,
  newAccountFields,
} from '../api/account.ts'
import { accountObject } from '../api/objects.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import { type AccountStatus, type OwnUpstream, SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import type { AccountChanges, AccountRecord } from '../ledger/account.ts'
import {
  defineRoute,
  invalid,
  type Management,
  type OwnRequest,
  pageObject,
  type Refused,
  refused,
  replyIdempotent,
  usd,
  withoutUndefined,
} from './route.ts'

function accountChanges(
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
    ...withoutUndefined({
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

type GivenUpstream = NonNullable<NonNullable<AccountEditFields['upstreams']>[Surface]>

const urlOf = ({ url }: GivenUpstream, surface: Surface, { upstreamKeys }: Management): string =>
  url === undefined ? upstreamKeys.urlOf(surface) : new URL(url).href.replace(/\/$/, '')

function ownUpstream(
  given: GivenUpstream,
  accountId: string,
  surface: Surface,
  before: OwnUpstream | null,
  management: Management,
): OwnUpstream {
  const url = urlOf(given, surface, management)
  const { key } = given
  if (key === undefined) return { url, sealedKey: before?.sealedKey ?? null }
  return { url, sealedKey: key && management.upstreamKeys.seal(key, accountId, surface, url) }
}

/** A key is bound to its URL. A new URL without the key would silently drop it. */
function refusedUpstreams(
  { upstreams = {} }: AccountEditFields,
  before: AccountRecord,
  management: Management,
): Refused | null {
  for (const surface of SURFACE_NAMES) {
    const [given, known] = [upstreams[surface] ?? null, before.upstreams[surface]]
    if (given === null || given.key !== undefined || known === null) continue
    if (urlOf(given, surface, management) !== known.url)
      return invalid(
        'upstreams',
        `upstreams.${surface} has another URL (${known.url}), so the key is needed again. Send url and key together, or "key": null if the new URL takes no credential.`,
      )
  }
  return null
}

function refusedNotPositive(balanceNanos: Nanos): Refused {
  const message = `The balance is ${formatUsd(balanceNanos)} USD, so every call would be refused. Add credit first, or set force to true.`
  return refused('balance_not_positive', message, 'credit_enforced')
}

export const createAccount = defineRoute({
  summary: 'Create an account',
  body: newAccountFields,
  repeatable: true,
  status: 201,
  async handle({ body, actor, idempotency, atMs }, management) {
    const id = `acct_${management.nextUlid()}`
    const account = { ...accountChanges(body, id, null, management), id, name: body.name, createdAtMs: atMs }
    const result = await management.store.createAccount(account, actor, idempotency)
    if (result.kind === 'balance_not_positive') return refusedNotPositive(result.balanceNanos)
    if (body.upstreams !== undefined) await management.upstreamKeys.changed()
    return replyIdempotent(result, (created) => accountObject(created, atMs))
  },
})

export const listAccounts = defineRoute({
  summary: 'List accounts, newest first',
  query: accountListQuery,
  async handle({ query: { status = null, search = null, after = null, limit }, atMs }, { store }) {
    const page = await store.listAccounts({ status, search, after, limit, atMs })
    const { spentNanos, heldNanos, balanceNanos } = page.total
    const total = {
      month_spend_usd: usd(spentNanos),
      month_held_usd: usd(heldNanos),
      balance_usd: usd(balanceNanos),
    }
    return { ...pageObject(page, (account) => accountObject(account, atMs)), total }
  },
})

export const showAccount = defineRoute({
  summary: 'Show an account',
  async handle({ id, atMs }, { store }) {
    const account = await store.getAccount(id, atMs)
    return account && accountObject(account, atMs)
  },
})

/** Leaves out upstreams and metadata, which only operators may see. */
export const getOwnAccount = defineRoute({
  summary: 'Show the account of the key: spend, budget and credit',
  async handle({ accountId, atMs }, { store }) {
    const account = await store.getAccount(accountId, atMs)
    if (account === null) return null
    const { upstreams: _, metadata: _of, ...own } = accountObject(account, atMs)
    return own
  },
})

export const updateAccount = defineRoute({
  summary: 'Change an account',
  description:
    'While `credit_enforced` is true, calls are admitted only while credit is left. Turning it on with a balance of 0 or ' +
    'less would refuse every call, and is 409 `balance_not_positive` without `force`. A discount applies to calls admitted ' +
    'after the change.',
  body: accountEditFields,
  async handle({ id, body, actor, atMs }, management) {
    const { store, recheckWaitingCalls } = management
    const before = await store.getAccount(id, atMs)
    if (before === null) return null
    const wrong = refusedUpstreams(body, before, management)
    if (wrong !== null) return wrong
    const edit = await store.updateAccount(id, accountChanges(body, id, before, management), actor, atMs)
    if (edit.kind === 'none') return null
    if (edit.kind === 'balance_not_positive') return refusedNotPositive(edit.balanceNanos)
    recheckWaitingCalls()
    if (body.upstreams !== undefined) await management.upstreamKeys.changed()
    return accountObject(edit.account, atMs)
  },
})

function setStatus(status: AccountStatus) {
  return async ({ id, actor, atMs }: OwnRequest, { store, recheckWaitingCalls }: Management) => {
    const edit = await store.updateAccount(id, { status }, actor, atMs)
    if (edit.kind !== 'done') return null
    recheckWaitingCalls()
    return accountObject(edit.account, atMs)
  }
}

export const suspendAccount = defineRoute({
  summary: 'Suspend an account',
  description: 'New calls with its keys get 403 `account_suspended`. Running calls finish.',
  handle: setStatus('suspended'),
})

export const resumeAccount = defineRoute({
  summary: 'Resume an account',
  description: 'Calls with its keys are admitted again.',
  handle: setStatus('active'),
})
