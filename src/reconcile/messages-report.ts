import { z } from 'zod'
import { parseDecimal } from './decimal.ts'
import { FEES, type ReportedRow } from './figures.ts'
import { count, type ReportSource, readReport } from './read-report.ts'

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
export async function readMessagesReport(
  source: ReportSource,
  startMs: number,
  endMs: number,
  { apiKeyIds, workspaceIds }: MessagesFilters,
): Promise<readonly ReportedRow[]> {
  const rows: ReportedRow[] = []
  for (let fromMs = startMs; fromMs < endMs; fromMs += DAYS_MAX * DAY_MS) {
    const range = [
      ['starting_at', instant(fromMs)],
      ['ending_at', instant(Math.min(fromMs + DAYS_MAX * DAY_MS, endMs))],
      ['time_bucket_width', '1d'],
      ['limit', '1000'],
      ...apiKeyIds.map((id) => ['api_key_ids[]', id] as const),
      ...workspaceIds.map((id) => ['workspace_ids[]', id] as const),
    ] as const
    const usage = [...range, ['group_by[]', 'model']] as const
    for (const { starting_at, group, usage: used } of await readReport(source, {
      path: USAGE,
      query: usage,
      row: usageRow,
    })) {
      const writes = used.cache_creation
      const tokens = {
        input: used.uncached_input_tokens,
        output: used.output_tokens,
        cache_read: used.cache_read_input_tokens,
        cache_write: (writes?.ephemeral_5m_input_tokens ?? 0n) + (writes?.ephemeral_1h_input_tokens ?? 0n),
      }
      rows.push({ day: starting_at.slice(0, 10), model: group.model ?? NO_MODEL, tokens, amount: null })
    }
    const cost = [...usage, ['group_by[]', 'cost_type']] as const
    for (const { starting_at, group, cost: paid } of await readReport(source, {
      path: COST,
      query: cost,
      row: costRow,
    })) {
      const fee = COST_TYPES[group.cost_type ?? '']
      const model = fee ?? group.model ?? group.cost_type ?? NO_MODEL
      rows.push({ day: starting_at.slice(0, 10), model, tokens: null, amount: paid.list_amount })
    }
  }
  return rows
}

const USAGE = '/v1/organizations/analytics/usage'
const COST = '/v1/organizations/analytics/cost'
const NO_MODEL = 'no model'

function instant(atMs: number): string {
  return new Date(atMs).toISOString().replace('.000Z', 'Z')
}
