import type { SignInRule } from '../config/read-sign-in.ts'
import type { Clock } from '../kernel/clock.ts'
import { ConfigError } from '../kernel/errors.ts'
import type { Store } from '../store/store.ts'

/** Accounts that may contain the name; one of them must be equal to it. */
const SIMILAR_MAX = 1_000

/** Replaces names of accounts by ids. A rule with an unknown account is refused at the start, not at a sign-in. */
export async function resolveRules(
  rules: readonly SignInRule[],
  store: Pick<Store, 'hasAccount' | 'listAccounts'>,
  clock: Clock,
): Promise<readonly SignInRule[]> {
  const named = new Set(rules.flatMap(({ account }) => account ?? []))
  const ids = new Map<string, string>()
  const problems: string[] = []
  for (const name of named) {
    const found = await accountsNamed(name, store, clock)
    const [id] = found
    if (id !== undefined && found.length === 1) ids.set(name, id)
    else if (id === undefined)
      problems.push(`"sign_in.rules": there is no account "${name}": create it, or correct the rule`)
    else problems.push(`"sign_in.rules": several accounts are named "${name}": use the id of one of them`)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return rules.map((rule) => ({ ...rule, account: rule.account && ids.get(rule.account) }))
}

async function accountsNamed(
  name: string,
  store: Pick<Store, 'hasAccount' | 'listAccounts'>,
  clock: Clock,
): Promise<readonly string[]> {
  if (await store.hasAccount(name)) return [name]
  const page = { after: null, limit: SIMILAR_MAX, status: null, atMs: clock.nowMs() }
  const { rows } = await store.listAccounts({ ...page, search: name })
  return rows.filter((account) => account.name === name).map(({ id }) => id)
}
