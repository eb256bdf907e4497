import type { Command } from 'commander'
import { type FieldOption, type Listing, registerAll } from './api-command.ts'
import { CEILINGS } from './ceilings.ts'
import type { ApiAnswer, CommandOptions, ObjectOf } from './client.ts'
import { Failure, UsageError } from './command.ts'
import { KEY_REQUESTS } from './requests.ts'
import { print, shownText } from './terminal.ts'

const KEYS: Listing = {
  noun: 'keys',
  columns: {
    id: 'id',
    status: 'status',
    prefix: 'prefix',
    last4: 'last4',
    spent: 'month_spend_usd',
    'monthly budget': 'monthly_budget_usd',
    'daily budget': 'daily_budget_usd',
    rpm: 'requests_per_minute',
    'last used': 'last_used_at',
    expires: 'expires_at',
    name: 'name',
  },
  dispensable: ['last used', 'prefix', 'rpm'],
}

const SEARCHED = 'part of a name, an id, a prefix or the last four characters, or metadata.team:web'

const FILTERS: readonly FieldOption[] = [
  ['--status <status>', 'status', 'only keys in this state: usable, revoked or expired'],
  ['--search <text>', 'search', SEARCHED],
]

const FIELDS: readonly FieldOption[] = [
  ['--name <name>', 'name', 'name of the key'],
  ...CEILINGS,
  ['--budget-mode <mode>', 'budget_mode', 'exact or settled, overrides budgets.mode, or `none`'],
  ['--expires-at <instant>', 'expires_at', 'expiry, such as 2030-01-31T00:00:00Z, or `never`'],
  ['--log-requests', 'log_requests', 'log the bodies of calls'],
  ['--no-log-requests', 'log_requests', 'do not log bodies'],
  [
    '--metadata <name=value>',
    'metadata',
    'such as team=web; repeat for more, or `none`',
    { isList: true, read: pairsOf },
  ],
  ['--allow-model <model>', 'allowed_models', 'allowed model or pattern; repeat for more', { isList: true }],
  ['--all-models', 'allowed_models', 'allow every model', { read: () => null }],
]

function pairsOf(metadata: readonly string[]): Record<string, string> {
  const pairs = metadata.map((pair) => {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError('--metadata must be a name and a value, such as team=web.')
    return [pair.slice(0, at), pair.slice(at + 1)] as const
  })
  return Object.fromEntries(pairs)
}

const EXPIRES_HELP = 'time until the old key expires, such as 90s, 15m, 24h or 7d (default: never)'

const ROTATION: readonly FieldOption[] = [
  ['--old-expires-in <time>', 'old_expires_in_seconds', EXPIRES_HELP, { read: secondsOf }],
]

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const

function secondsOf(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,9})([smhd])?$/.exec(text) ?? []
  if (count === undefined)
    throw new UsageError(
      '--old-expires-in must be a number of seconds, or a duration such as 90s, 15m, 24h or 7d.',
    )
  return Number(count) * SECONDS[unit as keyof typeof SECONDS]
}

const help =
  '\n<key> is the id, the name, the prefix (svc_live_Ab3dE9f) or the last four characters of a key.'

const CREATE = {
  options: FIELDS,
  once: true,
  examples: [
    'export TOLLGATE_KEY=$(tollgate keys create --name checkout --monthly-budget 50)',
    'tollgate keys create --name ci --daily-budget 5 --rpm 60 --metadata team=web',
  ],
  show: printSecret,
} as const

const LIST = {
  listing: KEYS,
  options: FILTERS,
  examples: ['tollgate keys list --status usable', 'tollgate keys list --search svc_live_Ab3d'],
}

const UPDATE = {
  options: FIELDS,
  help,
  examples: [
    'tollgate keys update checkout --monthly-budget 200',
    'tollgate keys update trial --expires-at never',
  ],
}

const REVOKE = {
  help: `${help} Running streams finish.`,
  examples: ['tollgate keys revoke svc_live_Ab3dE9f'],
  show: printRevoked,
}

const ROTATE = {
  options: ROTATION,
  once: true,
  help,
  examples: ['export TOLLGATE_KEY=$(tollgate keys rotate checkout --old-expires-in 24h)'],
  show: printSecret,
} as const

export function register(group: Command): void {
  registerAll(group, 'key', [
    ['create', 'create a key and print it once', 'POST', '/v1/keys', CREATE],
    ['list', 'list the keys, newest first', 'GET', '/v1/keys', LIST],
    ['show <key>', 'show a key, its limits and its spend', 'GET', '/v1/keys/<key>', { help }],
    ['update <key>', 'change the name or the limits of a key', 'PATCH', '/v1/keys/<key>', UPDATE],
    ['revoke <key>', 'revoke a key immediately and for good', 'POST', '/v1/keys/<key>/revoke', REVOKE],
    ['rotate <key>', 'create a new key on the same budget', 'POST', '/v1/keys/<key>/rotate', ROTATE],
    KEY_REQUESTS,
  ])
}

/** Prints only the secret to standard output, for `TOLLGATE_KEY=$(…)`. */
async function printSecret(
  { value }: ApiAnswer<ObjectOf<'key'>>,
  { oldExpiresIn }: CommandOptions,
): Promise<void> {
  const { key, id, name, rotated_from: old } = value
  if (key === undefined)
    throw new Failure(
      `An earlier run of this command created ${id}. Its secret is not shown again. If the secret is lost, run ` +
        `\`tollgate keys revoke ${id}\` and repeat the command with another --idempotency-key.`,
    )
  const until =
    typeof oldExpiresIn === 'string' ? `expires in ${oldExpiresIn.replace(/\d$/, '$& s')}` : 'stays usable'
  const remark = old === null ? '' : ` ${old} ${until}.`
  process.stderr.write(`Created ${id} (${shownText(name, 120)}).${remark} The key is shown only once:\n`)
  await print(`${key}\n`)
}

async function printRevoked({ value }: ApiAnswer<ObjectOf<'key'>>): Promise<void> {
  const { id, name } = value
  await print(`Revoked ${id} (${shownText(name, 120)}).\n`)
}
