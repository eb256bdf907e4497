import { type Command, Option } from 'commander'
import type { Usage } from '../api/usage.ts'
import { parseUsd } from '../kernel/money.ts'
import { type ConnectionOptions, connect, type Exact, withConnection } from './client.ts'
import { examples, UsageError } from './command.ts'
import {
  alignAmounts,
  left,
  outputStyle,
  print,
  printData,
  renderTable,
  right,
  shownCount,
  shownText,
  type TableCell,
  type TerminalStyle,
} from './terminal.ts'

type UsageReport = Exact<Usage>
type Sums = UsageReport['total']
type Bucket = UsageReport['data'][number]

interface Options extends ConnectionOptions {
  readonly start?: string
  readonly end?: string
  readonly groupBy: string
  readonly json?: true
  readonly format?: 'csv'
  readonly color: boolean
}

/** The most rows that the API answers at once. */
const ROWS_MAX = '10000'

/** Usage and cost over HTTP, as a table, JSON or CSV. */
export function register(command: Command): void {
  withConnection(command)
    .option('--start <date>', 'first day, such as 2026-11-01 (the first of this month)')
    .option('--end <date>', 'last day (today)')
    .option('--group-by <dimensions>', 'day, model, key, several with commas, or none', 'day')
    .option('--json', "print the API's answer")
    .addOption(new Option('--format <format>', 'export all rows').choices(['csv']))
    .option('--no-color', 'no colour on a terminal')
    .addHelpText(
      'after',
      '\nDays are in UTC; a call belongs to the day on which it began.' +
        examples(
          'tollgate usage --group-by model --start 2026-11-01 --end 2026-11-30',
          'tollgate usage --group-by key,day --format csv > usage.csv',
        ),
    )
    .action(printUsage)
}

async function printUsage(options: Options): Promise<void> {
  const { start, end, groupBy, json, format } = options
  if (json && format !== undefined) throw new UsageError('--json and --format cannot be used together.')
  const query = { start, end, group_by: groupBy === 'none' ? undefined : groupBy, limit: ROWS_MAX }
  const client = connect(options, process.env)
  if (format !== undefined)
    return await printData(client.export('/v1/usage', { ...query, limit: undefined, format }))
  const { value, text } = await client.get<UsageReport>('usage', '/v1/usage', query)
  if (json) await printData([`${text}\n`])
  else await print(renderUsage(value, outputStyle(options)))
  if (value.has_more)
    process.stderr.write(`These are the first ${shownCount(ROWS_MAX)} rows. --format csv has all of them.\n`)
}

const DIMENSIONS = [
  ['day (UTC)', 'day'],
  ['model', 'model'],
  ['key', 'key'],
  ['name', 'key_name'],
] as const satisfies readonly (readonly [string, keyof Bucket])[]

/** Amounts end with `_usd`, the others are counts. Columns of zeros are omitted, except the first and the cost. */
const FIGURES = [
  ['calls', 'requests'],
  ['input', 'input_tokens'],
  ['cache read', 'cache_read_tokens'],
  ['cache write', 'cache_write_tokens'],
  ['output', 'output_tokens'],
  ['cost', 'cost_usd'],
  ['list cost', 'list_cost_usd'],
  ['credited', 'credited_usd'],
] as const satisfies readonly (readonly [string, keyof Sums])[]

/** Columns to drop on a narrow terminal, in this order. */
const DISPENSABLE = ['credited', 'list cost', 'cache write', 'cache read', 'key']

function renderUsage({ data, total, start, end }: UsageReport, style: TerminalStyle): string {
  const title = `Usage from ${shownText(start)} to ${shownText(end)} (UTC), amounts in USD`
  if (data.length === 0 || total.requests === '0')
    return `${style.paint('bold', title)}\n\nNothing was used.\n`
  const dimensions = DIMENSIONS.filter(([, name]) => data.some((bucket) => bucket[name] !== undefined))
  const figures = FIGURES.filter(([, name]) => /^(requests|cost_usd)$/.test(name) || total[name] !== '0')
  const figureColumns = figures.map(([, name]) => {
    const texts = [...data, total].map((sums) => sums[name])
    return (name.endsWith('_usd') ? alignAmounts(texts) : texts.map(shownCount)).map((text) =>
      shownText(text),
    )
  })
  const names = [
    ...data.map((bucket) => dimensions.map(([, name]) => shownText(bucket[name] || '(none)', 40))),
    dimensions.map((_, at) => (at === 0 ? 'total' : '')),
  ]
  const rows = names.map((row, at) => [...row, ...figureColumns.map((column) => column[at] ?? '')])
  const totals = rows.at(-1)?.map((text): TableCell => ({ text, style: 'bold' })) ?? []
  // Without dimensions there is one bucket, which is the total.
  const shown = dimensions.length === 0 ? [totals] : [...rows.slice(0, -1), totals]
  const columns = [...dimensions.map(([title]) => left(title)), ...figures.map(([title]) => right(title))]
  const table = renderTable(columns, shown, style, DISPENSABLE)
  return `${style.paint('bold', title)}\n\n${table}\n${remarks(total).join('\n')}\n`
}

function remarks(total: Sums): string[] {
  const list = parseUsd(total.list_cost_usd) ?? 0n
  const saved = parseUsd(total.savings_usd) ?? 0n
  const percent = list > 0n ? ` (${Number((saved * 1_000n) / list) / 10} %)` : ''
  return [
    `Saved ${shownText(total.savings_usd)} of ${shownText(total.list_cost_usd)} USD at list prices${percent}.`,
    ...(total.credited_usd === '0'
      ? []
      : [`Credited back later: ${shownText(total.credited_usd)} USD. The cost still includes it.`]),
    ...(total.unpriced_requests === '0'
      ? []
      : [`Calls without a price: ${shownCount(total.unpriced_requests)}. See \`tollgate rerate --help\`.`]),
    ...(total.estimated_requests === '0'
      ? []
      : [`Calls with estimated usage: ${shownCount(total.estimated_requests)}.`]),
  ]
}
