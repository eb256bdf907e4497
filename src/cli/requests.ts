import { type Command, Option } from 'commander'
import type { RequestRecord } from '../api/request.ts'
import {
  type ApiList,
  type ConnectionOptions,
  connect,
  type Exact,
  type ShownOptions,
  withConnection,
  withJson,
} from './client.ts'
import { examples } from './command.ts'
import { findKey } from './key-record.ts'
import {
  type Field,
  outputStyle,
  print,
  printData,
  renderRows,
  shownCount,
  shownInstant,
  shownText,
  type TableCell,
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

  withJson(group.command('show <id>').description('show everything that is recorded of a call'))
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
  const named = { model, status, min_cost_usd: minCost, parent_id: parent, socket, start, end, limit }
  const filter = { ...named, state, flag }
  if (format !== undefined) return await printData(client.export(path, { ...filter, format }))
  // The API lists refused calls only by state. A status that we return finds them here too.
  const isError = status !== undefined && /^[45]/.test(status) && state === undefined && flag === undefined
  const lists = isError ? [filter, { ...filter, state: 'refused' }] : [filter]
  const pages = await Promise.all(
    lists.map(async (query) => (await client.get<ApiList<Request>>('list', path, query)).value),
  )
  const all = pages.flatMap(({ data }) => data).sort((a, b) => (a.started_at < b.started_at ? 1 : -1))
  const calls = all.slice(0, Number(limit ?? CALLS_SHOWN))
  if (calls.length === 0) process.stderr.write('There is no such call.\n')
  else await print(renderRows(FIELDS, calls, outputStyle(options), DISPENSABLE))
  if (calls.length < all.length || pages.some(({ has_more }) => has_more))
    process.stderr.write('There are more calls: raise --limit, or export all of them with --format csv.\n')
}

const CALLS_SHOWN = 100

const FIELDS: readonly Field<Request>[] = [
  { title: 'began (UTC)', of: ({ started_at }) => shownInstant(started_at) },
  { title: 'request', of: ({ id }) => shownText(id) },
  { title: 'key', of: ({ key_name, key_id }) => shownText(key_name ?? key_id, 30) },
  { title: 'model', of: ({ model_served, model }) => shownText(model_served ?? model ?? '-', 30) },
  { title: 'path', of: ({ path }) => shownText(path, 28) },
  { title: 'status', of: statusCell },
  { title: 'input', of: (call) => count(call, 'input_tokens'), kind: 'right' },
  { title: 'cached', of: (call) => count(call, 'cache_read_tokens'), kind: 'right' },
  { title: 'output', of: (call) => count(call, 'output_tokens'), kind: 'right' },
  { title: 'cost (USD)', of: ({ cost_usd }) => cost_usd, kind: 'amount' },
  { title: 'flags', of: (call) => ({ text: flagsOf(call), style: 'yellow' }) },
]

/** Columns to drop on a narrow terminal, in this order. */
const DISPENSABLE = ['path', 'cached', 'flags', 'key']

/** The status of the answer or refusal, else the state. */
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

async function showRequest(id: string, options: ShownOptions): Promise<void> {
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
