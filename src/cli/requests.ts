import { parseArgs } from 'node:util'
import { callTable } from './call-table.ts'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { followRequests } from './follow-requests.ts'
import { checkedKeyId } from './key-answer.ts'
import { type LogQuery, readCalls, textOf } from './logged-call.ts'
import { lookOf } from './look.ts'
import type { ManagementClient } from './management-client.ts'
import { print } from './print.ts'
import { createExportProgress } from './progress.ts'
import { expectDone } from './read-answer.ts'
import { RowCounter } from './row-counter.ts'
import { runCommand, UsageError } from './run-command.ts'

const HELP = `Usage
  tollgate requests [--key <id>] [--model <model>] [--status <status>] [--min-cost <usd>] [--flag <flag>]
                    [--start <time>] [--end <time>] [--limit <n>] [--json | --csv] [--follow] [--no-color]

Shows the log of calls, newest first: every call, whether its bodies are logged or not. Costs are in USD.
  --key <id>         only calls with this API key, revoked or not
  --model <model>    only calls that asked for this model, or were served by it
  --status <status>  an HTTP status such as 429, or one of in_flight, settled, released, interrupted
  --min-cost <usd>   only calls that cost so much or more
  --flag <flag>      one of streamed, estimated, unpriced, overrun, priced_as_requested, credited
  --start <time>     calls that began then or later: a day such as 2026-11-01, or an instant such as
                     2026-11-01T12:00:00Z, in UTC
  --end <time>       calls that began before then; of a day, the whole day
  --limit <n>        at most this many. The table has 100 unless given, --json and --csv have all of them
  --json             print a JSON object on each line instead, with everything that is known of the call
  --csv              print the same as CSV
  --follow           show the newest 10 (or --limit), then each further call when it has ended, until Ctrl-C
  --no-color         no colour on a terminal either; the variable NO_COLOR says the same

Examples
  tollgate requests --status 429 --start 2026-11-01
  tollgate requests --key key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --csv > calls.csv
  tollgate requests --follow --min-cost 0.5

${CONNECTION_HELP}
${EXIT_HELP}`

const OPTION_NAMES = {
  model: '--model',
  status: '--status',
  min_cost_usd: '--min-cost',
  flag: '--flag',
  start: '--start',
  end: '--end',
  limit: '--limit',
}

const TABLE_LIMIT = '100'
const FOLLOW_LIMIT = '10'

/** The log of calls as a table, as JSON lines or as CSV, once or as calls end. */
export async function requests(args: readonly string[]): Promise<void> {
  await runCommand({ name: 'requests', help: HELP, run }, args)
}

async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      ...CONNECTION_OPTIONS,
      key: { type: 'string' },
      model: { type: 'string' },
      status: { type: 'string' },
      'min-cost': { type: 'string' },
      flag: { type: 'string' },
      start: { type: 'string' },
      end: { type: 'string' },
      limit: { type: 'string' },
      json: { type: 'boolean', default: false },
      csv: { type: 'boolean', default: false },
      follow: { type: 'boolean', default: false },
      'no-color': { type: 'boolean', default: false },
    },
  })
  const { key, model, status, flag, start, end, limit, json, csv } = values
  if (json && csv) throw new UsageError('--json and --csv cannot be used together')
  const path = key === undefined ? '/gateway/v1/requests' : `/v1/keys/${checkedKeyId('--key', key)}/requests`
  const filter = { model, status, min_cost_usd: values['min-cost'], flag }
  const look = lookOf(process.stdout, process.env, values['no-color'])
  if (values.follow) {
    if (csv) throw new UsageError('--follow prints a table, or with --json JSON lines, but no CSV')
    if (start !== undefined || end !== undefined)
      throw new UsageError('--follow goes on from now, without --start or --end')
    if (status === 'in_flight')
      throw new UsageError('--follow shows calls that have ended, so --status in_flight shows none')
    const earlier = checkedLimit(limit ?? FOLLOW_LIMIT)
    const followed = { path, filter, options: OPTION_NAMES, limit: earlier, asJson: json }
    return await withClient(values, (client) => followRequests(client, followed, look))
  }
  const query = { ...filter, start, end, limit: limit ?? (json || csv ? undefined : TABLE_LIMIT) }
  await withClient(values, async (client) => {
    if (json || csv) return await exportCalls(client, path, query, csv ? 'csv' : 'ndjson')
    const table = callTable(look)
    let isEmpty = true
    for await (const call of readCalls(client, path, query, OPTION_NAMES)) {
      await print(isEmpty ? table.title + table.line(call) : table.line(call))
      isEmpty = false
    }
    if (isEmpty) process.stderr.write('There is no such call.\n')
  })
}

/** As it comes, so that millions of calls need no more memory than a few. */
async function exportCalls(
  client: ManagementClient,
  path: string,
  query: LogQuery,
  format: 'csv' | 'ndjson',
): Promise<void> {
  const { status, chunks } = await client.stream(path, { ...query, format })
  if (status !== 200) expectDone(client, { status, text: await textOf(chunks) }, OPTION_NAMES)
  const progress = createExportProgress('Calls:')
  const counter = new RowCounter(format)
  try {
    for await (const chunk of chunks) {
      await print(chunk)
      counter.add(chunk)
      progress.show(counter.rows, null)
    }
  } finally {
    progress.end()
  }
}

/** The API would say the same, but not of 0, which here is no earlier call at all. */
function checkedLimit(text: string): number {
  if (/^\d{1,4}$/.test(text) && Number(text) <= 1_000) return Number(text)
  throw new UsageError('--limit must be a whole number from 0 to 1000 with --follow')
}
