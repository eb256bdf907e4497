import { randomUUID } from 'node:crypto'
import { type Command, Option } from 'commander'
import { rawNumber } from '../kernel/money.ts'
import {
  type AnswerName,
  type ApiAnswer,
  type ApiList,
  type Client,
  type CommandOptions,
  type ObjectOf,
  openClient,
  type QueryFields,
} from './client.ts'
import { collect, examples, Failure, UsageError } from './command.ts'
import { connect, findAccount, findKey, findPerson } from './find-by-name.ts'
import { type Columns, renderRecord, renderRecords } from './records.ts'
import { outputStyle, print, printData, printResult, shownText } from './terminal.ts'

/**
 * A command that sends one request: its name and arguments (empty if the group has no subcommands), its summary and its
 * request. In the path, `<key>` is a key by its id, name, prefix or last characters, `<account>` an account by its id or
 * name, and `<person>` a person by the id, email address or name; other arguments are ids. All other arguments and options
 * are fields of the body, or parameters of a GET. The field `account` is an account by its id or name.
 */
export type ApiCommand<Name extends AnswerName = AnswerName> = readonly [
  usage: string,
  summary: string,
  method: CommandMethod,
  path: `/${string}`,
  details?: CommandDetails<Name>,
]

type CommandMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

interface CommandDetails<Name extends AnswerName> {
  readonly listing?: Listing
  /** The name of the rows of an answer that has pages and is not a list. */
  readonly rows?: string
  readonly options?: readonly FieldOption[]
  readonly defaults?: Readonly<Record<string, unknown>>
  readonly formats?: readonly string[]
  readonly isDefault?: true
  /** Sends an idempotency key, so that a repeated command has no further effect. */
  readonly once?: true
  readonly help?: string
  readonly examples?: readonly string[]
  /** Prints the answer, unless --json is given. By default its members are printed. */
  show?(answer: ApiAnswer<ObjectOf<Name>>, options: CommandOptions): Promise<void>
}

export interface Listing {
  readonly noun: string
  readonly columns: Columns
  /** Columns to drop on a narrow terminal, in this order. */
  readonly dispensable?: readonly string[]
}

export type FieldOption = readonly [option: `--${string}`, field: string, help: string, traits?: FieldTraits]

interface FieldTraits {
  /** The option may be repeated, and is a list. */
  readonly isList?: true
  readonly isRequired?: true
  /** The field's value for a text, or for a list of texts. */
  readonly read?: (given: string & string[]) => unknown
}

const PAGES: readonly FieldOption[] = [
  ['--limit <n>', 'limit', 'maximum number of rows; with --format, all by default'],
  ['--after <cursor>', 'after', 'read the page after this cursor'],
]

/** A period, for every command that has one. */
export const PERIOD: readonly FieldOption[] = [
  ['--start <time>', 'start', 'from this time (UTC): 2026-11-01 or 2026-11-01T12:00:00Z'],
  ['--end <time>', 'end', 'before this time; a date includes the whole day'],
]

const ONCE = [
  '--idempotency-key <text>',
  'a repeated command with the same text has no further effect',
] as const

const CONNECTION = [
  ['--url <url>', 'the gateway (TOLLGATE_URL, else TOLLGATE_HOST and TOLLGATE_PORT)'],
  ['--admin-key-file <file>', 'file with an admin key (TOLLGATE_ADMIN_KEY, else <data dir>/admin-key)'],
  ['--json', "print the API's answer"],
  ['--no-color', 'no colour on a terminal'],
] as const

const rowNoun = ([, , , , { listing, rows } = {}]: ApiCommand) => listing?.noun ?? rows

const optionsOf = (row: ApiCommand): readonly FieldOption[] => [
  ...(row[4]?.options ?? []),
  ...(rowNoun(row) === undefined ? [] : PAGES),
]

/** Only lists accept `*` as the account, and not the list of one key's calls. */
const acceptsAll = (row: ApiCommand) => rowNoun(row) !== undefined && !/<|\/accounts|\/prices/.test(row[3])

/** Endpoints of accounts, and those of all accounts' prices, refuse the parameter `account`. */
function accountOption(row: ApiCommand): readonly (readonly [option: string, help: string])[] {
  if (/\/accounts|\/prices\//.test(row[3])) return []
  return [
    [
      '--account <name>',
      `act in this account (id or name) ${acceptsAll(row) ? 'only; an operator lists all accounts' : 'instead of default'}`,
    ],
  ]
}

/** Adds commands to their group. `object` is the type of object that commands without a `listing` receive. */
export function registerAll<Name extends AnswerName>(
  group: Command,
  object: Name,
  rows: readonly ApiCommand<Name>[],
): Command[] {
  return rows.map((row) => {
    const [usage, summary, , , { formats, once, isDefault = false, help = '', examples: lines = [] } = {}] =
      row
    const command = usage === '' ? group : group.command(usage, { isDefault }).description(summary)
    for (const [option, , text, { isList, isRequired } = {}] of optionsOf(row))
      if (isList) command.option(option, text, collect)
      else if (isRequired) command.requiredOption(option, text)
      else command.option(option, text)
    for (const [option, text] of [...(once ? [ONCE] : []), ...accountOption(row), ...CONNECTION])
      command.option(option, text)
    if (formats !== undefined)
      command.addOption(new Option('--format <format>', 'export all matching rows').choices(formats))
    command.addHelpText('after', help + (lines.length === 0 ? '' : examples(...lines)))
    return command.action(async (...given: unknown[]) => {
      const args = command.registeredArguments.map((arg, at) => [arg.name(), String(given[at])] as const)
      await runCommand(row, object, new Map(args), command.opts<CommandOptions>())
    })
  })
}

interface RequestToSend {
  readonly client: Client
  readonly path: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly query: QueryFields
}

/** The request of a command. `query.account` is `*` if it looks into several accounts. */
export async function prepareRequest(
  row: ApiCommand,
  args: ReadonlyMap<string, string>,
  options: CommandOptions,
): Promise<RequestToSend> {
  const [, , method, template, { defaults } = {}] = row
  const client = await connect(options)
  const fields = { ...defaults, ...fieldsOf(optionsOf(row), options, method) }
  for (const [name, value] of args)
    if (!template.includes(`<${name}>`)) fields[name] = name.endsWith('_usd') ? amountField(value) : value
  if (method === 'PATCH' && Object.keys(fields).length === 0)
    throw new UsageError('There is nothing to change. Add an option, such as --monthly-budget 200.')
  if (typeof fields['account'] === 'string')
    fields['account'] = await findAccount(openClient(options), fields['account'])
  const path = await pathOf(template, args, client)
  const account = acceptsAll(row) ? await client.everyAccount() : undefined
  return { client, path, fields, query: { ...(fields as QueryFields), account } }
}

export async function runCommand<Name extends AnswerName>(
  row: ApiCommand<Name>,
  object: Name,
  args: ReadonlyMap<string, string>,
  options: CommandOptions,
): Promise<void> {
  const [, , method, , { formats, listing, once, show } = {}] = row
  const { json } = options
  // Webhooks have a field of this name.
  const format = formats === undefined ? undefined : options['format']
  if (json && format !== undefined)
    throw new UsageError('--json and --format cannot be used together. Use one of them.')
  const { client, path, fields, query } = await prepareRequest(row, args, options)
  const nameOption = (error: unknown): never => {
    throw withOption(error, row)
  }
  if (method === 'DELETE') {
    await client.remove(path)
    const [id = ''] = args.values()
    return await printResult(options, { object, id, deleted: true }, `Deleted ${shownText(id)}.\n`)
  }
  if (typeof format === 'string')
    return await printData(client.export(path, { ...query, format })).catch(nameOption)
  const content =
    method === 'GET' ? { query } : { body: fields, idempotencyKey: once && idempotencyKeyOf(options) }
  const answer = await client
    .request(listing === undefined ? object : 'list', method, path, content)
    .catch(nameOption)
  if (json) await printData([`${answer.text}\n`])
  else if (listing !== undefined)
    await printRows(listing, answer.value as ApiList<object>, query['account'] !== undefined, options)
  else if (show !== undefined) await show(answer as ApiAnswer<ObjectOf<Name>>, options)
  else await print(renderRecord(answer.value, outputStyle(options)))
  const { has_more: hasMore, next } = answer.value as Partial<ApiList<object>>
  if (hasMore)
    process.stderr.write(`There are more ${rowNoun(row)}: add --after ${next} or a larger --limit.\n`)
}

/** The API's message names a field. The user of a command knows its option. */
function withOption(error: unknown, row: ApiCommand): unknown {
  if (!(error instanceof UsageError || error instanceof Failure) || error.param === null) return error
  const named = error.param.toLowerCase()
  const [option] =
    [ONCE, ...optionsOf(row)].find(([flag, field]) => field === named || flag.startsWith(`--${named} `)) ?? []
  if (option !== undefined) error.message = `${flagOf(option)}: ${error.message}`
  return error
}

const flagOf = (option: string) => option.split(' ', 1)[0] ?? option

async function pathOf(template: string, args: ReadonlyMap<string, string>, client: Client): Promise<string> {
  let path = template
  for (const [name, given] of args) {
    const find = FINDERS[name]
    if (path.includes(`<${name}>`))
      path = path.replace(`<${name}>`, find ? await find(client, given) : encodeURIComponent(given))
  }
  return path
}

const FINDERS: Readonly<Record<string, typeof findKey>> = {
  key: findKey,
  account: findAccount,
  person: findPerson,
}

async function printRows(
  { noun, columns, dispensable }: Listing,
  { data }: ApiList<object>,
  isOfSeveralAccounts: boolean,
  options: CommandOptions,
) {
  const shown = isOfSeveralAccounts ? { ...columns, account: 'account_id' } : columns
  if (data.length === 0) process.stderr.write(`No ${noun} match.\n`)
  else await print(renderRecords(shown, data, outputStyle(options), dispensable))
}

/** The fields whose options were given. In a body, `none` and `never` mean null. The API checks the values. */
function fieldsOf(
  fields: readonly FieldOption[],
  options: CommandOptions,
  method: string,
): Record<string, unknown> {
  const flags = new Map<string, string>()
  const set: Record<string, unknown> = {}
  for (const [option, field, , { read } = {}] of fields) {
    const given = options[new Option(option).attributeName()]
    if (given === undefined) continue
    const [flag, earlier] = [flagOf(option), flags.get(field)]
    // Commander stores `--x` and `--no-x` as one option.
    if (earlier !== undefined && flag !== earlier.replace('--', '--no-'))
      throw new UsageError(`${earlier} and ${flag} cannot be used together. Use one of them.`)
    flags.set(field, flag)
    if (method !== 'GET' && /^(?:none|never)$/.test(String(given))) set[field] = null
    else set[field] = read === undefined ? given : read(given as string & string[])
  }
  return set
}

export const yesOrNo = (flag: string) => (text: string) => {
  if (text !== 'yes' && text !== 'no') throw new UsageError(`${flag} must be yes or no.`)
  return text === 'yes'
}

/** The amount exactly as typed. Text that is not a number is sent unchanged, for the API to refuse. */
export function amountField(text: string): unknown {
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? rawNumber(text) : text
}

function idempotencyKeyOf({ idempotencyKey }: CommandOptions): string {
  return typeof idempotencyKey === 'string' ? idempotencyKey : randomUUID()
}
