import { parseArgs } from 'node:util'
import { callTable } from './call-table.ts'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { findKey } from './find-key.ts'
import { followRequests } from './follow-requests.ts'
import { type LogQuery, readCalls, textOf } from './logged-call.ts'
import { type Look, lookOf } from './look.ts'
import type { ManagementClient } from './management-client.ts'
import { print } from './print.ts'
import { createExportProgress } from './progress.ts'
import { expectDone } from './read-answer.ts'
import { RowCounter } from './row-counter.ts'
import { runCommand, UsageError } from './run-command.ts'

const HELP = `Usage
  tollgate requests [--key <key>] [--model <model>] [--status <status>] [--state <state>] [--min-cost <usd>]
                    [--flag <flag>] [--start <time>] [--end <time>] [--limit <n>] [--json | --csv] [--follow]
                    [--no-color]

Shows the log of calls, newest first: every call, whether its bodies are logged or not. Costs are in USD. With --url the
table begins with the calls that wait in that gateway for room under a cap or for credit.
  --key <key>        only calls with this API key, revoked or not: its id, its name, its beginning or its last four
                     characters
  --model <model>    only calls that asked for this model, or were served by it
  --status <status>  an HTTP status such as 429, or a state
  --state <state>    one of waiting, in_flight, settled, released, interrupted, refused. Calls that the gateway refused
                     are shown only so
  --min-cost <usd>   only calls that cost so much or more
  --flag <flag>      one of streamed, estimated, unpriced, overrun, priced_as_requested, credited, refused
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
  tollgate requests --key checkout --csv > calls.csv
  tollgate requests --state refused --key svc_live_Ab3dE9f
  tollgate requests --follow --min-cost 0.5

${CONNECTION_HELP}
${EXIT_HELP}`

const OPTION_NAMES = {
  model: '--model',
  status: '--status',
  state: '--state',
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
      state: { type: 'string' },
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
  const { key, model, status, state, flag, start, end, limit, json, csv } = values
  if (json && csv) throw new UsageError('--json and --csv cannot be used together')
  const filter = { model, status, state, min_cost_usd: values['min-cost'], flag }
  const look = lookOf(process.stdout, process.env, values['no-color'])
  const pathFor = async (client: ManagementClient) =>
    key === undefined ? '/gateway/v1/requests' : `/v1/keys/${await findKey(client, '--key', key)}/requests`
  if (values.follow) {
    if (csv) throw new UsageError('--follow prints a table, or with --json JSON lines, but no CSV')
    if (start !== undefined || end !== undefined)
      throw new UsageError('--follow goes on from now, without --start or --end')
    const never = [status, state, flag].find((each) => each !== undefined && UNFOLLOWED.has(each))
    if (never !== undefined)
      throw new UsageError(`--follow shows calls that were sent and have ended, so ${never} shows none`)
    const earlier = checkedLimit(limit ?? FOLLOW_LIMIT)
    return await withClient(values, async (client) => {
      const followed = { filter, options: OPTION_NAMES, limit: earlier, asJson: json }
      await followRequests(client, { path: await pathFor(client), ...followed }, look)
    })
  }
  const query = { ...filter, start, end, limit: limit ?? (json || csv ? undefined : TABLE_LIMIT) }
  await withClient(values, async (client) => {
    const path = await pathFor(client)
    if (json || csv) await exportCalls(client, path, query, csv ? 'csv' : 'ndjson')
    else await printTable(client, path, query, look)
  })
}

/** What is no end of a call that was sent. */
const UNFOLLOWED: ReadonlySet<string> = new Set(['waiting', 'in_flight', 'refused'])

async function printTable(
  client: ManagementClient,
  path: string,
  query: LogQuery,
  look: Look,
): Promise<void> {
  const table = callTable(look)
  let rows = 0
  const show = async (query: LogQuery) => {
    for await (const call of readCalls(client, path, query, OPTION_NAMES)) {
      await print(rows === 0 ? table.title + table.line(call) : table.line(call))
      rows += 1
    }
  }
  // Those that wait have not begun, and come before all that have.
  if (query['state'] === undefined && query['status'] === undefined && query['flag'] === undefined)
    await show({ ...query, state: 'waiting' })
  const left = Number(query['limit']) - rows
  if (!(left <= 0)) await show(rows === 0 ? query : { ...query, limit: String(left) })
  if (rows === 0) process.stderr.write('There is no such call.\n')
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
