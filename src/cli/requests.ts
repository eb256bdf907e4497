import { type Api, defineApiCommand } from './api.ts'
import { flag, NO_COLOR, option, UsageError } from './command.ts'
import { followRequests } from './follow-calls.ts'
import { findKey } from './key-answer.ts'
import { callTable, type LogQuery, readCalls } from './logged-call.ts'
import { type ExportFormat, printExport } from './progress.ts'
import { outputStyle, print, type TerminalStyle } from './terminal.ts'

const TABLE_LIMIT = '100'
const FOLLOW_LIMIT = '10'

/** The log of calls as a table, as JSON lines or as CSV, once or as calls end. */
export const command = defineApiCommand({
  name: 'requests',
  usage:
    'tollgate requests [--key <key>] [--model <model>] [--status <status>] [--state <state>] [--min-cost <usd>] ' +
    '[--parent <request id>] [--socket <request id>] [--flag <flag>] [--start <time>] [--end <time>] [--limit <n>] [--json | --csv] [--follow] [--no-color]',
  about: `Shows the log of calls, newest first: every call, whether its bodies are logged or not. Costs are in USD. With --url the
table begins with the calls that wait in that gateway for room under a cap or for credit.`,
  options: {
    key: option(
      '<key>',
      'only calls with this API key, revoked or not: its id, its name, its beginning or its last four characters',
    ),
    model: option('<model>', 'only calls that asked for this model, or were served by it'),
    status: option('<status>', 'an HTTP status such as 429, or a state'),
    state: option(
      '<state>',
      'one of waiting, in_flight, deferred, settled, released, interrupted, refused. Calls that the gateway refused are shown ' +
        'only so',
    ),
    'min-cost': option('<usd>', 'only calls that cost so much or more', 'min_cost_usd'),
    parent: option('<request id>', 'only the records of this batch, one for each model', 'parent_id'),
    socket: option('<request id>', 'only the turns of the WebSocket with this handshake, and the handshake'),
    flag: option(
      '<flag>',
      'one of streamed, estimated, unpriced, overrun, priced_as_requested, credited, refused',
    ),
    start: option(
      '<time>',
      'calls that began then or later: a day such as 2026-11-01, or an instant such as 2026-11-01T12:00:00Z, in UTC',
    ),
    end: option('<time>', 'calls that began before then; of a day, the whole day'),
    limit: option(
      '<n>',
      'at most this many. The table has 100 unless given, --json and --csv have all of them',
    ),
    json: flag('print a JSON object on each line instead, with everything that is known of the call'),
    csv: flag('print the same as CSV'),
    follow: flag('show the newest 10 (or --limit), then each further call when it has ended, until Ctrl-C'),
    'no-color': NO_COLOR,
  },
  examples: [
    'tollgate requests --status 429 --start 2026-11-01',
    'tollgate requests --key checkout --csv > calls.csv',
    'tollgate requests --state refused --key svc_live_Ab3dE9f',
    'tollgate requests --follow --min-cost 0.5',
  ],
  run(values) {
    const { key, model, status, state, parent, socket, flag, start, end, limit, json, csv } = values
    if (json && csv) throw new UsageError('--json and --csv cannot be used together')
    const filter = { model, status, state, min_cost_usd: values['min-cost'], parent_id: parent, socket, flag }
    const style = outputStyle(values)
    const pathFor = async (api: Api) =>
      key === undefined ? '/gateway/v1/requests' : `/v1/keys/${await findKey(api, '--key', key)}/requests`
    if (values.follow) {
      if (csv) throw new UsageError('--follow prints a table, or with --json JSON lines, but no CSV')
      if (start !== undefined || end !== undefined)
        throw new UsageError('--follow goes on from now, without --start or --end')
      const never = [status, state, flag].find((each) => each !== undefined && UNFOLLOWED.has(each))
      if (never !== undefined)
        throw new UsageError(`--follow shows calls that were sent and have ended, so ${never} shows none`)
      const earlier = checkedLimit(limit ?? FOLLOW_LIMIT)
      return async (api) => {
        const path = await pathFor(api)
        await followRequests(api, { path, filter, limit: earlier, asJson: json }, style)
      }
    }
    const query = { ...filter, start, end, limit: limit ?? (json || csv ? undefined : TABLE_LIMIT) }
    return async (api) => {
      const path = await pathFor(api)
      if (!json && !csv) return await printTable(api, path, query, style)
      const format: ExportFormat = csv ? 'csv' : 'ndjson'
      await printExport(await api.stream(path, { ...query, format }), format, 'Calls:')
    }
  },
})

/** Filters that --follow refuses: these states are no end of a call that was sent. */
const UNFOLLOWED: ReadonlySet<string> = new Set(['waiting', 'in_flight', 'deferred', 'refused'])

async function printTable(api: Api, path: string, query: LogQuery, style: TerminalStyle): Promise<void> {
  const table = callTable(style)
  let rows = 0
  const show = async (query: LogQuery) => {
    for await (const call of readCalls(api, path, query)) {
      await print(rows === 0 ? table.title + table.line(call) : table.line(call))
      rows += 1
    }
  }
  // Waiting calls have not begun, and come before all calls that have.
  if (query['state'] === undefined && query['status'] === undefined && query['flag'] === undefined)
    await show({ ...query, state: 'waiting' })
  const left = Number(query['limit']) - rows
  if (!(left <= 0)) await show(rows === 0 ? query : { ...query, limit: String(left) })
  if (rows === 0) process.stderr.write('There is no such call.\n')
}

/** The API checks limits too, but does not take 0, which with --follow means no earlier call at all. */
function checkedLimit(text: string): number {
  if (/^\d{1,4}$/.test(text) && Number(text) <= 1_000) return Number(text)
  throw new UsageError('--limit must be a whole number from 0 to 1000 with --follow')
}
