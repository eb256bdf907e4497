import { z } from 'zod'
import { parseDecimal } from './decimal.ts'
import { FEES, type ReportedRow } from './figures.ts'
import { count, type Report, reportOf } from './read-report.ts'

/** OpenAI's reports of usage and cost, by day and model. Amounts are numbers or text, in dollars. */

export const CHAT_PLACES = 0

export interface ChatFilters {
  readonly apiKeyIds: readonly string[]
  readonly projectIds: readonly string[]
}

/** The reports of tokens. Images and Realtime have none. An upstream may lack those of rarer endpoints. */
const USAGE_REPORTS = [
  { name: 'completions', isOptional: false },
  { name: 'decisions', isOptional: true },
  { name: 'embeddings', isOptional: true },
]

const usageBucket = z.object({
  start_time: z.string().regex(/^\d{9,11}$/),
  results: z.array(
    z.object({
      model: z.string().nullish(),
      input_tokens: count,
      input_cached_tokens: count,
      input_cache_write_tokens: count,
      output_tokens: count,
    }),
  ),
})

const costBucket = z.object({
  start_time: z.string().regex(/^\d{9,11}$/),
  results: z.array(
    z.object({
      amount: z.object({
        value: z
          .string()
          .transform(parseDecimal)
          .pipe(z.object({ units: z.bigint(), places: z.number() })),
        currency: z.literal('usd'),
      }),
      line_item: z.string().nullish(),
    }),
  ),
})

export function chatReports(
  startMs: number,
  endMs: number,
  { apiKeyIds, projectIds }: ChatFilters,
): readonly Report[] {
  const filters = [
    ['start_time', String(startMs / 1_000)],
    ['end_time', String(endMs / 1_000)],
    ['bucket_width', '1d'],
    ...apiKeyIds.map((id) => ['api_key_ids[]', id] as const),
    ...projectIds.map((id) => ['project_ids[]', id] as const),
  ] as const
  const byModel = [...filters, ['limit', '31'], ['group_by[]', 'model']] as const
  const usage = USAGE_REPORTS.map(({ name, isOptional }) => {
    const path = `/organization/usage/${name}`
    return reportOf({ path, query: byModel, row: usageBucket, isOptional }, rowsOfUsage)
  })
  const query = [...filters, ['limit', '180'], ['group_by[]', 'line_item']] as const
  return [...usage, reportOf({ path: '/organization/costs', query, row: costBucket }, rowsOfCosts)]
}

function rowsOfUsage({ start_time, results }: z.output<typeof usageBucket>): readonly ReportedRow[] {
  return results.map(({ model, ...used }) => {
    const [read, written] = [used.input_cached_tokens, used.input_cache_write_tokens]
    // The report counts cached tokens and cache writes as input too.
    const input = used.input_tokens - read - written
    const tokens = { input, output: used.output_tokens, cache_read: read, cache_write: written }
    return { day: dayOfSeconds(start_time), model: model ?? 'no model', tokens, amount: null }
  })
}

function rowsOfCosts({ start_time, results }: z.output<typeof costBucket>): readonly ReportedRow[] {
  return results.map(({ amount, line_item }) => ({
    day: dayOfSeconds(start_time),
    model: modelOfLine(line_item ?? 'no line item'),
    tokens: null,
    amount: amount.value,
  }))
}

/** A line item is `model, unit`, or the name of a fee, whose wording is not documented. */
function modelOfLine(line: string): string {
  if (/web.?search/i.test(line)) return FEES[0]
  if (/file.?search/i.test(line)) return FEES[1]
  if (/container|code.?interpreter/i.test(line)) return FEES[2]
  const at = line.indexOf(', ')
  return at < 0 ? line : line.slice(0, at)
}

function dayOfSeconds(seconds: string): string {
  return new Date(Number(seconds) * 1_000).toISOString().slice(0, 10)
}
