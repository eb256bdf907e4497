import type { Command } from 'commander'
import type { Options } from './client.ts'
import { examples, UsageError } from './command.ts'
import {
  amountField,
  type FieldOption,
  fieldsOf,
  onceKey,
  printList,
  showAnswer,
  withConnection,
  withFields,
  withFilters,
  withOnce,
} from './records.ts'

const ACCOUNTS = {
  path: '/gateway/v1/accounts',
  noun: 'accounts',
  columns: {
    id: 'id',
    status: 'status',
    'spent (USD)': 'month_spend_usd',
    'monthly budget': 'monthly_budget_usd',
    balance: 'balance_usd',
    name: 'name',
  },
}

const FILTERS: readonly FieldOption[] = [
  ['--search <text>', 'search', 'part of a name or id'],
  ['--status <status>', 'status', 'active or suspended'],
]

const DISCOUNT_HELP = 'off the list price, such as 0.1; `none`: that of the installation'

const FIELDS: readonly FieldOption[] = [
  ['--monthly-budget <usd>', 'monthly_budget_usd', 'budget of each month, or `none`', amountField],
  ['--discount <fraction>', 'discount', DISCOUNT_HELP, amountField],
  ['--enforce-credit <yes|no>', 'credit_enforced', 'refuse calls once the credit is used up', yesOrNo],
  ['--force', 'force', 'enforce credit even if the balance is 0 or less'],
]

const EDITED: readonly FieldOption[] = [['--name <name>', 'name', 'another name'], ...FIELDS]

function yesOrNo(text: string): boolean {
  if (text !== 'yes' && text !== 'no') throw new UsageError('--enforce-credit must be yes or no.')
  return text === 'yes'
}

const pathOf = (id: string) => `${ACCOUNTS.path}/${encodeURIComponent(id)}`

/** Manages accounts over HTTP. An account's upstreams are set with the API, so that no key appears on a command line. */
export function register(group: Command): void {
  withFilters(group.command('list').description('list accounts, newest first'), FILTERS).action(
    (options: Options) => printList(ACCOUNTS, FILTERS, options),
  )
  withOnce(
    withFields(withConnection(group.command('create <name>').description('create an account')), FIELDS),
  )
    .addHelpText('after', examples('tollgate accounts create "Team Search" --monthly-budget 500'))
    .action((name: string, options: Options) => {
      const body = { name, ...fieldsOf(FIELDS, options) }
      return showAnswer(options, 'account', 'POST', ACCOUNTS.path, { body, idempotencyKey: onceKey(options) })
    })
  withConnection(group.command('show <id>').description('show an account')).action(
    (id: string, options: Options) => showAnswer(options, 'account', 'GET', pathOf(id)),
  )
  withFields(withConnection(group.command('update <id>').description('change an account')), EDITED).action(
    (id: string, options: Options) =>
      showAnswer(options, 'account', 'PATCH', pathOf(id), { body: fieldsOf(EDITED, options) }),
  )
  for (const [verb, summary] of [
    ['suspend', 'refuse all calls of an account'],
    ['resume', 'admit its calls again'],
  ] as const)
    withConnection(group.command(`${verb} <id>`).description(summary)).action(
      (id: string, options: Options) => showAnswer(options, 'account', 'POST', `${pathOf(id)}/${verb}`),
    )
}
