import type { Command } from 'commander'
import { amountField, type FieldOption, type Listing, registerAll, yesOrNo } from './api-command.ts'
import type { ApiAnswer, CommandOptions, ObjectOf } from './client.ts'
import { namesakesOf } from './find-by-name.ts'
import { renderRecord } from './records.ts'
import { outputStyle, print, shownText } from './terminal.ts'

const DISCOUNT_HELP = 'fraction of the list price, such as 0.1; `none`: the discount of the installation'

const FIELDS: readonly FieldOption[] = [
  ['--monthly-budget <usd>', 'monthly_budget_usd', 'budget of each month, or `none`', { read: amountField }],
  ['--discount <fraction>', 'discount', DISCOUNT_HELP, { read: amountField }],
  [
    '--enforce-credit <yes|no>',
    'credit_enforced',
    'refuse calls once the credit is used up',
    { read: yesOrNo('--enforce-credit') },
  ],
  ['--force', 'force', 'enforce credit even if the balance is 0 or less'],
]

const PATH = '/gateway/v1/accounts'
const ACCOUNTS: Listing = {
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

const EDITED: readonly FieldOption[] = [['--name <name>', 'name', 'another name'], ...FIELDS]

const help = '\n<account> is the id or the name of an account.'
const CREATE = {
  options: FIELDS,
  once: true,
  examples: ['tollgate accounts create "Team Search" --monthly-budget 500'],
  show: printCreated,
} as const

/** Two accounts may have one name, but then commands need their ids. */
async function printCreated(
  { value }: ApiAnswer<ObjectOf<'account'>>,
  options: CommandOptions,
): Promise<void> {
  await print(renderRecord(value, outputStyle(options)))
  const [other] = await namesakesOf(value, options)
  if (other !== undefined)
    process.stderr.write(
      `tollgate: Account ${other.id} has the name "${shownText(value.name, 60)}" too. Name either by its id.\n`,
    )
}

/** Accounts over HTTP. An account's upstreams are set with the API, so that no key appears on a command line. */
export function register(group: Command): void {
  registerAll(group, 'account', [
    ['list', 'list accounts, newest first', 'GET', PATH, { listing: ACCOUNTS, options: FILTERS }],
    ['create <name>', 'create an account', 'POST', PATH, CREATE],
    ['show <account>', 'show an account', 'GET', `${PATH}/<account>`, { help }],
    ['update <account>', 'change an account', 'PATCH', `${PATH}/<account>`, { options: EDITED, help }],
    ['suspend <account>', 'refuse all calls of an account', 'POST', `${PATH}/<account>/suspend`, { help }],
    ['resume <account>', 'admit its calls again', 'POST', `${PATH}/<account>/resume`, { help }],
  ])
}
