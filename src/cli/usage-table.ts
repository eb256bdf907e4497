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

const COUNTS: readonly { readonly title: string; readonly of: (sums: Sums) => string }[] = [
  { title: 'calls', of: ({ requests }) => requests },
  { title: 'input', of: ({ input_tokens }) => input_tokens },
  { title: 'cached', of: ({ cache_read_tokens: read, cache_write_tokens: write }) => add(read, write) },
  { title: 'output', of: ({ output_tokens }) => output_tokens },
]

const AMOUNTS: readonly { readonly title: string; readonly of: (sums: Sums) => string }[] = [
  { title: 'cost', of: ({ cost_usd }) => cost_usd },
  { title: 'at list price', of: ({ list_cost_usd }) => list_cost_usd },
  { title: 'credited', of: ({ credited_usd }) => credited_usd },
]

/** The buckets, their sum, and on a terminal a bar for what each cost. */
export function renderUsage(report: UsageAnswer, look: Look): string {
  const { data, total, start, end } = report
  const title = `Usage from ${shownText(start)} to ${shownText(end)}, days in UTC, amounts in USD`
  const lines = [look.paint('bold', title), '']
  if (data.length === 0) lines.push('Nothing was used.')
  else lines.push(...tableLines(report, look), '', ...remarks(total))
  return `${lines.join('\n')}\n`
}

function tableLines({ data, total }: UsageAnswer, look: Look): string[] {
  const dimensions = DIMENSIONS.filter(({ of }) => data.some((each) => of(each) !== undefined))
  const columns: Column[] = [
    ...dimensions.map(({ column }) => column),
    ...[...COUNTS, ...AMOUNTS].map(({ title }): Column => ({ title, align: 'right' })),
  ]
  const all = [...data, total]
  const amounts = AMOUNTS.map(({ of }) => alignAmounts(all.map(of)))
  const rows = all.map((each, at) => [
    ...dimensions.map(({ of }, column) => nameOf(each, of, column)),
    ...COUNTS.map(({ of }) => shownText(shownCount(of(each)))),
    ...amounts.map((column) => shownText(column[at] ?? '')),
  ])
  const widths = widthsOf(columns, rows)
  const bars = barsOf(data, look, widths)
  const lines = rows.map(
    (row, at) => tableLine(columns, widths, styled(row, at === data.length), look) + (bars[at] ?? ''),
  )
  // One bucket is its own sum.
  return [titleLine(columns, widths, look), ...(dimensions.length === 0 ? lines.slice(1) : lines)]

  function nameOf(each: Bucket | Sums, of: (bucket: Bucket) => string | undefined, column: number): string {
    if (each === total) return column === 0 ? 'total' : ''
    return shownText(of(each) ?? '', 40)
  }
}

function styled(row: readonly string[], isTotal: boolean): readonly Cell[] {
  return isTotal ? row.map((text) => ({ text, style: 'bold' })) : row
}

const BAR_CHARS_MAX = 40
const BAR_CHARS_MIN = 8

/** A bar for each bucket, as long as its cost is of the dearest one's. None in a pipe or where there is no room. */
function barsOf(data: readonly Bucket[], look: Look, widths: readonly number[]): string[] {
  const taken = widths.reduce((sum, width) => sum + width + 2, 0)
  const chars = BigInt(Math.min(BAR_CHARS_MAX, Math.max(0, look.isTerminal ? look.columns - taken - 1 : 0)))
  if (chars < BAR_CHARS_MIN || data.length < 2) return []
  const costs = data.map(({ cost_usd }) => parseUsd(cost_usd) ?? 0n)
  const most = costs.reduce((a, b) => (b > a ? b : a), 0n)
  return costs.map((cost) => {
    if (cost <= 0n) return ''
    // Rounded up, because what cost anything is to be seen.
    const length = Number((cost * chars + most - 1n) / most)
    return `  ${look.paint('cyan', look.bar.repeat(length))}`
  })
}

function remarks(total: Sums): string[] {
  const list = parseUsd(total.list_cost_usd) ?? 0n
  const saved = parseUsd(total.savings_usd) ?? 0n
  const percent = list > 0n ? ` (${Number((saved * 1_000n) / list) / 10} %)` : ''
  return [
    `Saved ${shownText(total.savings_usd)} USD against list prices${percent}.`,
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

function add(a: string, b: string): string {
  return /^\d+$/.test(a) && /^\d+$/.test(b) ? String(BigInt(a) + BigInt(b)) : '?'
}
