import type { Command } from 'commander'
import type { Account } from '../api/account.ts'
import {
  amountField,
  connect,
  type Exact,
  onceKey,
  type PageOptions,
  printList,
  type ShownOptions,
  withJson,
  withPages,
} from './client.ts'
import { examples, Failure, UsageError } from './command.ts'
import { type Field, print, printData, renderLines, shownInstant, shownText } from './terminal.ts'

const PATH = '/gateway/v1/accounts'

interface EditOptions extends ShownOptions {
  readonly name?: string
  readonly monthlyBudget?: string
  readonly discount?: string
  readonly enforceCredit?: string
  readonly force?: true
  readonly idempotencyKey?: string
}

const FIELDS: readonly Field<Exact<Account>>[] = [
  { title: 'id', of: ({ id }) => shownText(id) },
  { title: 'status', of: ({ status }) => shownText(status) },
  { title: 'spent (USD)', of: ({ month_spend_usd }) => month_spend_usd, kind: 'amount' },
  { title: 'monthly budget', of: ({ monthly_budget_usd }) => monthly_budget_usd, kind: 'amount' },
  { title: 'balance', of: ({ balance_usd }) => balance_usd, kind: 'amount' },
  { title: 'name', of: ({ name }) => shownText(name, 60) },
]

/** Manages accounts over HTTP. An account's upstreams are set with the API, so that no key appears on a command line. */
export function register(group: Command): void {
  const withFields = (command: Command) =>
    withJson(command)
      .option('--monthly-budget <usd>', 'budget of each month, or `none`')
      .option('--discount <fraction>', 'off the list price, such as 0.1; `none`: that of the installation')
      .option('--enforce-credit <yes|no>', 'refuse calls once the credit is used up')
      .option('--force', 'enforce credit even if the balance is 0 or less')
  withPages(group.command('list').description('list accounts, newest first'))
    .option('--search <text>', 'part of a name or id')
    .option('--status <status>', 'active or suspended')
    .action(async (options: PageOptions & { search?: string; status?: string }) => {
      const { search, status } = options
      await printList(options, PATH, { search, status }, FIELDS, { noun: 'accounts' })
    })
  withFields(group.command('create <name>').description('create an account'))
    .option('--idempotency-key <text>', 'repeating the command with the same text creates nothing more')
    .addHelpText('after', examples('tollgate accounts create "Team Search" --monthly-budget 500'))
    .action((name: string, options: EditOptions) =>
      show('POST', PATH, options, { body: { ...fieldsOf(options), name }, idempotencyKey: onceKey(options) }),
    )
  withJson(group.command('show <id>').description('show an account')).action(
    (id: string, options: EditOptions) => show('GET', pathOf(id), options),
  )
  withFields(group.command('update <id>').description('change an account'))
    .option('--name <name>', 'another name')
    .action((id: string, options: EditOptions) =>
      show('PATCH', pathOf(id), options, { body: fieldsOf(options) }),
    )
  for (const [verb, summary] of [
    ['suspend', 'refuse all calls of an account'],
    ['resume', 'admit its calls again'],
  ] as const)
    withJson(group.command(`${verb} <id>`).description(summary)).action((id: string, options: EditOptions) =>
      show('POST', `${pathOf(id)}/${verb}`, options),
    )
}

const pathOf = (id: string) => `${PATH}/${encodeURIComponent(id)}`

function fieldsOf({ name, monthlyBudget, discount, enforceCredit, force }: EditOptions) {
  if (enforceCredit !== undefined && enforceCredit !== 'yes' && enforceCredit !== 'no')
    throw new UsageError('--enforce-credit must be yes or no.')
  const amount = (text: string | undefined) => (text === 'none' ? null : text && amountField(text))
  // JSON omits undefined members.
  return {
    name,
    monthly_budget_usd: amount(monthlyBudget),
    discount: amount(discount),
    credit_enforced: enforceCredit && enforceCredit === 'yes',
    force,
  }
}

async function show(
  method: 'GET' | 'POST' | 'PATCH',
  path: string,
  options: EditOptions,
  ask: { readonly body?: object; readonly idempotencyKey?: string } = {},
): Promise<void> {
  const client = connect(options, process.env)
  const { value: account, text } = await client
    .ask<Exact<Account>>('account', method, path, ask)
    .catch((error: Error) => {
      if (!(error instanceof Failure)) throw error
      if (error.code === 'not_found')
        throw new Failure(`${error.message} List accounts with \`tollgate accounts list\`.`, error.code)
      if (error.code !== 'balance_not_positive') throw error
      throw new Failure(error.message.replace(/,? or send "force": true\./, ', or add --force.'))
    })
  if (options.json) return await printData([`${text}\n`])
  const cap = account.monthly_budget_usd
  await print(
    renderLines([
      ['id', account.id],
      ['name', account.name],
      ['status', account.status],
      ['monthly budget', cap === null ? 'none' : `${cap} USD`],
      ['this month', `${account.month_spend_usd} USD spent, ${account.month_held_usd} USD reserved`],
      ['balance', `${account.balance_usd} USD${account.credit_enforced ? ', enforced' : ''}`],
      ['discount', account.discount ?? 'that of the installation'],
      ['created', `${shownInstant(account.created_at)} UTC`],
    ]),
  )
}
