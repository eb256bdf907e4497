import { accountId, type FillContent } from '../fill-plan.ts'
import { type Group, type Plan, shortCount } from './group.ts'
import { admissionCase } from './keys.ts'
import { reportsCase } from './usage.ts'

const KEYS_EACH = 10

const contentOf = (accounts: number): FillContent => ({
  keys: accounts * KEYS_EACH,
  otherAccounts: accounts - 1,
  calls: 0,
  allUsedToday: true,
})

/** Reports that an operator asks for: the list of accounts, the keys and the usage of one account. */
function reportsOn(accounts: number): string[] {
  const account = accountId(Math.floor(accounts / 2))
  const today = new Date().toISOString().slice(0, 10)
  const usage = `/v1/usage?start=${today}&end=${today}&account=${account}`
  return [
    '/gateway/v1/accounts?limit=20',
    `/gateway/v1/accounts/${account}`,
    `/v1/keys?limit=20&account=${account}`,
    usage,
    `${usage}&group_by=key`,
    `/gateway/v1/requests?limit=20&account=${account}`,
  ]
}

/** Whether admission and reports get slower with the number of accounts. */
export function accountsGroup(plan: Plan): Group {
  return {
    title: `Admission and reports with ${plan.sizes.accounts.map(shortCount).join(' and ')} accounts`,
    cases: plan.sizes.accounts.flatMap((accounts) =>
      plan.tollgates.flatMap((parts) => {
        const [name, content] = [`accounts-${shortCount(accounts)}`, contentOf(accounts)]
        return [
          admissionCase(plan, parts, `${name}-admission`, content, KEYS_EACH),
          reportsCase(plan, parts, `${name}-reports`, content, reportsOn(accounts)),
        ]
      }),
    ),
  }
}
