import {
  amountField,
  defineApiCommand,
  idempotencyKey,
  onceKey,
  PAGE_OPTIONS,
  pageOf,
  printAnswer,
  printPage,
  printSecret,
  SHOW_OPTIONS,
  someFields,
} from './api.ts'
import { defineGroup, flag, option, UsageError, type Values } from './command.ts'
import { findKey, type KeyAnswer, keyAnswer, renderKey, shownKey, statusCell } from './key-answer.ts'
import {
  alignAmounts,
  left,
  outputStyle,
  renderTable,
  right,
  shownInstant,
  shownText,
  type TerminalStyle,
} from './terminal.ts'

const KEY_HELP = `Which key
  <key> is its id, its name, its beginning (svc_live_Ab3dE9f) or its last four characters. Where several keys are called
  that, nothing is done and they are listed.
`

/** The only argument of a command that is about one key. */
function onlyKey(args: readonly string[]): string {
  const [named, ...more] = args
  if (named === undefined || named === '' || more.length > 0)
    throw new UsageError('name one <key> by its id, its name, its beginning or its last four characters')
  return named
}

/** The options that say what a key may do. */
const LIMIT_OPTIONS = {
  name: option('<name>', 'what people call it'),
  'monthly-budget': option(
    '<usd>',
    'the most it may spend in a calendar month (UTC), such as 50 or 0.25; none for no cap',
    'monthly_budget_usd',
  ),
  'allow-model': {
    ...option(
      '<model>',
      'a model it may call, by its exact name; may be given several times',
      'allowed_models',
    ),
    multiple: true,
  },
  'all-models': flag('it may call every model'),
  'log-requests': flag('keep the bodies of its calls; --no-log-requests to keep none'),
  'no-log-requests': flag(''),
  'expires-at': option(
    '<instant>',
    'when it stops working, in UTC, such as 2030-01-31T00:00:00Z; never for no end',
  ),
} as const

/** The fields of the API, only for options that were given. The API checks the values. */
function limitFields(values: Values<typeof LIMIT_OPTIONS>): Record<string, unknown> {
  const { name, 'monthly-budget': budget, 'allow-model': models, 'expires-at': expires } = values
  const logs = values['log-requests']
  if (models !== undefined && values['all-models'])
    throw new UsageError('--allow-model and --all-models cannot be used together')
  if (logs && values['no-log-requests'])
    throw new UsageError('--log-requests and --no-log-requests cannot be used together')
  return {
    ...(name === undefined ? {} : { name }),
    ...(budget === undefined ? {} : { monthly_budget_usd: budget === 'none' ? null : amountField(budget) }),
    ...(models === undefined ? {} : { allowed_models: models }),
    ...(values['all-models'] ? { allowed_models: null } : {}),
    ...(logs || values['no-log-requests'] ? { log_requests: logs } : {}),
    ...(expires === undefined ? {} : { expires_at: expires === 'never' ? null : expires }),
  }
}

const NEW_KEY_OPTIONS = {
  'idempotency-key': idempotencyKey('repeating the command with the same text creates no second key'),
  json: flag("print the API's answer instead, with the key in it"),
}

const create = defineApiCommand({
  name: 'keys create',
  summary: ['--name <name>', 'create an API key and print it, once'],
  usage:
    'tollgate keys create --name <name> [--monthly-budget <usd>] [--allow-model <model> …] [--log-requests] ' +
    '[--expires-at <instant>] [--idempotency-key <text>] [--json]',
  about:
    'Creates an API key. The key is printed to standard output, once, and everything else to standard error.',
  options: { ...LIMIT_OPTIONS, ...NEW_KEY_OPTIONS },
  examples: [
    'KEY=$(tollgate keys create --name checkout --monthly-budget 50)',
    'tollgate keys create --name trial --allow-model claude-haiku-5-5 --expires-at 2030-01-31T00:00:00Z',
  ],
  run(values) {
    const body = limitFields(values)
    return async (api) => {
      const answer = await api.ask(keyAnswer, 'POST', '/v1/keys', { body, idempotencyKey: onceKey(values) })
      await printSecret(values, answer, (key) => newKey(key, 'Created'))
    }
  },
})

function newKey({ key, id, name }: KeyAnswer, what: string) {
  const which = `${id} (${shownText(name, 120)})`
  return {
    secret: key,
    said: `${what} ${which}. The key is shown this once`,
    saidBefore:
      `, and made ${which}. Its key was shown then and is not shown again. If nobody has it, revoke it with ` +
      `\`tollgate keys revoke ${id}\` and create another one under another --idempotency-key.`,
  }
}

const list = defineApiCommand({
  name: 'keys list',
  summary: ['', 'list the keys, newest first, with what they spent this month'],
  usage:
    'tollgate keys list [--status usable|revoked|expired] [--search <text>] [--limit <n>] [--after <id>] [--json] ' +
    '[--no-color]',
  about: 'Lists the API keys, newest first, with what each has spent this month (UTC), in USD.',
  options: {
    status: option('<status>', 'only keys in this state'),
    search: option(
      '<text>',
      'part of a name in any case, of an id, of the beginning or of the last four characters of a key',
    ),
    ...PAGE_OPTIONS,
  },
  examples: ['tollgate keys list --status usable', 'tollgate keys list --search svc_live_Ab3dE9f'],
  run(values) {
    const { status, search, limit, after } = values
    return async (api) => {
      const query = { status, search, limit, after }
      const answer = await api.ask(pageOf(keyAnswer), 'GET', '/v1/keys', { query })
      const empty = 'There is no such key. `tollgate keys create --name <name>` creates one.'
      await printPage(values, answer, keyTable, empty)
    }
  },
})

const COLUMNS = [
  left('id'),
  left('status'),
  left('key'),
  right('spent'),
  right('cap'),
  left('last used (UTC)'),
  left('name'),
]

function keyTable(keys: readonly KeyAnswer[], style: TerminalStyle): string {
  const spent = alignAmounts(keys.map((key) => key.month_spend_usd))
  const caps = alignAmounts(keys.map((key) => key.monthly_budget_usd ?? '0'))
  const rows = keys.map((key, at) => [
    shownText(key.id),
    statusCell(key),
    shownKey(key),
    spent[at] ?? '',
    key.monthly_budget_usd === null ? '-' : (caps[at] ?? ''),
    shownInstant(key.last_used_at),
    shownText(key.name, 40),
  ])
  return renderTable(COLUMNS, rows, style)
}

const show = defineApiCommand({
  name: 'keys show',
  summary: ['<key>', 'all there is to know of one'],
  usage: 'tollgate keys show <key> [--json] [--no-color]',
  about:
    'Shows an API key, its limits and what it has spent this month. The key itself is never shown again.',
  options: SHOW_OPTIONS,
  examples: [
    'tollgate keys show checkout',
    'tollgate keys show key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --json --url http://127.0.0.1:8787 --admin-key-file data/admin-key',
  ],
  sections: [KEY_HELP],
  takesArguments: true,
  run(values, args) {
    const named = onlyKey(args)
    return async (api) => {
      const answer = await api.ask(keyAnswer, 'GET', `/v1/keys/${await findKey(api, '<key>', named)}`)
      await printAnswer(values, answer, (key) => renderKey(key, outputStyle(values)))
    }
  },
})

const update = defineApiCommand({
  name: 'keys update',
  summary: ['<key>', 'change its name or its limits'],
  usage:
    'tollgate keys update <key> [--name <name>] [--monthly-budget <usd>|none] [--allow-model <model> … | --all-models] ' +
    '[--log-requests | --no-log-requests] [--expires-at <instant>|never] [--json] [--no-color]',
  about: `Changes what is named and leaves the rest. It counts from the next call on; what was spent stays spent. A list of
models takes the place of the one before. A revoked or expired key cannot be changed.`,
  options: { ...LIMIT_OPTIONS, ...SHOW_OPTIONS },
  examples: [
    'tollgate keys update key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --monthly-budget 200',
    'tollgate keys update key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --monthly-budget none --all-models --expires-at never',
  ],
  sections: [KEY_HELP],
  takesArguments: true,
  run(values, args) {
    const named = onlyKey(args)
    const body = someFields(limitFields(values), '--monthly-budget 200')
    return async (api) => {
      const id = await findKey(api, '<key>', named)
      const answer = await api.ask(keyAnswer, 'PATCH', `/v1/keys/${id}`, { body })
      await printAnswer(values, answer, (key) => renderKey(key, outputStyle(values)))
    }
  },
})

const revoke = defineApiCommand({
  name: 'keys revoke',
  summary: ['<key>', 'end it, at once and for good'],
  usage: 'tollgate keys revoke <key> [--json]',
  about: `Ends an API key, for good. When the command has returned, no call is admitted with it any more; streams that run
still finish. Repeating it does no harm. Its records and what it has spent stay.`,
  options: { json: flag("print the API's answer instead") },
  examples: ['tollgate keys revoke key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X', 'tollgate keys revoke svc_live_Ab3dE9f'],
  sections: [KEY_HELP],
  takesArguments: true,
  run(values, args) {
    const named = onlyKey(args)
    return async (api) => {
      const id = await findKey(api, '<key>', named)
      const answer = await api.ask(keyAnswer, 'POST', `/v1/keys/${id}/revoke`)
      await printAnswer(values, answer, ({ name }) => `Revoked ${id} (${shownText(name, 120)}).\n`)
    }
  },
})

const rotate = defineApiCommand({
  name: 'keys rotate',
  summary: ['<key>', 'create a key in its place, with the same limits'],
  usage: 'tollgate keys rotate <key> [--old-expires-in <time>] [--idempotency-key <text>] [--json]',
  about: `Creates a key with the name and the limits of another one and a month of its own. The new key is printed to standard
output, once, and everything else to standard error. The old one works on, unless it is given an end.`,
  options: {
    'old-expires-in': option(
      '<time>',
      'ends the old key after this time: seconds, or such as 90s, 15m, 24h, 7d',
      'old_expires_in_seconds',
    ),
    ...NEW_KEY_OPTIONS,
  },
  examples: [
    'KEY=$(tollgate keys rotate key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --old-expires-in 24h)',
    'tollgate keys rotate key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --json',
  ],
  sections: [KEY_HELP],
  takesArguments: true,
  run(values, args) {
    const named = onlyKey(args)
    const time = values['old-expires-in']
    const body = time === undefined ? {} : { old_expires_in_seconds: secondsOf(time) }
    return async (api) => {
      const id = await findKey(api, '<key>', named)
      const answer = await api.ask(keyAnswer, 'POST', `/v1/keys/${id}/rotate`, {
        body,
        idempotencyKey: onceKey(values),
      })
      const old = time === undefined ? 'which works on' : `which ends in ${time}`
      await printSecret(values, answer, (key) => newKey(key, `In the place of ${id}, ${old}, created`))
    }
  },
})

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const

function secondsOf(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,9})([smhd])?$/.exec(text) ?? []
  if (count === undefined)
    throw new UsageError('--old-expires-in must be seconds, or a time such as 90s, 15m, 24h or 7d')
  return Number(count) * SECONDS[unit as keyof typeof SECONDS]
}

/** Manages API keys, over HTTP or on the data directory. */
export const command = defineGroup(
  'keys',
  `A <key> is named by its id, its name, its beginning or its last four characters.
Each has options of its own: tollgate keys create --help, and so on.`,
  [create, list, show, update, revoke, rotate],
)
