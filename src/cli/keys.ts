import { type Command, Option } from 'commander'
import { KEY_OPTIONS } from '../keys/key-store.ts'
import {
  type ApiAnswer,
  amountField,
  type ConnectionOptions,
  connect,
  onceKey,
  type PageOptions,
  printList,
  type ShownOptions,
  withConnection,
  withJson,
  withPages,
} from './client.ts'
import { collect, examples, Failure, UsageError } from './command.ts'
import { findKey, type KeyRecord, renderKey, shownKey, statusCell } from './key-record.ts'
import { addRequestOptions, printRequests, type RequestOptions } from './requests.ts'
import { type Field, outputStyle, print, printData, shownInstant, shownText } from './terminal.ts'

/** The options of `KEY_OPTIONS` are also strings. */
interface Limits {
  readonly name?: string
  readonly allowModel?: readonly string[]
  readonly allModels?: true
  readonly logRequests?: boolean
  readonly expiresAt?: string
  readonly metadata?: readonly string[]
}

interface NewKey extends ConnectionOptions {
  readonly json?: true
  readonly idempotencyKey?: string
}

const WHICH =
  '\nA <key> is named by its id, its name, its prefix (svc_live_Ab3dE9f) or its last four characters.'

/** Manages API keys over HTTP. */
export function register(group: Command): void {
  const create = withLimits(group.command('create').description('create a key and print it, once'), false)
  withNewKey(create)
    .addHelpText(
      'after',
      examples(
        'KEY=$(tollgate keys create --name checkout --monthly-budget 50)',
        'tollgate keys create --name ci --daily-budget 5 --rpm 60 --metadata team=web',
      ),
    )
    .action(createKey)

  withPages(group.command('list').description('list the keys, newest first'))
    .option('--status <status>', 'only keys in this state: usable, revoked or expired')
    .option(
      '--search <text>',
      'part of a name, an id, a prefix or the last four characters, or metadata.team:web',
    )
    .addHelpText(
      'after',
      examples('tollgate keys list --status usable', 'tollgate keys list --search svc_live_Ab3d'),
    )
    .action(listKeys)

  withJson(group.command('show <key>').description('show a key, its limits and its spend'))
    .addHelpText('after', WHICH + examples('tollgate keys show checkout'))
    .action(async (named: string, options: ShownOptions) => {
      const client = connect(options, process.env)
      await printKey(await client.get<KeyRecord>('key', `/v1/keys/${await findKey(client, named)}`), options)
    })

  withJson(
    withLimits(group.command('update <key>').description('change the name or the limits of a key'), true),
  )
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
    .option('--json', "print the API's answer")
    .addHelpText(
      'after',
      `${WHICH} Running streams finish.${examples('tollgate keys revoke svc_live_Ab3dE9f')}`,
    )
    .action(revokeKey)

  withNewKey(
    group.command('rotate <key>').description('create a new key with the name and limits of another'),
  )
    .option(
      '--old-expires-in <time>',
      'when the old key stops working: seconds, or 90s, 15m, 24h, 7d (never)',
    )
    .addHelpText('after', WHICH + examples('KEY=$(tollgate keys rotate checkout --old-expires-in 24h)'))
    .action(rotateKey)

  addRequestOptions(group.command('requests <key>').description('list or export the calls of a key'))
    .addHelpText('after', WHICH + examples('tollgate keys requests checkout --format csv > calls.csv'))
    .action((key: string, options: RequestOptions) => printRequests({ ...options, key }))
}

function withNewKey(command: Command): Command {
  return withConnection(command)
    .option('--idempotency-key <text>', 'repeating the command with the same text creates no second key')
    .option('--json', "print the API's answer, with the key in it")
}

function withLimits(command: Command, isUpdate: boolean): Command {
  const removal = (text: string) => (isUpdate ? text : '')
  command.option('--name <name>', 'its name')
  for (const { option, help } of KEY_OPTIONS) command.option(option, help + removal('; `none` removes it'))
  return command
    .option(
      '--metadata <name=value>',
      `a pair of its metadata; repeat for more${removal('; `none` removes all')}`,
      collect,
    )
    .option('--allow-model <model>', 'a model it may call; repeat for more', collect)
    .option('--all-models', 'it may call every model')
    .option('--log-requests', 'log the bodies of its calls')
    .option('--no-log-requests', 'log no bodies')
    .option(
      '--expires-at <instant>',
      `when it stops working, such as 2030-01-31T00:00:00Z${removal('; `never` removes the expiry')}`,
    )
}

/** The API fields for the given options. The API validates the values. */
function limitFields(options: Limits): Record<string, unknown> {
  const { name, allowModel, allModels, logRequests, expiresAt, metadata } = options
  if (allowModel !== undefined && allModels)
    throw new UsageError('--allow-model and --all-models cannot be used together.')
  const given = options as Readonly<Record<string, string | undefined>>
  const values = KEY_OPTIONS.map(({ field, option, kind }) => {
    const value = given[new Option(option).attributeName()]
    return [field, value === 'none' ? null : value && (kind === 'text' ? value : amountField(value))]
  })
  const fields = {
    name,
    ...Object.fromEntries(values),
    metadata: metadata && pairsOf(metadata),
    allowed_models: allModels ? null : allowModel,
    log_requests: logRequests,
    expires_at: expiresAt === 'never' ? null : expiresAt,
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
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

async function createKey(options: Limits & NewKey): Promise<void> {
  const body = limitFields(options)
  const answer = await connect(options, process.env).ask<KeyRecord>('key', 'POST', '/v1/keys', {
    body,
    idempotencyKey: onceKey(options),
  })
  await printSecret(answer, options, ({ id, name }) => `Created ${id} (${shownText(name, 120)}).`)
}

async function rotateKey(named: string, options: NewKey & { oldExpiresIn?: string }): Promise<void> {
  const { oldExpiresIn } = options
  const body = oldExpiresIn === undefined ? {} : { old_expires_in_seconds: secondsOf(oldExpiresIn) }
  const client = connect(options, process.env)
  const old = await findKey(client, named)
  const answer = await client.ask<KeyRecord>('key', 'POST', `/v1/keys/${old}/rotate`, {
    body,
    idempotencyKey: onceKey(options),
  })
  const until = oldExpiresIn === undefined ? 'stays usable' : `expires in ${oldExpiresIn}`
  await printSecret(
    answer,
    options,
    ({ id, name }) => `Created ${id} (${shownText(name, 120)}). ${old} ${until}.`,
  )
}

/** Prints only the secret to standard output, for `KEY=$(…)`. */
async function printSecret(
  { value, text }: ApiAnswer<KeyRecord>,
  { json }: NewKey,
  describe: (key: KeyRecord) => string,
): Promise<void> {
  if (json) return await printData([`${text}\n`])
  const { key, id } = value
  if (key === undefined)
    throw new Failure(
      `This command ran before and created ${id}; its secret is not shown again. If it is lost, run ` +
        `\`tollgate keys revoke ${id}\` and repeat the command with another --idempotency-key.`,
    )
  process.stderr.write(`${describe(value)} The key is shown only now:\n`)
  await print(`${key}\n`)
}

async function listKeys(options: PageOptions & { status?: string; search?: string }): Promise<void> {
  const { status, search } = options
  const empty = 'There is no such key. `tollgate keys create --name <name>` creates one.'
  await printList(options, '/v1/keys', { status, search }, keyFields, { noun: 'keys', empty })
}

/** Omits columns of limits that no key has. */
function keyFields(keys: readonly KeyRecord[]): readonly Field<KeyRecord>[] {
  const limit = (
    title: string,
    of: (key: KeyRecord) => string | null,
    kind: 'amount' | 'right' = 'amount',
  ) => (keys.some((key) => of(key) !== null) ? [{ title, of, kind }] : [])
  const hasDays = keys.some((key) => key.daily_budget_usd !== null)
  return [
    { title: 'id', of: ({ id }) => shownText(id) },
    { title: 'status', of: statusCell },
    { title: 'key', of: shownKey },
    { title: 'spent', of: (key) => key.month_spend_usd, kind: 'amount' },
    { title: 'monthly budget', of: (key) => key.monthly_budget_usd, kind: 'amount' },
    ...(hasDays ? limit('spent today', (key) => key.day_spend_usd) : []),
    ...limit('daily budget', (key) => key.daily_budget_usd),
    ...limit('rpm', (key) => key.requests_per_minute, 'right'),
    { title: 'last used (UTC)', of: (key) => shownInstant(key.last_used_at) },
    { title: 'name', of: (key) => shownText(key.name, 40) },
    { title: 'note', of: (key) => noteOf(key, keys) },
  ]
}

/** Tells two keys of one name apart: which is newer, and when the older one ends. */
function noteOf(key: KeyRecord, keys: readonly KeyRecord[]): string {
  const shortName = (id: string) => {
    const other = keys.find((each) => each.id === id)
    return other === undefined ? shownText(id) : `…${shownText(other.last4)}`
  }
  const successor = keys.find(({ rotated_from }) => rotated_from === key.id)
  const notes = [
    ...(key.rotated_from === null ? [] : [`rotated from ${shortName(key.rotated_from)}`]),
    ...(successor === undefined ? [] : [`rotated to …${shownText(successor.last4)}`]),
    ...(key.expires_at === null || key.status !== 'usable'
      ? []
      : [`expires ${shownInstant(key.expires_at)}`]),
  ]
  return notes.join(', ')
}

async function printKey({ value, text }: ApiAnswer<KeyRecord>, options: ShownOptions): Promise<void> {
  if (options.json) await printData([`${text}\n`])
  else await print(renderKey(value, outputStyle(options)))
}

async function updateKey(named: string, options: Limits & ShownOptions): Promise<void> {
  const body = limitFields(options)
  if (Object.keys(body).length === 0) throw new UsageError('Name a change, such as --monthly-budget 200.')
  const client = connect(options, process.env)
  const id = await findKey(client, named)
  await printKey(await client.ask<KeyRecord>('key', 'PATCH', `/v1/keys/${id}`, { body }), options)
}

async function revokeKey(named: string, options: ConnectionOptions & { json?: true }): Promise<void> {
  const client = connect(options, process.env)
  const id = await findKey(client, named)
  const { value, text } = await client.ask<KeyRecord>('key', 'POST', `/v1/keys/${id}/revoke`)
  if (options.json) await printData([`${text}\n`])
  else await print(`Revoked ${id} (${shownText(value.name, 120)}).\n`)
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const

function secondsOf(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,9})([smhd])?$/.exec(text) ?? []
  if (count === undefined)
    throw new UsageError('--old-expires-in must be seconds, or a time such as 90s, 15m, 24h or 7d.')
  return Number(count) * SECONDS[unit as keyof typeof SECONDS]
}
