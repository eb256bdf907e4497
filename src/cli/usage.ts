import type { Command } from 'commander'
import type { Usage } from '../api/usage.ts'
import { parseUsd } from '../kernel/money.ts'
import { type FieldOption, registerAll } from './api-command.ts'
import type { ApiAnswer, CommandOptions, Exact, ObjectOf } from './client.ts'
import { renderRecords } from './records.ts'
import { outputStyle, print, shownText, type TerminalStyle } from './terminal.ts'

const GROUPS_HELP = 'day (default), hour, model, key, person or account; several with commas; or none'

const PARAMETERS: readonly FieldOption[] = [
  ['--start <date>', 'start', 'first day, such as 2026-11-01 (the first of this month)'],
  ['--end <date>', 'end', 'last day (today)'],
  [
    '--group-by <dimensions>',
    'group_by',
    GROUPS_HELP,
    { read: (text) => (text === 'none' ? undefined : text) },
  ],
]

const USAGE = {
  rows: 'rows',
  options: PARAMETERS,
  defaults: { group_by: 'day' },
  formats: ['csv'],
  help: '\nDays are in UTC. A call counts on the day on which it was admitted.',
  examples: [
    'tollgate usage --group-by model --start 2026-11-01 --end 2026-11-30',
    'tollgate usage --group-by key,day --format csv > usage.csv',
  ],
  show: printUsage,
}

export function register(command: Command): void {
  registerAll(command, 'usage', [['', '', 'GET', '/v1/usage', USAGE]])
}

async function printUsage(answer: ApiAnswer<ObjectOf<'usage'>>, options: CommandOptions): Promise<void> {
  await print(renderUsage(answer.value, outputStyle(options)))
}

const DIMENSIONS = {
  'day (UTC)': 'day',
  'hour (UTC)': 'hour',
  model: 'model',
  key: 'key',
  name: 'key_name',
  person: 'person',
  email: 'person_email',
  account: 'account',
  'account name': 'account_name',
}

/** The columns of figures. A column with only zeros is left out, except calls and cost. */
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

const DISPENSABLE = ['credited', 'list cost', 'cache write', 'cache read', 'key', 'person', 'account']

function renderUsage({ data, total, start, end }: Exact<Usage>, style: TerminalStyle): string {
  const title = style.paint(
    'bold',
    `Usage from ${shownText(start)} to ${shownText(end)} (UTC), amounts in USD`,
  )
  if (total.requests === '0') return `${title}\n\nNo call was made.\n`
  const figures = Object.entries(FIGURES).filter(
    ([, field]) => field === 'requests' || field === 'cost_usd' || total[field] !== '0',
  )
  const [dimension] = Object.values(DIMENSIONS).filter((field) => field in (data[0] ?? {}))
  // Without dimensions there is one bucket, which is the total.
  const named = data.map((bucket) => (bucket.model === '' ? { ...bucket, model: 'no model' } : bucket))
  const rows = dimension === undefined ? [total] : [...named, { ...total, [dimension]: 'total' }]
  const table = renderRecords({ ...DIMENSIONS, ...Object.fromEntries(figures) }, rows, style, DISPENSABLE)
  return `${title}\n\n${table}\n${remarks(total).join('\n')}\n`
}

function remarks(total: Exact<Usage>['total']): string[] {
  const list = parseUsd(total.list_cost_usd) ?? 0n
  const saved = parseUsd(total.savings_usd) ?? 0n
  const percent = list > 0n ? ` (${Number((saved * 1_000n) / list) / 10} %)` : ''
  const all = [
    ['1', `Saved ${total.savings_usd} USD${percent} of the list cost of ${total.list_cost_usd} USD.`],
    [total.credited_usd, `Credited back later: ${total.credited_usd} USD. The cost still includes it.`],
    [
      total.unpriced_requests,
      `Calls without a price: ${total.unpriced_requests}. See \`tollgate rerate --help\`.`,
    ],
    [total.estimated_requests, `Calls with estimated usage: ${total.estimated_requests}.`],
  ] as const
  return all.filter(([count]) => count !== '0').map(([, remark]) => shownText(remark, 200))
}
