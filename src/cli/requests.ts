import type { Command } from 'commander'
import { connect, type Options } from './client.ts'
import { examples } from './command.ts'
import { findKey } from './find-key.ts'
import {
  type FieldOption,
  type Listing,
  printList,
  showAnswer,
  withConnection,
  withFilters,
} from './records.ts'

const STATES = 'waiting, in_flight, deferred, settled, released, interrupted or refused'
const FLAGS = 'streamed, estimated, unpriced, overrun, priced_as_requested, credited or refused'

const FILTERS: readonly FieldOption[] = [
  ['--model <model>', 'model', 'only calls that asked for this model or were served by it'],
  ['--status <status>', 'status', 'an HTTP status such as 429'],
  ['--state <state>', 'state', STATES],
  ['--min-cost <usd>', 'min_cost_usd', 'only calls that cost this much or more'],
  ['--parent <id>', 'parent_id', 'only the records of this batch'],
  ['--socket <id>', 'socket', 'only the turns of this WebSocket'],
  ['--flag <flag>', 'flag', FLAGS],
  ['--start <time>', 'start', 'calls from then on (UTC): 2026-11-01 or 2026-11-01T12:00:00Z'],
  ['--end <time>', 'end', 'calls before then; of a day, the whole day'],
]

const PATH = '/gateway/v1/requests'

const CALLS: Omit<Listing, 'path'> = {
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

/** The request log over HTTP. */
export function register(group: Command): void {
  withRequestFilters(
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
    .addHelpText('after', examples('tollgate requests show req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'))
    .action((id: string, options: Options) =>
      showAnswer(options, 'request', 'GET', `${PATH}/${encodeURIComponent(id)}`),
    )
}

export function withRequestFilters(command: Command): Command {
  return withFilters(command, FILTERS, ['csv', 'ndjson'])
}

export async function printRequests(options: Options): Promise<void> {
  const { key } = options
  const path = typeof key === 'string' ? `/v1/keys/${await findKey(connect(options), key)}/requests` : PATH
  await printList({ ...CALLS, path }, FILTERS, options)
}
