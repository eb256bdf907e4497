import type { Command } from 'commander'
import type { Bill } from '../api/request.ts'
import {
  type ApiCommand,
  type FieldOption,
  type Listing,
  PERIOD,
  registerAll,
  runCommand,
} from './api-command.ts'
import type { ApiAnswer, CommandOptions, Exact, ObjectOf } from './client.ts'
import { followCalls } from './follow.ts'
import { renderRecord, renderRecords } from './records.ts'
import { outputStyle, print, shownLines, type TerminalStyle } from './terminal.ts'

const STATES = 'waiting, in_flight, deferred, settled, released, interrupted or refused'
const FLAGS = 'streamed, estimated, unpriced, overrun, priced_as_requested, credited or refused'

const FILTERS: readonly FieldOption[] = [
  ['--model <model>', 'model', 'only calls that requested this model or were served by it'],
  ['--status <status>', 'status', 'an HTTP status such as 429'],
  ['--state <state>', 'state', STATES],
  ['--min-cost <usd>', 'min_cost_usd', 'only calls that cost this much or more'],
  ['--parent <id>', 'parent_id', 'only the records of this batch'],
  ['--socket <id>', 'socket', 'only the turns of this WebSocket'],
  ['--session <id>', 'session', "only the calls of this session, by the client's own name of it"],
  ['--flag <flag>', 'flag', FLAGS],
  ...PERIOD,
]

const CALLS: Listing = {
  noun: 'calls',
  columns: {
    began: 'started_at',
    request: 'id',
    key: 'key_name',
    model: 'model_served|model',
    path: 'path',
    state: 'state',
    status: 'status',
    code: 'code',
    input: 'usage.input_tokens',
    cached: 'usage.cache_read_tokens',
    output: 'usage.output_tokens',
    'cost (USD)': 'cost_usd',
  },
  dispensable: ['path', 'cached', 'state', 'key'],
}

const formats = ['csv', 'ndjson']

export const KEY_REQUESTS: ApiCommand<'request' | 'key'> = [
  'requests <key>',
  'list or export the calls of a key',
  'GET',
  '/v1/keys/<key>/requests',
  { listing: CALLS, options: FILTERS, formats },
]

const PATH = '/gateway/v1/requests'

const LIST: ApiCommand<'request'> = [
  'list',
  'list or export calls, newest first (the default command)',
  'GET',
  PATH,
  {
    listing: CALLS,
    options: FILTERS,
    formats,
    isDefault: true,
    examples: [
      'tollgate requests --status 429 --start 2026-11-01',
      'tollgate requests --key checkout --format csv > calls.csv',
      'tollgate requests --state refused --key svc_live_Ab3dE9f',
    ],
  },
]

const SHOW: ApiCommand<'request'> = [
  'show <id>',
  'show the full record and the bill of a call',
  'GET',
  `${PATH}/<id>`,
  {
    defaults: { expand: 'bill' },
    show: printCall,
    examples: ['tollgate requests show req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'],
  },
]

const BILL_COLUMNS = {
  used: 'label',
  model: 'model',
  quantity: 'quantity',
  'rate (USD)': 'rate_usd',
  per: 'rate_per',
  'amount (USD)': 'amount_usd',
  applied: 'modifiers',
}

async function printCall({ value }: ApiAnswer<ObjectOf<'request'>>, options: CommandOptions): Promise<void> {
  const { bill, ...call } = value
  const style = outputStyle(options)
  await print(`${renderRecord(call, style)}\n${bill === undefined ? '' : renderBill(bill, style)}`)
}

function renderBill({ lines, ...bill }: Exact<Bill>, style: TerminalStyle): string {
  const sums = [
    { label: 'rounding', amount_usd: bill.rounding_usd },
    { label: 'discount', amount_usd: `-${bill.discount_usd}` },
    { label: 'total', amount_usd: bill.cost_usd },
  ].filter(({ label, amount_usd }) => label === 'total' || !/^-?0$/.test(String(amount_usd)))
  const rows = lines.map(({ modifiers, ...line }) => (modifiers.length === 0 ? line : { ...line, modifiers }))
  const table = renderRecords(BILL_COLUMNS, [...rows, ...sums], style, ['applied', 'model'])
  const reserved = bill.held_usd === '0' ? '' : `Reserved ${bill.held_usd} USD. ${bill.held_because}`
  return shownLines(`${lines.length === 0 ? `${bill.note}\n` : table}${reserved}`.trimEnd()).concat('\n')
}

export function register(group: Command): void {
  const [list] = registerAll(group, 'request', [LIST, SHOW])
  list
    ?.option('--key <key>', 'only calls of this key: its id, name, prefix or last four characters')
    .option('--follow', 'print calls as they end, until the command is interrupted')
    .action(async (options: CommandOptions) => {
      const { key, follow } = options
      const args = new Map(typeof key === 'string' ? [['key', key]] : [])
      const row = typeof key === 'string' ? KEY_REQUESTS : LIST
      if (follow === true) await followCalls(row, args, options)
      else await runCommand(row, 'request', args, options)
    })
}
