import { randomUUID } from 'node:crypto'
import { type Command, Option } from 'commander'
import { rawNumber } from '../kernel/money.ts'
import { type ApiAnswer, type ApiList, type ApiObject, connect, type Options, type Query } from './client.ts'
import {
  alignAmounts,
  type Cell,
  outputStyle,
  print,
  printData,
  renderTable,
  shownCount,
  shownInstant,
  shownText,
  type TerminalStyle,
} from './terminal.ts'

/** The commands over HTTP: options become fields and parameters of the API, and its objects become tables and lines. */

// Options

export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', 'the gateway (TOLLGATE_URL, else TOLLGATE_HOST and TOLLGATE_PORT)')
    .option(
      '--admin-key-file <file>',
      'file with an admin key (TOLLGATE_ADMIN_KEY, else <data dir>/admin-key)',
    )
    .option('--account <id>', 'the account to act in (default); lists and usage take "*" for all')
    .option('--json', "print the API's answer")
    .option('--no-color', 'no colour on a terminal')
}

/** An option, the field or parameter of the API that it sets, and the value of the API for a text; by default the text. */
export type FieldOption = readonly [
  option: string,
  field: string,
  help: string,
  read?: (text: string) => unknown,
]

export function withFields(command: Command, fields: readonly FieldOption[]): Command {
  for (const [option, , help] of fields) command.option(option, help)
  return command
}

/** The fields whose options were given; `none` and `never` are null. The API checks the values. */
export function fieldsOf(fields: readonly FieldOption[], options: Options): Record<string, unknown> {
  const set = fields.flatMap(([option, field, , read]): [string, unknown][] => {
    const given = options[new Option(option).attributeName()]
    if (given === undefined) return []
    if (given === 'none' || given === 'never') return [[field, null]]
    return [[field, typeof given === 'string' && read !== undefined ? read(given) : given]]
  })
  return Object.fromEntries(set)
}

/** The amount exactly as typed. Text that is not a number is sent unchanged, for the API to refuse. */
export function amountField(text: string): unknown {
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? rawNumber(text) : text
}

export function withOnce(command: Command): Command {
  return command.option(
    '--idempotency-key <text>',
    'repeating the command with the same text does nothing more',
  )
}

/** The idempotency key that was given, or a random one. */
export function onceKey({ idempotencyKey }: Options): string {
  return typeof idempotencyKey === 'string' ? idempotencyKey : randomUUID()
}

// Lists

/** Titles, each with the field that is below it, or with several of which the first that has a value counts. */
type Columns = Readonly<Record<string, string>>

export interface Listing {
  readonly path: string
  /** What the rows are, in the plural. */
  readonly noun: string
  readonly columns: Columns
  /** Columns to drop on a narrow terminal, in this order. */
  readonly dispensable?: readonly string[]
}

const PAGES: readonly FieldOption[] = [
  ['--limit <n>', 'limit', 'at most this many (100; no limit with --format)'],
  ['--after <cursor>', 'after', 'the next page'],
]

/** Adds the options of a list to its command. Where the API has an export, `formats` are its formats. */
export function withFilters(
  command: Command,
  filters: readonly FieldOption[],
  formats: readonly string[] = [],
): Command {
  withFields(withConnection(command), [...filters, ...PAGES])
  if (formats.length > 0)
    command.addOption(new Option('--format <format>', 'export all that is recorded').choices(formats))
  return command
}

/** Prints a page of a list as a table or as the API's answer, or exports all of it. */
export async function printList(
  { path, noun, columns, dispensable }: Listing,
  filters: readonly FieldOption[],
  options: Options,
): Promise<void> {
  const client = connect(options)
  const query = fieldsOf([...filters, ...PAGES], options) as Query
  const { format } = options
  if (typeof format === 'string') return await printData(client.export(path, { ...query, format }))
  const { value, text } = await client.ask<ApiList<object>>('list', 'GET', path, { query })
  if (options.json) return await printData([`${text}\n`])
  if (value.data.length === 0) process.stderr.write(`There are no such ${noun}.\n`)
  else await print(renderRecords(columns, value.data, outputStyle(options), dispensable))
  if (value.has_more)
    process.stderr.write(`There are more ${noun}: add --after ${value.next} or a larger --limit.\n`)
}

/** Records as rows. A column in which no record has a value is left out. */
export function renderRecords(
  columns: Columns,
  records: readonly object[],
  style: TerminalStyle,
  dispensable: readonly string[] = [],
): string {
  const filled = Object.entries(columns).flatMap(([title, field]) => {
    const values = records.map((record) => fieldIn(record, field))
    if (values.every((value) => value === null)) return []
    const aligned = alignAmounts(values.map((value) => (value === null ? '0' : String(value))))
    const texts = field.endsWith('_usd') ? aligned : values.map((value) => shownValue(field, value))
    const cells = values.map((value, at) => (value === null ? '-' : cellOf(field, texts[at] ?? '')))
    return [{ title: field.endsWith('_at') ? `${title} (UTC)` : title, cells }]
  })
  const rows = records.map((_, at) => filled.map(({ cells }) => cells[at] ?? ''))
  return renderTable(
    filled.map(({ title }) => title),
    rows,
    style,
    dispensable,
  )
}

/** The first of the fields that has a value, as `model_served|model` or `usage.input_tokens`; null if none has. */
function fieldIn(record: object, fields: string): unknown {
  const values = fields
    .split('|')
    .map((field) =>
      field
        .split('.')
        .reduce<unknown>((value, name) => (value as Record<string, unknown> | null)?.[name], record),
    )
  return values.find((value) => value !== null && value !== undefined) ?? null
}

const GOOD = /^(?:usable|active|settled|[123]\d\d)$/

function cellOf(field: string, text: string): Cell {
  const shown = shownText(text, 40)
  return /^(?:status|state)$/.test(field) ? { text: shown, style: GOOD.test(text) ? 'green' : 'red' } : shown
}

/** Counts of tokens and calls have commas. Numbers of the API are texts, so that others cannot be told from names. */
function shownValue(field: string, value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.join(', ')
  const text = String(value ?? '')
  if (field.endsWith('_at')) return shownInstant(text)
  return /(?:_tokens|requests)$/.test(field) ? shownCount(text) : text
}

// Records

/** Sends a request that answers with a record, and prints the record. */
export async function showAnswer(
  options: Options,
  ...request: Parameters<ReturnType<typeof connect>['ask']>
): Promise<void> {
  await printRecord(await connect(options).ask(...request), options)
}

/** Prints the fields of a record that have a value, each on a line, or, with --json, the API's reply unchanged. */
export async function printRecord({ value, text }: ApiAnswer<ApiObject>, options: Options): Promise<void> {
  if (options.json) return await printData([`${text}\n`])
  await print(renderRecord(value, outputStyle(options)))
}

export function renderRecord(record: object, style: TerminalStyle): string {
  const lines = linesOf(record, '')
  const width = Math.max(...lines.map(([name]) => name.length))
  return lines
    .map(([name, value]) => `${style.paint('dim', name.padEnd(width))} ${shownText(value, 600)}\n`)
    .join('')
}

function linesOf(record: object, prefix: string): (readonly [name: string, value: string])[] {
  return Object.entries(record).flatMap(([name, value]: [string, unknown]) => {
    if (value === null || (name === 'object' && prefix === '')) return []
    if (typeof value === 'object' && !Array.isArray(value)) return linesOf(value, `${prefix}${name}.`)
    const shown = shownValue(name, value)
    return [[prefix + name, name.endsWith('_at') ? `${shown} UTC` : shown] as const]
  })
}
