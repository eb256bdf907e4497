import type { Surface } from '../../kernel/vocabulary.ts'
import { OWN_UPSTREAM } from '../../ledger/decide-admission.ts'
import { number, type Row, sum, text } from '../rows.ts'
import type { RunQuery } from './operation.ts'
import { raw, type Sql, sql } from './sql.ts'

/** What the log says about the calls of some days, for the comparison with the provider's report. */

export interface RecordedSum {
  readonly day: string
  readonly model: string
  readonly inputTokens: bigint
  readonly outputTokens: bigint
  readonly cacheReadTokens: bigint
  readonly cacheWriteTokens: bigint
  readonly listNanos: bigint
  readonly calls: number
  readonly unpricedCalls: number
  readonly estimatedCalls: number
}

/** A call with fees for tools, which the provider reports apart from the tokens. */
export interface FeeCall {
  readonly id: string
  readonly day: string
  readonly model: string
  readonly usage: string
  readonly rating: string
  readonly priceVersionJson: string
}

export interface RecordedDays {
  readonly surface: Surface
  readonly startDay: string
  readonly endDay: string
}

/** Calls on accounts' own upstreams are left out: the report of the installation does not have them. */
function selected({ surface, startDay, endDay }: RecordedDays): Sql {
  return sql`day >= ${startDay} AND day <= ${endDay} AND surface = ${surface} AND state = 'settled'
    AND rating NOT LIKE ${`${OWN_UPSTREAM}%`}`
}

const MODEL = raw(`coalesce(model_served, model_asked, '')`)

export async function readRecordedSums(query: RunQuery, days: RecordedDays): Promise<RecordedSum[]> {
  const rows = await query(sql`
    SELECT day, ${MODEL} AS model, count(*) AS calls,
      CAST(sum(input_tokens) AS text) AS input, CAST(sum(output_tokens) AS text) AS output,
      CAST(sum(cache_read_tokens) AS text) AS cache_read, CAST(sum(cache_write_tokens) AS text) AS cache_write,
      CAST(sum(list_nanos) AS text) AS list, sum(CASE WHEN unpriced THEN 1 ELSE 0 END) AS unpriced,
      sum(CASE WHEN estimated THEN 1 ELSE 0 END) AS estimated
    FROM call WHERE ${selected(days)} GROUP BY 1, 2`)
  return rows.map((row) => ({
    day: text(row, 'day'),
    model: text(row, 'model'),
    inputTokens: sum(row, 'input'),
    outputTokens: sum(row, 'output'),
    cacheReadTokens: sum(row, 'cache_read'),
    cacheWriteTokens: sum(row, 'cache_write'),
    listNanos: sum(row, 'list'),
    calls: number(row, 'calls'),
    unpricedCalls: number(row, 'unpriced'),
    estimatedCalls: number(row, 'estimated'),
  }))
}

const BATCH_CALLS = 2_000

export async function* readFeeCalls(query: RunQuery, days: RecordedDays): AsyncGenerator<FeeCall> {
  for (let after = ''; ; ) {
    const rows: readonly Row[] = await query(sql`
      SELECT call.id, day, ${MODEL} AS model, usage, rating, price_version.json AS json
      FROM call JOIN price_version ON price_version.id = call.price_version
      WHERE ${selected(days)} AND call.id > ${after} AND (usage LIKE '%searches%' OR usage LIKE '%containers%')
      ORDER BY call.id LIMIT ${BATCH_CALLS}`)
    for (const row of rows) {
      after = text(row, 'id')
      yield {
        id: after,
        day: text(row, 'day'),
        model: text(row, 'model'),
        usage: text(row, 'usage'),
        rating: text(row, 'rating'),
        priceVersionJson: text(row, 'json'),
      }
    }
    if (rows.length < BATCH_CALLS) return
  }
}
