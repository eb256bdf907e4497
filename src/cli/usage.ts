import type { Command } from 'commander'
import { Option } from 'commander'
import type { Usage } from '../api/usage.ts'
import { parseUsd } from '../kernel/money.ts'
import { connect, type Exact, type Options, type Query } from './client.ts'
import { examples, UsageError } from './command.ts'
import { type FieldOption, fieldsOf, renderRecords, withConnection, withFields } from './records.ts'
import { outputStyle, print, printData, shownCount, shownText, type TerminalStyle } from './terminal.ts'

const PATH = '/v1/usage'

/** The most rows that the API answers at once. */
const ROWS_MAX = '10000'

const PARAMETERS: readonly FieldOption[] = [
  ['--start <date>', 'start', 'first day, such as 2026-11-01 (the first of this month)'],
  ['--end <date>', 'end', 'last day (today)'],
  [
    '--group-by <dimensions>',
    'group_by',
    'day (the default), model, key, account, several with commas, or none',
  ],
]

/** Usage and cost over HTTP, as a table, JSON or CSV. */
export function register(command: Command): void {
  withFields(withConnection(command), PARAMETERS)
    .addOption(new Option('--format <format>', 'export all rows').choices(['csv']))
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
  const { json, format } = options
  if (json && format !== undefined) throw new UsageError('--json and --format cannot be used together.')
  const { group_by = 'day', ...days } = fieldsOf(PARAMETERS, options)
  const query = { ...days, ...(group_by === null ? {} : { group_by }) } as Query
  const client = connect(options)
  if (format !== undefined) return await printData(client.export(PATH, { ...query, format: 'csv' }))
  const ask = { query: { ...query, limit: ROWS_MAX } }
  const { value, text } = await client.ask<Exact<Usage>>('usage', 'GET', PATH, ask)
  if (json) await printData([`${text}\n`])
  else await print(renderUsage(value, outputStyle(options)))
  if (value.has_more)
    process.stderr.write(`These are the first ${shownCount(ROWS_MAX)} rows. --format csv has all of them.\n`)
}

const DIMENSIONS = { 'day (UTC)': 'day', model: 'model', key: 'key', name: 'key_name', account: 'account' }

/** A column of zeros is left out, except the calls and the cost. */
const FIGURES = {
  calls: 'requests',
  input: 'input_tokens',
  'cache read': 'cache_read_tokens',
  'cache write': 'cache_write_tokens',
  output: 'output_tokens',
  cost: 'cost_usd',
  'list cost': 'list_cost_usd',
  credited: 'credited_usd',
} as const

/** Columns to drop on a narrow terminal, in this order. */
const DISPENSABLE = ['credited', 'list cost', 'cache write', 'cache read', 'key']

function renderUsage({ data, total, start, end }: Exact<Usage>, style: TerminalStyle): string {
  const title = style.paint(
    'bold',
    `Usage from ${shownText(start)} to ${shownText(end)} (UTC), amounts in USD`,
  )
  if (total.requests === '0') return `${title}\n\nNothing was used.\n`
  const figures = Object.entries(FIGURES).filter(
    ([, field]) => field === 'requests' || field === 'cost_usd' || total[field] !== '0',
  )
  const [dimension] = Object.values(DIMENSIONS).filter((field) => field in (data[0] ?? {}))
  // Without dimensions there is one bucket, which is the total.
  const rows = dimension === undefined ? [total] : [...data, { ...total, [dimension]: 'total' }]
  const table = renderRecords({ ...DIMENSIONS, ...Object.fromEntries(figures) }, rows, style, DISPENSABLE)
  return `${title}\n\n${table}\n${remarks(total).join('\n')}\n`
}

function remarks(total: Exact<Usage>['total']): string[] {
  const list = parseUsd(total.list_cost_usd) ?? 0n
  const saved = parseUsd(total.savings_usd) ?? 0n
  const percent = list > 0n ? ` (${Number((saved * 1_000n) / list) / 10} %)` : ''
  const all = [
    ['1', `Saved ${total.savings_usd} of ${total.list_cost_usd} USD at list prices${percent}.`],
    [total.credited_usd, `Credited back later: ${total.credited_usd} USD. The cost still includes it.`],
    [
      total.unpriced_requests,
      `Calls without a price: ${total.unpriced_requests}. See \`tollgate rerate --help\`.`,
    ],
    [total.estimated_requests, `Calls with estimated usage: ${total.estimated_requests}.`],
  ] as const
  return all.filter(([count]) => count !== '0').map(([, remark]) => shownText(remark, 200))
}
