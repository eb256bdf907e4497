import type { Command } from 'commander'
import { KEY_OPTIONS } from '../keys/key-store.ts'
import { type ApiAnswer, connect, type Options } from './client.ts'
import { collect, examples, Failure, UsageError } from './command.ts'
import { findKey, type KeyRecord } from './find-key.ts'
import {
  amountField,
  type FieldOption,
  fieldsOf,
  type Listing,
  onceKey,
  printList,
  printRecord,
  withConnection,
  withFields,
  withFilters,
  withOnce,
} from './records.ts'
import { printRequests, withRequestFilters } from './requests.ts'
import { print, printData, shownText } from './terminal.ts'

const KEYS: Listing = {
  path: '/v1/keys',
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
  ['--name <name>', 'name', 'its name'],
  ...KEY_OPTIONS.map(([option, field, help, kind]): FieldOption => {
    const read = kind === 'number' ? amountField : (text: string) => text
    return [option, field, `${help}, or \`none\``, read]
  }),
  ['--expires-at <instant>', 'expires_at', 'when it stops working, such as 2030-01-31T00:00:00Z, or `never`'],
  ['--log-requests', 'log_requests', 'log the bodies of its calls'],
  ['--no-log-requests', 'log_requests', 'log no bodies'],
]

const WHICH =
  '\nA <key> is named by its id, its name, its prefix (svc_live_Ab3dE9f) or its last four characters.'

/** Manages API keys over HTTP. */
export function register(group: Command): void {
  withOnce(withLimits(group.command('create').description('create a key and print it, once')))
    .addHelpText(
      'after',
      examples(
        'KEY=$(tollgate keys create --name checkout --monthly-budget 50)',
        'tollgate keys create --name ci --daily-budget 5 --rpm 60 --metadata team=web',
      ),
    )
    .action(createKey)
  withFilters(group.command('list').description('list the keys, newest first'), FILTERS)
    .addHelpText(
      'after',
      examples('tollgate keys list --status usable', 'tollgate keys list --search svc_live_Ab3d'),
    )
    .action((options: Options) => printList(KEYS, FILTERS, options))
  withConnection(group.command('show <key>').description('show a key, its limits and its spend'))
    .addHelpText('after', WHICH + examples('tollgate keys show checkout'))
    .action(async (named: string, options: Options) =>
      printRecord(await sendForKey(named, options, 'GET', ''), options),
    )
  withLimits(group.command('update <key>').description('change the name or the limits of a key'))
    .addHelpText(
      'after',
      WHICH +
        examples(
          'tollgate keys update checkout --monthly-budget 200',
          'tollgate keys update trial --expires-at never',
        ),
    )
    .action(updateKey)
  withConnection(group.command('revoke <key>').description('revoke a key, at once and for good'))
    .addHelpText(
      'after',
      `${WHICH} Running streams finish.${examples('tollgate keys revoke svc_live_Ab3dE9f')}`,
    )
    .action(revokeKey)
  withOnce(withConnection(group.command('rotate <key>').description('create a new key on the same budget')))
    .option(
      '--old-expires-in <time>',
      'when the old key stops working: seconds, or 90s, 15m, 24h, 7d (never)',
    )
    .addHelpText('after', WHICH + examples('KEY=$(tollgate keys rotate checkout --old-expires-in 24h)'))
    .action(rotateKey)
  withRequestFilters(group.command('requests <key>').description('list or export the calls of a key'))
    .addHelpText('after', WHICH + examples('tollgate keys requests checkout --format csv > calls.csv'))
    .action((key: string, options: Options) => printRequests({ ...options, key }))
}

interface LimitOptions extends Options {
  readonly allowModel?: readonly string[]
  readonly allModels?: true
  readonly metadata?: readonly string[]
}

function withLimits(command: Command): Command {
  return withFields(withConnection(command), FIELDS)
    .option('--metadata <name=value>', 'a pair of its metadata; repeat for more, or `none`', collect)
    .option('--allow-model <model>', 'a model it may call; repeat for more', collect)
    .option('--all-models', 'it may call every model')
}

/** The fields of the API for the options that were given. */
function limitFields(options: LimitOptions): Record<string, unknown> {
  const { allowModel, allModels, metadata } = options
  if (allowModel !== undefined && allModels)
    throw new UsageError('--allow-model and --all-models cannot be used together.')
  return {
    ...fieldsOf(FIELDS, options),
    ...(metadata === undefined ? {} : { metadata: pairsOf(metadata) }),
    ...(allowModel === undefined ? {} : { allowed_models: allowModel }),
    ...(allModels ? { allowed_models: null } : {}),
  }
}

function pairsOf(metadata: readonly string[]): Record<string, string> | null {
  if (metadata.length === 1 && metadata[0] === 'none') return null
  const pairs = metadata.map((pair) => {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError('--metadata must be a name and a value, such as team=web.')
    return [pair.slice(0, at), pair.slice(at + 1)] as const
  })
  return Object.fromEntries(pairs)
}

/** Sends a request about a key that is named in any way. */
async function sendForKey(
  named: string,
  options: Options,
  method: 'GET' | 'POST' | 'PATCH',
  verb: string,
  ask: { readonly body?: object; readonly idempotencyKey?: string } = {},
): Promise<ApiAnswer<KeyRecord>> {
  const client = connect(options)
  return await client.ask('key', method, `${KEYS.path}/${await findKey(client, named)}${verb}`, ask)
}

async function createKey(options: LimitOptions): Promise<void> {
  const ask = { body: limitFields(options), idempotencyKey: onceKey(options) }
  await printSecret(await connect(options).ask<KeyRecord>('key', 'POST', KEYS.path, ask), options, '')
}

async function rotateKey(named: string, options: Options): Promise<void> {
  const { oldExpiresIn: given } = options
  const body = typeof given === 'string' ? { old_expires_in_seconds: secondsOf(given) } : {}
  const answer = await sendForKey(named, options, 'POST', '/rotate', {
    body,
    idempotencyKey: onceKey(options),
  })
  const until = given === undefined ? 'stays usable' : `expires in ${given}`
  await printSecret(answer, options, ` ${answer.value.rotated_from} ${until}.`)
}

/** Prints only the secret to standard output, for `KEY=$(…)`. */
async function printSecret(
  { value: { key, id, name }, text }: ApiAnswer<KeyRecord>,
  { json }: Options,
  remark: string,
): Promise<void> {
  if (json) return await printData([`${text}\n`])
  if (key === undefined)
    throw new Failure(
      `This command ran before and created ${id}; its secret is not shown again. If it is lost, run ` +
        `\`tollgate keys revoke ${id}\` and repeat the command with another --idempotency-key.`,
    )
  process.stderr.write(`Created ${id} (${shownText(name, 120)}).${remark} The key is shown only now:\n`)
  await print(`${key}\n`)
}

async function updateKey(named: string, options: LimitOptions): Promise<void> {
  const body = limitFields(options)
  if (Object.keys(body).length === 0) throw new UsageError('Name a change, such as --monthly-budget 200.')
  await printRecord(await sendForKey(named, options, 'PATCH', '', { body }), options)
}

async function revokeKey(named: string, options: Options): Promise<void> {
  const { value, text } = await sendForKey(named, options, 'POST', '/revoke')
  if (options.json) await printData([`${text}\n`])
  else await print(`Revoked ${value.id} (${shownText(value.name, 120)}).\n`)
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const

function secondsOf(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,9})([smhd])?$/.exec(text) ?? []
  if (count === undefined)
    throw new UsageError('--old-expires-in must be seconds, or a time such as 90s, 15m, 24h or 7d.')
  return Number(count) * SECONDS[unit as keyof typeof SECONDS]
}
