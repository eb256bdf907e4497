import { parseUsd } from '../kernel/money.ts'
import { array, boolean, type Infer, object, optional, string } from './answer-schema.ts'
import { type Api, defineApiCommand, printAnswer } from './api.ts'
import { flag, NO_COLOR, option, UsageError } from './command.ts'
import { printExport } from './progress.ts'
import {
  alignAmounts,
  type Cell,
  type Column,
  left,
  outputStyle,
  right,
  shownCount,
  shownText,
  type TerminalStyle,
  tableLine,
  titleLine,
  widthsOf,
} from './terminal.ts'
import type { Asked } from './transport.ts'

/** The most rows that the API answers at once. */
const ROWS_MAX = 10_000

/** The usage as a table with bars, as JSON or as CSV. */
export const command = defineApiCommand({
  name: 'usage',
  usage:
    'tollgate usage [--start <date>] [--end <date>] [--group-by <dimensions>] [--json | --csv] [--no-color]',
  about: `Shows what was used and what it cost, in USD, from the sums that the books keep. A call belongs to the day (UTC) on
which it began; calls in flight are not in it yet.`,
  options: {
    start: option('<date>', 'the first day, such as 2026-11-01; the first of this month unless given'),
    end: option('<date>', 'the last day; today unless given'),
    'group-by': option(
      '<dimensions>',
      'day, model, key, or several with commas between them; none for one sum. day unless given',
    ),
    json: flag("print the API's answer instead"),
    csv: flag('print all rows as CSV instead'),
    'no-color': NO_COLOR,
  },
  examples: [
    'tollgate usage',
    'tollgate usage --group-by model --start 2026-11-01 --end 2026-11-30',
    'tollgate usage --group-by key,day --csv > usage.csv',
  ],
  run(values) {
    if (values.json && values.csv) throw new UsageError('--json and --csv cannot be used together')
    const { start, end, 'group-by': groupBy = 'day' } = values
    const query = { start, end, group_by: groupBy === 'none' ? undefined : groupBy, limit: String(ROWS_MAX) }
    return async (api) => {
      if (values.csv) return await printExport(csvPages(api, query), 'csv', 'Rows:')
      const answer = await api.ask(usageAnswer, 'GET', '/v1/usage', { query })
      await printAnswer(values, answer, (report) => renderUsage(report, outputStyle(values)))
      if (answer.value.has_more)
        process.stderr.write(`These are the first ${shownCount(ROWS_MAX)} rows. --csv has them all.\n`)
    }
  },
})

/** All pages as one file: the title line is that of the first page. */
async function* csvPages(api: Api, query: NonNullable<Asked['query']>): AsyncGenerator<Buffer> {
  let after: string | undefined
  do {
    const asked = { query: { ...query, format: 'csv', after } }
    const { text, headers } = await api.askText('GET', '/v1/usage', asked)
    yield Buffer.from(after === undefined ? text : text.slice(text.indexOf('\n') + 1))
    after = [...headers].find(([name]) => /^x-.*-next$/.test(name))?.[1]
  } while (after !== undefined)
}

const sums = {
  requests: string,
  input_tokens: string,
  output_tokens: string,
  cache_read_tokens: string,
  cache_write_tokens: string,
  cost_usd: string,
  list_cost_usd: string,
  savings_usd: string,
  credited_usd: string,
  unpriced_requests: string,
  estimated_requests: string,
}

const bucket = object({
  day: optional(string),
  model: optional(string),
  key: optional(string),
  key_name: optional(string),
  ...sums,
})

/** Usage as the API answers it. Numbers are texts. */
const usageAnswer = object({
  start: string,
  end: string,
  group_by: array(string),
  data: array(bucket),
  total: object(sums),
  has_more: boolean,
})

type UsageAnswer = Infer<typeof usageAnswer>
type Bucket = Infer<typeof bucket>
type Sums = UsageAnswer['total']

const DIMENSIONS: readonly {
  readonly column: Column
  readonly of: (bucket: Bucket) => string | undefined
}[] = [
  { column: left('day (UTC)'), of: ({ day }) => day },
  { column: left('model'), of: ({ model }) => (model === '' ? '(none)' : model) },
  { column: left('key'), of: ({ key }) => key },
  { column: left('name'), of: ({ key_name }) => key_name },
]

interface Figure {
  readonly title: string
  readonly of: keyof Sums
}

/** Figures whose names end with `_usd` are amounts in USD; the others are counts. */
const FIGURES: readonly Figure[] = [
  { title: 'calls', of: 'requests' },
  { title: 'input', of: 'input_tokens' },
  { title: 'cache read', of: 'cache_read_tokens' },
  { title: 'cache write', of: 'cache_write_tokens' },
  { title: 'output', of: 'output_tokens' },
  { title: 'cost', of: 'cost_usd' },
  { title: 'at list price', of: 'list_cost_usd' },
  { title: 'credited', of: 'credited_usd' },
]

/** Columns that a narrow terminal can do without, in this order, before there is no room for bars. */
const DISPENSABLE = ['credited', 'at list price', 'cache write', 'cache read', 'input', 'output']

/** The buckets, their sum, and on a terminal a bar for the cost of each bucket. */
function renderUsage(report: UsageAnswer, style: TerminalStyle): string {
  const { total, start, end } = report
  const data = report.data.filter(usedSomething)
  const title = `Usage from ${shownText(start)} to ${shownText(end)}, days in UTC, amounts in USD`
  const lines = [style.paint('bold', title), '']
  if (data.length === 0) lines.push('Nothing was used.')
  else lines.push(...tableLines({ ...report, data }, style), '', ...remarks(total))
  lines.push(...idleRemark(report.data))
  return `${lines.join('\n')}\n`
}

function tableLines(report: UsageAnswer, style: TerminalStyle): string[] {
  const { data } = report
  const dimensions = DIMENSIONS.filter(({ of }) => data.some((each) => of(each) !== undefined))
  const isGrouped = dimensions.length > 0
  let figures = FIGURES.filter(
    ({ title, of }) => title === 'calls' || title === 'cost' || report.total[of] !== '0',
  )
  let table = layOut(report, dimensions, figures)
  for (const title of DISPENSABLE) {
    if (style.columns - table.width >= (isGrouped ? BAR_CHARS_WANTED : 0)) break
    figures = figures.filter((figure) => figure.title !== title)
    table = layOut(report, dimensions, figures)
  }
  const { columns, widths, rows } = table
  const bars = isGrouped && style.isTerminal ? barsOf(data, style, style.columns - table.width) : []
  const lines = rows.map(
    (row, at) => tableLine(columns, widths, styled(row, at === data.length), style) + (bars[at] ?? ''),
  )
  // Without groups there is one bucket, which is its own sum.
  return [titleLine(columns, widths, style), ...(isGrouped ? lines : lines.slice(-1))]
}

/** Calls to free endpoints are counted as calls, but have no usage to show. */
function usedSomething(bucket: Bucket): boolean {
  const used = FIGURES.some(({ title, of }) => title !== 'calls' && bucket[of] !== '0')
  return used || bucket.unpriced_requests !== '0'
}

function idleRemark(data: readonly Bucket[]): string[] {
  const idle = data.filter((bucket) => !usedSomething(bucket))
  const calls = idle.reduce((sum, { requests }) => sum + (/^\d+$/.test(requests) ? BigInt(requests) : 0n), 0n)
  if (calls === 0n) return []
  return [
    `Not listed: ${shownCount(String(calls))} ${calls === 1n ? 'call' : 'calls'} that used nothing and cost nothing.`,
  ]
}

interface Layout {
  readonly columns: readonly Column[]
  readonly widths: readonly number[]
  /** The rows of the buckets, then the row of their sum. */
  readonly rows: readonly (readonly string[])[]
  readonly width: number
}

function layOut(
  { data, total }: UsageAnswer,
  dimensions: typeof DIMENSIONS,
  figures: readonly Figure[],
): Layout {
  const columns: readonly Column[] = [
    ...dimensions.map(({ column }) => column),
    ...figures.map(({ title }) => right(title)),
  ]
  const cells = figures.map(({ of }) => {
    const values = [...data, total].map((sums) => sums[of])
    return (of.endsWith('_usd') ? alignAmounts(values) : values.map(shownCount)).map((text) =>
      shownText(text),
    )
  })
  const names = [
    ...data.map((bucket) => dimensions.map(({ of }) => shownText(of(bucket) ?? '', 40))),
    dimensions.map((_, column) => (column === 0 ? 'total' : '')),
  ]
  const rows = names.map((row, at) => [...row, ...cells.map((column) => column[at] ?? '')])
  const widths = widthsOf(columns, rows)
  return { columns, widths, rows, width: widths.reduce((sum, width) => sum + width + 2, 0) }
}

function styled(row: readonly string[], isTotal: boolean): readonly Cell[] {
  return isTotal ? row.map((text) => ({ text, style: 'bold' })) : row
}

const BAR_CHARS_MAX = 40
const BAR_CHARS_WANTED = 20
const BAR_CHARS_MIN = 8

/** A bar for each bucket, in proportion to the cost of the dearest bucket. No bars where there is no room. */
function barsOf(data: readonly Bucket[], style: TerminalStyle, room: number): string[] {
  // A line that fills the last column makes some terminals begin another one.
  const chars = Math.min(BAR_CHARS_MAX, room - 1)
  if (chars < BAR_CHARS_MIN) return []
  const costs = data.map(({ cost_usd }) => parseUsd(cost_usd) ?? 0n)
  const most = costs.reduce((a, b) => (b > a ? b : a), 0n)
  return costs.map((cost) => {
    if (cost <= 0n) return ''
    // Lengths are rounded up, because a bucket that cost anything is to have a visible bar.
    const length = Number((cost * BigInt(chars) + most - 1n) / most)
    return `  ${style.paint('cyan', style.bar.repeat(length))}`
  })
}

function remarks(total: Sums): string[] {
  const list = parseUsd(total.list_cost_usd) ?? 0n
  const saved = parseUsd(total.savings_usd) ?? 0n
  const percent = list > 0n ? ` (${Number((saved * 1_000n) / list) / 10} %)` : ''
  return [
    `Saved ${shownText(total.savings_usd)} of ${shownText(total.list_cost_usd)} USD at list prices${percent}.`,
    ...(total.credited_usd === '0'
      ? []
      : [`Given back later: ${shownText(total.credited_usd)} USD; the cost still has it.`]),
    ...(total.unpriced_requests === '0'
      ? []
      : [
          `Calls without a price of their own: ${shownCount(total.unpriced_requests)}. See tollgate rerate --help.`,
        ]),
    ...(total.estimated_requests === '0'
      ? []
      : [`Calls whose usage was estimated: ${shownCount(total.estimated_requests)}.`]),
  ]
}
