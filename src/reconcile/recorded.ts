import { type Nanos, roundHalfEven } from '../kernel/money.ts'
import type { Unit } from '../kernel/usage.ts'
import { createRateAgain } from '../pricing/load-book.ts'
import type { RunQuery } from '../store/operations/operation.ts'
import { type RecordedDays, readFeeCalls, readRecordedSums } from '../store/operations/recorded-sums.ts'
import { FEES, NO_TOKENS, type RecordedRow } from './figures.ts'

const FEE_OF: { readonly [U in Unit]?: (typeof FEES)[number] } = {
  web_searches: FEES[0],
  web_searches_low: FEES[0],
  web_searches_medium: FEES[0],
  web_searches_high: FEES[0],
  file_searches: FEES[1],
  containers: FEES[2],
}

/** What the gateway recorded at list price. Fees for tools are rows of their own, as in the reports. */
export async function readRecorded(query: RunQuery, days: RecordedDays): Promise<readonly RecordedRow[]> {
  const rows: RecordedRow[] = (await readRecordedSums(query, days)).map((sum) => ({
    ...sum,
    tokens: {
      input: sum.inputTokens,
      output: sum.outputTokens,
      cache_read: sum.cacheReadTokens,
      cache_write: sum.cacheWriteTokens,
    },
  }))
  const rateAgain = createRateAgain()
  for await (const call of readFeeCalls(query, days)) {
    for (const { unit, amount } of rateAgain(call)?.lines ?? []) {
      const fee = FEE_OF[unit]
      if (fee === undefined) continue
      const listNanos = roundHalfEven(amount)
      rows.push(feeRow(call.day, fee, listNanos), feeRow(call.day, call.model, -listNanos))
    }
  }
  return rows
}

function feeRow(day: string, model: string, listNanos: Nanos): RecordedRow {
  return { day, model, tokens: NO_TOKENS, listNanos, calls: 0, unpricedCalls: 0, estimatedCalls: 0 }
}
