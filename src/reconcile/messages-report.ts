import { z } from 'zod'
import { parseDecimal } from './decimal.ts'
import { FEES, type ReportedRow } from './figures.ts'
import { count, type Report, reportOf } from './read-report.ts'

/** Anthropic's reports of usage and cost, by day and model. Amounts are text, in cents. */

export const MESSAGES_PLACES = 2

export const MESSAGES_HEADERS = {
  'anthropic-version': '2023-06-01',
  'anthropic-beta': 'analytics-usage-cost-2026-08-24',
}

export interface MessagesFilters {
  readonly apiKeyIds: readonly string[]
  readonly workspaceIds: readonly string[]
}

/** A report spans at most 31 days. */
const DAYS_MAX = 31
const DAY_MS = 86_400_000

const usageRow = z.object({
  starting_at: z.string().min(10),
  group: z.object({ model: z.string().nullish() }),
  usage: z.object({
    uncached_input_tokens: count,
    cache_read_input_tokens: count,
    cache_creation: z
      .object({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count })
      .nullish(),
    output_tokens: count,
  }),
})

const costRow = z.object({
  starting_at: z.string().min(10),
  group: z.object({ model: z.string().nullish(), cost_type: z.string().nullish() }),
  cost: z.object({
    list_amount: z
      .string()
      .transform(parseDecimal)
      .pipe(z.object({ units: z.bigint(), places: z.number() })),
    currency: z.literal('USD'),
  }),
})

const COST_TYPES: Readonly<Record<string, string>> = {
  web_search: FEES[0],
  code_execution: 'code execution',
  session_usage: 'session usage',
}

/** `startMs` is the start of the first day, `endMs` the end of the last. */
export function messagesReports(
  startMs: number,
  endMs: number,
  { apiKeyIds, workspaceIds }: MessagesFilters,
): readonly Report[] {
  const reports: Report[] = []
  for (let fromMs = startMs; fromMs < endMs; fromMs += DAYS_MAX * DAY_MS) {
    const usage = [
      ['starting_at', instant(fromMs)],
      ['ending_at', instant(Math.min(fromMs + DAYS_MAX * DAY_MS, endMs))],
      ['time_bucket_width', '1d'],
      ['limit', '1000'],
      ...apiKeyIds.map((id) => ['api_key_ids[]', id] as const),
      ...workspaceIds.map((id) => ['workspace_ids[]', id] as const),
      ['group_by[]', 'model'],
    ] as const
    const cost = [...usage, ['group_by[]', 'cost_type']] as const
    reports.push(reportOf({ path: USAGE, query: usage, row: usageRow }, rowsOfUsage))
    reports.push(reportOf({ path: COST, query: cost, row: costRow }, rowsOfCost))
  }
  return reports
}

function rowsOfUsage({ starting_at, group, usage: used }: z.output<typeof usageRow>): readonly ReportedRow[] {
  const writes = used.cache_creation
  const tokens = {
    input: used.uncached_input_tokens,
    output: used.output_tokens,
    cache_read: used.cache_read_input_tokens,
    cache_write: (writes?.ephemeral_5m_input_tokens ?? 0n) + (writes?.ephemeral_1h_input_tokens ?? 0n),
  }
  return [{ day: starting_at.slice(0, 10), model: group.model ?? NO_MODEL, tokens, amount: null }]
}

function rowsOfCost({ starting_at, group, cost }: z.output<typeof costRow>): readonly ReportedRow[] {
  const fee = COST_TYPES[group.cost_type ?? '']
  const model = fee ?? group.model ?? group.cost_type ?? NO_MODEL
  return [{ day: starting_at.slice(0, 10), model, tokens: null, amount: cost.list_amount }]
}

const USAGE = '/v1/organizations/analytics/usage'
const COST = '/v1/organizations/analytics/cost'
const NO_MODEL = 'no model'

function instant(atMs: number): string {
  return new Date(atMs).toISOString().replace('.000Z', 'Z')
}
