import type { Command } from 'commander'
import { amountField, type FieldOption, type Listing, registerAll } from './api-command.ts'
import { CEILINGS } from './ceilings.ts'

const PATH = '/gateway/v1/people'
const PEOPLE: Listing = {
  noun: 'people',
  columns: {
    id: 'id',
    status: 'status',
    role: 'role',
    spent: 'month_spend_usd',
    'monthly budget': 'monthly_budget_usd',
    keys: 'keys',
    'last seen': 'last_seen_at',
    email: 'email',
  },
  dispensable: ['last seen', 'role'],
}

const FILTERS: readonly FieldOption[] = [
  ['--status <status>', 'status', 'active or blocked'],
  ['--search <text>', 'search', 'part of a name, email or id'],
]

const LIMITS: readonly FieldOption[] = [
  ...CEILINGS,
  ['--budget-mode <mode>', 'budget_mode', 'exact or settled, or `none`'],
]

const MEMBERS: readonly FieldOption[] = [
  ['--keys-max <n>', 'keys_max', 'maximum usable keys of a person', { read: amountField }],
  ['--key-days-max <n>', 'key_days_max', 'days after which a key expires', { read: amountField }],
  ...CEILINGS,
  ['--allow-model <model>', 'allowed_models', 'allowed model or pattern; repeat for more', { isList: true }],
  ['--all-models', 'allowed_models', 'allow every model', { read: () => null }],
  ['--log-requests', 'log_requests', 'log the bodies of calls'],
  ['--no-log-requests', 'log_requests', 'do not log bodies'],
  ['--apply <whom>', 'apply', '`all`: also the people who exist'],
]

const MOVE: readonly FieldOption[] = [
  ['--to <account>', 'account', 'the new account (id or name)', { isRequired: true }],
]

const help = '\n<person> is the id, the email address or the name of a person.'

const ROLL_OUT = ['tollgate people set-defaults --monthly-budget 50 --key-days-max 30']

/** People over HTTP. */
export function register(group: Command): void {
  registerAll(group, 'person', [
    ['list', 'list people, newest first', 'GET', PATH, { listing: PEOPLE, options: FILTERS }],
    ['show <person>', 'show a person, the limits and the spend', 'GET', `${PATH}/<person>`, { help }],
    [
      'update <person>',
      'change the limits of a person',
      'PATCH',
      `${PATH}/<person>`,
      { options: LIMITS, help },
    ],
    [
      'block <person>',
      'revoke all keys of a person and end all sessions',
      'POST',
      `${PATH}/<person>/block`,
      { help },
    ],
    ['unblock <person>', 'let a person sign in again', 'POST', `${PATH}/<person>/unblock`, { help }],
    [
      'move <person>',
      'move a person to another account',
      'POST',
      `${PATH}/<person>/move`,
      { options: MOVE, help },
    ],
  ])
  registerAll(group, 'members', [
    ['defaults', 'show what a new person gets', 'GET', '/gateway/v1/members'],
    [
      'set-defaults',
      'change what a new person gets',
      'PATCH',
      '/gateway/v1/members',
      { options: MEMBERS, examples: ROLL_OUT },
    ],
  ])
}
