import { z } from 'zod'
import { parseUsd } from '../kernel/money.ts'
import type { Look } from './look.ts'
import { alignAmounts, shownCount } from './shown-figures.ts'
import { shownText } from './shown-text.ts'
import { type Cell, type Column, tableLine, titleLine, widthsOf } from './table.ts'

const sums = {
  requests: z.string(),
  input_tokens: z.string(),
  output_tokens: z.string(),
  cache_read_tokens: z.string(),
  cache_write_tokens: z.string(),
  cost_usd: z.string(),
  list_cost_usd: z.string(),
  savings_usd: z.string(),
  credited_usd: z.string(),
  unpriced_requests: z.string(),
  estimated_requests: z.string(),
}

const bucket = z.object({
  day: z.string().optional(),
  model: z.string().optional(),
  key: z.string().optional(),
  key_name: z.string().optional(),
  ...sums,
})

/** Usage as the API answers it. Numbers are texts. */
export const usageAnswer = z.object({
  start: z.string(),
  end: z.string(),
  group_by: z.array(z.string()),
  data: z.array(bucket),
  total: z.object(sums),
  has_more: z.boolean(),
})

export type UsageAnswer = z.infer<typeof usageAnswer>
type Bucket = z.infer<typeof bucket>
type Sums = UsageAnswer['total']

const DIMENSIONS: readonly {
  readonly column: Column
  readonly of: (bucket: Bucket) => string | undefined
}[] = [
  { column: { title: 'day (UTC)', align: 'left' }, of: ({ day }) => day },
  { column: { title: 'model', align: 'left' }, of: ({ model }) => (model === '' ? '(none)' : model) },
  { column: { title: 'key', align: 'left' }, of: ({ key }) => key },
  { column: { title: 'name', align: 'left' }, of: ({ key_name }) => key_name },
]

interface Figure {
  readonly title: string
  readonly kind: 'count' | 'amount'
  of(sums: Sums): string
}

const FIGURES: readonly Figure[] = [
  { title: 'calls', kind: 'count', of: ({ requests }) => requests },
  { title: 'input', kind: 'count', of: ({ input_tokens }) => input_tokens },
  { title: 'cache read', kind: 'count', of: ({ cache_read_tokens }) => cache_read_tokens },
  { title: 'cache write', kind: 'count', of: ({ cache_write_tokens }) => cache_write_tokens },
  { title: 'output', kind: 'count', of: ({ output_tokens }) => output_tokens },
  { title: 'cost', kind: 'amount', of: ({ cost_usd }) => cost_usd },
  { title: 'at list price', kind: 'amount', of: ({ list_cost_usd }) => list_cost_usd },
  { title: 'credited', kind: 'amount', of: ({ credited_usd }) => credited_usd },
]

/** What a narrow terminal can do without, in this order, before there is no room for bars. */
const DISPENSABLE = ['credited', 'at list price', 'cache write', 'cache read', 'input', 'output']

/** The buckets, their sum, and on a terminal a bar for what each cost. */
export function renderUsage(report: UsageAnswer, look: Look): string {
  const { total, start, end } = report
  const data = report.data.filter(usedSomething)
  const title = `Usage from ${shownText(start)} to ${shownText(end)}, days in UTC, amounts in USD`
  const lines = [look.paint('bold', title), '']
  if (data.length === 0) lines.push('Nothing was used.')
  else lines.push(...tableLines({ ...report, data }, look), '', ...remarks(total))
  lines.push(...idleRemark(report.data))
  return `${lines.join('\n')}\n`
}

function tableLines(report: UsageAnswer, look: Look): string[] {
  const { data } = report
  const dimensions = DIMENSIONS.filter(({ of }) => data.some((each) => of(each) !== undefined))
  const isGrouped = dimensions.length > 0
  let figures = FIGURES.filter(
    ({ title, of }) => title === 'calls' || title === 'cost' || of(report.total) !== '0',
  )
  let table = layOut(report, dimensions, figures)
  for (const title of DISPENSABLE) {
    if (look.columns - table.width >= (isGrouped ? BAR_CHARS_WANTED : 0)) break
    figures = figures.filter((figure) => figure.title !== title)
    table = layOut(report, dimensions, figures)
  }
  const { columns, widths, rows } = table
  const bars = isGrouped && look.isTerminal ? barsOf(data, look, look.columns - table.width) : []
  const lines = rows.map(
    (row, at) => tableLine(columns, widths, styled(row, at === data.length), look) + (bars[at] ?? ''),
  )
  // One bucket is its own sum.
  return [titleLine(columns, widths, look), ...(isGrouped ? lines : lines.slice(-1))]
}

/** Calls to free endpoints are calls, but there is nothing to say of what they used. */
function usedSomething(bucket: Bucket): boolean {
  const used = FIGURES.some(({ title, of }) => title !== 'calls' && of(bucket) !== '0')
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
  /** Of the buckets, then of their sum. */
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
    ...figures.map(({ title }): Column => ({ title, align: 'right' })),
  ]
  const cells = figures.map(({ kind, of }) => {
    const values = [...data.map(of), of(total)]
    return (kind === 'amount' ? alignAmounts(values) : values.map(shownCount)).map((text) => shownText(text))
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

/** A bar for each bucket, as long as its cost is of the dearest one's. None where there is no room. */
function barsOf(data: readonly Bucket[], look: Look, room: number): string[] {
  // A line that fills the last column makes some terminals begin another one.
  const chars = Math.min(BAR_CHARS_MAX, room - 1)
  if (chars < BAR_CHARS_MIN) return []
  const costs = data.map(({ cost_usd }) => parseUsd(cost_usd) ?? 0n)
  const most = costs.reduce((a, b) => (b > a ? b : a), 0n)
  return costs.map((cost) => {
    if (cost <= 0n) return ''
    // Rounded up, because what cost anything is to be seen.
    const length = Number((cost * BigInt(chars) + most - 1n) / most)
    return `  ${look.paint('cyan', look.bar.repeat(length))}`
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
