import type { Command } from 'commander'
import type { Account } from '../api/account.ts'
import {
  type ApiList,
  amountField,
  type ConnectionOptions,
  connect,
  type Exact,
  onceKey,
  withConnection,
} from './client.ts'
import { examples, UsageError } from './command.ts'
import {
  left,
  outputStyle,
  print,
  printData,
  renderTable,
  right,
  shownInstant,
  shownText,
} from './terminal.ts'

const PATH = '/gateway/v1/accounts'

interface EditOptions extends ConnectionOptions {
  readonly name?: string
  readonly monthlyBudget?: string
  readonly discount?: string
  readonly enforceCredit?: string
  readonly force?: true
  readonly idempotencyKey?: string
  readonly json?: true
}

/** Manages accounts over HTTP. Upstreams of an account are set with the API, so that no key is on a command line. */
export function register(group: Command): void {
  const withFields = (command: Command) =>
    withConnection(command)
      .option('--monthly-budget <usd>', 'the ceiling of each month; none removes it')
      .option('--discount <fraction>', 'off the list price, such as 0.1; none: that of the installation')
      .option('--enforce-credit <yes|no>', 'refuse calls once the credit is used up')
      .option('--force', 'enforce credit though the balance is 0 or less')
      .option('--json', "print the API's answer")
  withConnection(group.command('list').description('list accounts, newest first'))
    .option('--search <text>', 'part of a name or id')
    .option('--status <status>', 'active or suspended')
    .option('--limit <n>', 'at most this many, 1 to 1000 (100)')
    .option('--after <id>', 'the next page')
    .option('--json', "print the API's answer")
    .option('--no-color', 'no colour on a terminal')
    .action(listAccounts)
  withFields(group.command('create <name>').description('create an account'))
    .option('--idempotency-key <text>', 'repeating the command with the same text creates nothing more')
    .addHelpText('after', examples('tollgate accounts create "Team Search" --monthly-budget 500'))
    .action((name: string, options: EditOptions) =>
      change('POST', PATH, options, { name, ...fieldsOf(options) }, onceKey(options)),
    )
  withConnection(group.command('show <id>').description('show an account'))
    .option('--json', "print the API's answer")
    .action(async (id: string, options: EditOptions) => {
      const { value, text } = await connect(options, process.env).get<Exact<Account>>('account', pathOf(id))
      await show(value, text, options)
    })
  withFields(group.command('update <id>').description('change an account'))
    .option('--name <name>', 'another name')
    .action((id: string, options: EditOptions) => change('PATCH', pathOf(id), options, fieldsOf(options)))
  for (const verb of ['suspend', 'resume'] as const)
    withConnection(
      group
        .command(`${verb} <id>`)
        .description(verb === 'suspend' ? 'refuse all calls of an account' : 'admit its calls again'),
    )
      .option('--json', "print the API's answer")
      .action((id: string, options: EditOptions) => change('POST', `${pathOf(id)}/${verb}`, options))
}

const pathOf = (id: string) => `${PATH}/${encodeURIComponent(id)}`

function fieldsOf({ name, monthlyBudget, discount, enforceCredit, force }: EditOptions) {
  if (enforceCredit !== undefined && enforceCredit !== 'yes' && enforceCredit !== 'no')
    throw new UsageError('--enforce-credit must be yes or no.')
  const amount = (text: string) => (text === 'none' ? null : amountField(text))
  return {
    ...(name === undefined ? {} : { name }),
    ...(monthlyBudget === undefined ? {} : { monthly_budget_usd: amount(monthlyBudget) }),
    ...(discount === undefined ? {} : { discount: amount(discount) }),
    ...(enforceCredit === undefined ? {} : { credit_enforced: enforceCredit === 'yes' }),
    ...(force === undefined ? {} : { force }),
  }
}

async function change(
  method: 'POST' | 'PATCH',
  path: string,
  options: EditOptions,
  body?: object,
  idempotencyKey?: string,
): Promise<void> {
  const client = connect(options, process.env)
  const { value, text } = await client.ask<Exact<Account>>('account', method, path, {
    ...(body === undefined ? {} : { body }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  })
  await show(value, text, options)
}

async function show(account: Exact<Account>, text: string, { json }: EditOptions): Promise<void> {
  if (json) return await printData([`${text}\n`])
  const budget = account.monthly_budget_usd === null ? 'none' : `${account.monthly_budget_usd} USD a month`
  const rows = [
    ['id', account.id],
    ['name', account.name],
    ['status', account.status],
    ['budget', budget],
    ['spent', `${account.month_spend_usd} USD this month`],
    ['balance', `${account.balance_usd} USD${account.credit_enforced ? ', enforced' : ''}`],
    ['discount', account.discount ?? 'that of the installation'],
    ['created', shownInstant(account.created_at)],
  ] as const
  await print(rows.map(([name, value]) => `${name.padEnd(9)} ${shownText(String(value))}\n`).join(''))
}

interface ListOptions extends ConnectionOptions {
  readonly search?: string
  readonly status?: string
  readonly limit?: string
  readonly after?: string
  readonly json?: true
  readonly color: boolean
}

async function listAccounts(options: ListOptions): Promise<void> {
  const { search, status, limit, after, json } = options
  const client = connect(options, process.env)
  const query = { search, status, limit, after }
  const { value, text } = await client.get<ApiList<Exact<Account>>>('list', PATH, query)
  if (json) return await printData([`${text}\n`])
  const rows = value.data.map((account) => [
    shownText(account.id),
    shownText(account.status),
    shownText(account.month_spend_usd),
    shownText(account.monthly_budget_usd ?? ''),
    shownText(account.balance_usd),
    shownText(account.name, 60),
  ])
  const columns = [
    left('id'),
    left('status'),
    right('spent (USD)'),
    right('budget'),
    right('balance'),
    left('name'),
  ]
  await print(renderTable(columns, rows, outputStyle(options)))
  if (value.has_more) process.stderr.write(`There are more accounts: add --after ${value.next}.\n`)
}
