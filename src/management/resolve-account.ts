import type { Caller } from '../keys/credential.ts'
import type { Parameters } from './read-request.ts'
import type { AccountRule } from './roles.ts'
import { invalid, type Management, type Refused, type Route, refused } from './route.ts'

/** The account that operators act in if they name none. It always exists. */
export const DEFAULT_ACCOUNT = 'default'

export interface AccountScope {
  readonly kind: 'scope'
  readonly accountId: string
  /** False if an operator named no account, and `accountId` is the default. */
  readonly isNamed: boolean
  readonly listedAccountId: string | null
  readonly parameters: Parameters
}

/** Decides which account a request acts in, by its route's rule. Ids are then looked up only in that account. */
export async function resolveAccount(
  { account: rule }: Route,
  caller: Caller,
  params: readonly string[],
  query: Parameters,
  management: Management,
): Promise<AccountScope | Refused> {
  const own = caller.accountId
  if (rule === 'none' || caller.kind === 'api_key') return scopeOf(own, query)
  const named = query.get('account')
  const parameters = new Map([...query].filter(([name]) => name !== 'account'))
  if (named === '*') return allAccounts(rule, own, parameters)
  if (own !== null) return named === undefined || named === own ? scopeOf(own, parameters) : MISSING_ACCOUNT
  if (named !== undefined)
    return (await management.store.hasAccount(named)) ? scopeOf(named, parameters) : MISSING_ACCOUNT
  const found = rule === 'of_id' ? await accountOf(params[0] ?? '', management) : null
  return scopeOf(found, parameters)
}

function scopeOf(found: string | null, parameters: Parameters): AccountScope {
  const accountId = found ?? DEFAULT_ACCOUNT
  return { kind: 'scope', accountId, isNamed: found !== null, listedAccountId: accountId, parameters }
}

function allAccounts(rule: AccountRule, own: string | null, parameters: Parameters): AccountScope | Refused {
  if (rule === 'many' && own === null) return { ...scopeOf(null, parameters), listedAccountId: null }
  const why = own === null ? 'This endpoint acts in one account' : 'This key acts in its own account'
  return invalid('account', `account must be the id of an account, not *. ${why}.`)
}

/** Null if no account has a record with this id. */
async function accountOf(
  id: string,
  { store, waitingCalls, refusedCalls }: Management,
): Promise<string | null> {
  const waiting = waitingCalls.find(id)
  if (waiting !== null) return waiting.accountId
  // The record of a refusal is written shortly after its answer.
  if (id.startsWith('req_')) await refusedCalls.written()
  return await store.findAccountOf(id)
}

export const MISSING_ACCOUNT = refused('not_found', 'There is no account with this id.')
