import { parseArgs } from 'node:util'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { lookOf } from './look.ts'
import type { ManagementClient } from './management-client.ts'
import { print } from './print.ts'
import { createExportProgress } from './progress.ts'
import { expectDone, readAnswer } from './read-answer.ts'
import { RowCounter } from './row-counter.ts'
import { runCommand, UsageError } from './run-command.ts'
import { renderUsage, usageAnswer } from './usage-table.ts'

const HELP = `Usage
  tollgate usage [--start <date>] [--end <date>] [--group-by <dimensions>] [--json | --csv] [--no-color]

Shows what was used and what it cost, in USD, from the sums that the books keep. A call belongs to the day (UTC) on
which it began; calls in flight are not in it yet.
  --start <date>           the first day, such as 2026-11-01; the first of this month unless given
  --end <date>             the last day; today unless given
  --group-by <dimensions>  day, model, key, or several with commas between them; none for one sum. day unless given
  --json                   print the API's answer instead
  --csv                    print all rows as CSV instead
  --no-color               no colour on a terminal either; the variable NO_COLOR says the same

Examples
  tollgate usage
  tollgate usage --group-by model --start 2026-11-01 --end 2026-11-30
  tollgate usage --group-by key,day --csv > usage.csv

${CONNECTION_HELP}
${EXIT_HELP}`

const OPTION_NAMES = { start: '--start', end: '--end', group_by: '--group-by' }
/** The most that the API answers at once. */
const ROWS_MAX = 10_000

type UsageQuery = Readonly<Record<'start' | 'end' | 'group_by' | 'limit', string | undefined>>

/** What was used, as a table with bars, as JSON or as CSV. */
export async function usage(args: readonly string[]): Promise<void> {
  await runCommand({ name: 'usage', help: HELP, run }, args)
}

async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      ...CONNECTION_OPTIONS,
      start: { type: 'string' },
      end: { type: 'string' },
      'group-by': { type: 'string', default: 'day' },
      json: { type: 'boolean', default: false },
      csv: { type: 'boolean', default: false },
      'no-color': { type: 'boolean', default: false },
    },
  })
  if (values.json && values.csv) throw new UsageError('--json and --csv cannot be used together')
  const { start, end, 'group-by': groupBy } = values
  const query = { start, end, group_by: groupBy === 'none' ? undefined : groupBy, limit: String(ROWS_MAX) }
  await withClient(values, async (client) => {
    if (values.csv) return await printCsv(client, query)
    const answer = await client.ask('GET', '/v1/usage', { query })
    const report = readAnswer(client, answer, usageAnswer, OPTION_NAMES)
    const look = lookOf(process.stdout, process.env, values['no-color'])
    await print(values.json ? `${answer.text}\n` : renderUsage(report, look))
    if (report.has_more)
      process.stderr.write(
        `These are the first ${ROWS_MAX.toLocaleString('en-US')} rows. --csv has them all.\n`,
      )
  })
}

/** All pages as one file. */
async function printCsv(client: ManagementClient, query: UsageQuery): Promise<void> {
  const progress = createExportProgress('Rows:')
  const counter = new RowCounter('csv')
  try {
    let after: string | undefined
    do {
      const answer = await client.ask('GET', '/v1/usage', { query: { ...query, format: 'csv', after } })
      expectDone(client, answer, OPTION_NAMES)
      const page = Buffer.from(
        after === undefined ? answer.text : answer.text.slice(answer.text.indexOf('\n') + 1),
      )
      await print(page)
      counter.add(page)
      progress.show(counter.rows, null)
      after = [...answer.headers].find(([name]) => /^x-.*-next$/.test(name))?.[1]
    } while (after !== undefined)
  } finally {
    progress.end()
  }
}
