import type { Usage } from '../kernel/usage.ts'
import type { CallRecord } from './call-columns.ts'
import type { CallFilter, CallPage } from './request-log.ts'

const LATEST_CALLS = 20
const COMPARED_CALLS = 3

interface CallLog {
  listCalls(filter: CallFilter, after: string | null, limit: number): Promise<CallPage>
}

const EVERY_CALL: CallFilter = {
  accountId: null,
  keyId: null,
  fromMs: null,
  toMs: null,
  model: null,
  status: null,
  state: null,
  minCostNanos: null,
  flag: null,
}

/** The share of input that upstream read from its cache in the key's latest calls of a model, for estimates. */
export async function readCachedShare(log: CallLog, keyId: string, model: string | null): Promise<number> {
  const { calls } = await log.listCalls({ ...EVERY_CALL, keyId }, null, LATEST_CALLS)
  return cachedShareOf(calls, model)
}

/** The smallest share of the last three complete calls. Fewer prove nothing, so nothing counts as cached. */
export function cachedShareOf(latest: readonly CallRecord[], model: string | null): number {
  const complete = latest.filter(
    (call) =>
      call.modelAsked === model && call.state === 'settled' && !call.estimated && call.tokens.output > 0,
  )
  if (complete.length < COMPARED_CALLS) return 0
  return Math.min(...complete.slice(0, COMPARED_CALLS).map(({ usage }) => shareIn(usage)))
}

function shareIn(usage: string | null): number {
  const part =
    usage === null ? undefined : (JSON.parse(usage) as Usage).parts.find(({ model }) => model === null)
  if (part === undefined || part.promptTokens === 0) return 0
  const { cache_read_tokens: text = 0, audio_cache_read_tokens: audio = 0 } = part.quantities
  return Math.min(1, (text + audio) / part.promptTokens)
}
