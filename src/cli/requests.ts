import { type Command, Option } from 'commander'
import type { RequestRecord } from '../api/request.ts'
import { type ApiList, type ConnectionOptions, connect, type Exact, withConnection } from './client.ts'
import { examples } from './command.ts'
import { findKey } from './key-record.ts'
import {
  alignAmounts,
  left,
  outputStyle,
  print,
  printData,
  renderTable,
  right,
  shownCount,
  shownInstant,
  shownText,
  type TableCell,
  type TerminalStyle,
} from './terminal.ts'

type Request = Exact<RequestRecord>

export interface RequestOptions extends ConnectionOptions {
  readonly key?: string
  readonly model?: string
  readonly status?: string
  readonly state?: string
  readonly minCost?: string
  readonly parent?: string
  readonly socket?: string
  readonly flag?: string
  readonly start?: string
  readonly end?: string
  readonly limit?: string
  readonly format?: 'csv' | 'ndjson'
  readonly color: boolean
}

/** The request log over HTTP. */
export function register(group: Command): void {
  addRequestOptions(
    group.command('list', { isDefault: true }).description('list or export calls, newest first'),
  )
    .option('--key <key>', 'only calls of this key: its id, name, prefix or last four characters')
    .addHelpText(
      'after',
      examples(
        'tollgate requests --status 429 --start 2026-11-01',
        'tollgate requests --key checkout --format csv > calls.csv',
        'tollgate requests --state refused --key svc_live_Ab3dE9f',
      ),
    )
    .action(printRequests)

  withConnection(group.command('show <id>').description('show everything that is recorded of a call'))
    .option('--json', "print the API's answer")
    .option('--no-color', 'no colour on a terminal')
    .addHelpText('after', examples('tollgate requests show req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'))
    .action(showRequest)
}

export function addRequestOptions(command: Command): Command {
  return withConnection(command)
    .option('--model <model>', 'only calls that asked for this model or were served by it')
    .option('--status <status>', 'an HTTP status such as 429')
    .option('--state <state>', 'waiting, in_flight, deferred, settled, released, interrupted or refused')
    .option('--min-cost <usd>', 'only calls that cost this much or more')
    .option('--parent <id>', 'only the records of this batch')
    .option('--socket <id>', 'only the turns of this WebSocket')
    .option(
      '--flag <flag>',
      'streamed, estimated, unpriced, overrun, priced_as_requested, credited or refused',
    )
    .option('--start <time>', 'calls from then on (UTC): 2026-11-01 or 2026-11-01T12:00:00Z')
    .option('--end <time>', 'calls before then; of a day, the whole day')
    .option('--limit <n>', 'at most this many (100; no limit with --format)')
    .addOption(
      new Option('--format <format>', 'export everything that is recorded').choices(['csv', 'ndjson']),
    )
    .option('--no-color', 'no colour on a terminal')
}

export async function printRequests(options: RequestOptions): Promise<void> {
  const { key, model, status, state, minCost, parent, socket, flag, start, end, limit, format } = options
  const client = connect(options, process.env)
  const path = key === undefined ? '/gateway/v1/requests' : `/v1/keys/${await findKey(client, key)}/requests`
  const filter = {
    model,
    status,
    state,
    min_cost_usd: minCost,
    parent_id: parent,
    socket,
    flag,
    start,
    end,
    limit,
  }
  if (format !== undefined) return await printData(client.export(path, { ...filter, format }))
  const { value } = await client.get<ApiList<Request>>('list', path, filter)
  if (value.data.length === 0) process.stderr.write('There is no such call.\n')
  else await print(requestTable(value.data, outputStyle(options)))
  if (value.has_more)
    process.stderr.write('There are more calls: raise --limit, or export all of them with --format csv.\n')
}

const COLUMNS = [
  left('began (UTC)'),
  left('request'),
  left('key'),
  left('model'),
  left('path'),
  left('status'),
  right('input'),
  right('cached'),
  right('output'),
  right('cost (USD)'),
  left('flags'),
]

/** The columns that a narrow terminal can do without, in this order. */
const DISPENSABLE = ['path', 'cached', 'flags', 'key']

function requestTable(calls: readonly Request[], style: TerminalStyle): string {
  const costs = alignAmounts(calls.map(({ cost_usd }) => cost_usd ?? '0'))
  const rows = calls.map((call, at): TableCell[] => [
    shownInstant(call.started_at),
    shownText(call.id),
    shownText(call.key_name ?? call.key_id, 30),
    shownText(call.model_served ?? call.model ?? '-', 30),
    shownText(call.path, 28),
    statusCell(call),
    count(call, 'input_tokens'),
    count(call, 'cache_read_tokens'),
    count(call, 'output_tokens'),
    call.cost_usd === null ? '-' : (costs[at] ?? ''),
    { text: flagsOf(call), style: 'yellow' },
  ])
  return renderTable(COLUMNS, rows, style, DISPENSABLE)
}

/** The status of upstream's answer or of our refusal, or the state of a call without one. */
function statusCell({ status, state }: Request): TableCell {
  if (state === 'waiting' || state === 'in_flight' || state === 'deferred')
    return { text: state.replace('_', ' '), style: 'yellow' }
  if (status === null || state === 'interrupted') return { text: shownText(state, 11), style: 'red' }
  return { text: shownText(status, 11), style: /^[123]/.test(status) ? 'green' : 'red' }
}

function count({ usage }: Request, name: keyof NonNullable<Request['usage']>): string {
  const tokens = usage?.[name]
  return tokens === undefined ? '-' : shownText(shownCount(tokens))
}

const FLAGS = ['streamed', 'estimated', 'unpriced', 'overrun', 'priced_as_requested', 'credited'] as const

function flagsOf(call: Request): string {
  const code = call.code === null ? [] : [shownText(call.code)]
  return [...code, ...FLAGS.filter((flag) => call[flag])].join(' ')
}

async function showRequest(
  id: string,
  options: ConnectionOptions & { json?: true; color: boolean },
): Promise<void> {
  const path = `/gateway/v1/requests/${encodeURIComponent(id)}`
  const { value, text } = await connect(options, process.env).get<Request>('request', path)
  if (options.json) return await printData([`${text}\n`])
  const style = outputStyle(options)
  const { usage, object: _, ...fields } = value
  const lines = Object.entries({ ...fields, ...usage })
    .filter(([, field]) => field !== null && field !== false)
    .map(([name, field]) => `${style.paint('dim', name.padEnd(22))} ${shownText(String(field), 200)}\n`)
  await print(lines.join(''))
}
