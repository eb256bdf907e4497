import type { UsageBucket, UsageQuery } from '../../../src/ledger/usage-report.ts'
import type { StoreUnderTest } from './fixtures.ts'

type Row = Readonly<Record<string, unknown>>

const HOUR_MS = 3_600_000

export const GROUPINGS = [
  [],
  ['day'],
  ['model'],
  ['key'],
  ['day', 'model'],
  ['day', 'key'],
  ['model', 'key'],
  ['day', 'model', 'key'],
  ['hour'],
  ['hour', 'model', 'key'],
] as const satisfies readonly UsageQuery['groupBy'][]

/** The buckets that a report must have, summed from the calls and the journal one by one. */
export async function expectedBuckets(
  { rows }: Pick<StoreUnderTest, 'rows'>,
  query: UsageQuery,
): Promise<UsageBucket[]> {
  const keys = new Map((await rows('api_key')).map((key) => [key['id'], key]))
  const credits = await rows('credit_call')
  const groups = new Map<string, UsageBucket>()
  if (query.groupBy.length === 0)
    groups.set('[null,null,null,null]', emptyBucket(null, null, null, null, null))
  for (const call of await rows('call')) {
    if (!belongs(call, query)) continue
    const by = (dimension: UsageQuery['groupBy'][number], value: unknown) =>
      query.groupBy.includes(dimension) ? String(value) : null
    const day = by('day', call['day'])
    const startMs = Number(call['started_at_ms'])
    const hour = by('hour', new Date(startMs - (startMs % HOUR_MS)).toISOString())
    const model = by('model', call['model_served'] ?? call['model_asked'] ?? '')
    const keyId = by('key', call['key_id'])
    const id = JSON.stringify([day, hour, model, keyId])
    const key = keyId === null ? undefined : keys.get(keyId)
    const kept = key?.['metadata'] ?? null
    const metadata = typeof kept === 'string' ? JSON.parse(kept) : kept
    const name = key === undefined ? null : String(key['name'])
    const before = groups.get(id) ?? { ...emptyBucket(day, model, keyId, name, metadata), hour }
    const back = credits.filter((credit) => credit['call_id'] === call['id'])
    groups.set(
      id,
      plus(
        before,
        call,
        back.reduce((sum, credit) => sum + int(credit, 'amount_nanos'), 0n),
      ),
    )
  }
  return [...groups.values()].sort(inOrder)
}

function belongs(call: Row, query: UsageQuery): boolean {
  const day = String(call['day'])
  return (
    call['state'] === 'settled' &&
    call['account_id'] === query.accountId &&
    (query.keyId === null || call['key_id'] === query.keyId) &&
    day >= query.startDay &&
    day <= query.endDay
  )
}

function plus(bucket: UsageBucket, call: Row, creditedNanos: bigint): UsageBucket {
  return {
    ...bucket,
    requests: bucket.requests + 1n,
    inputTokens: bucket.inputTokens + int(call, 'input_tokens'),
    outputTokens: bucket.outputTokens + int(call, 'output_tokens'),
    cacheReadTokens: bucket.cacheReadTokens + int(call, 'cache_read_tokens'),
    cacheWriteTokens: bucket.cacheWriteTokens + int(call, 'cache_write_tokens'),
    costNanos: bucket.costNanos + int(call, 'cost_nanos'),
    listNanos: bucket.listNanos + int(call, 'list_nanos'),
    creditedNanos: bucket.creditedNanos + creditedNanos,
    unpricedRequests: bucket.unpricedRequests + int(call, 'unpriced'),
    estimatedRequests: bucket.estimatedRequests + int(call, 'estimated'),
  }
}

export function emptyBucket(
  day: string | null,
  model: string | null,
  keyId: string | null,
  keyName: string | null,
  metadata: UsageBucket['metadata'],
): UsageBucket {
  return {
    day,
    hour: null,
    model,
    keyId,
    keyName,
    metadata,
    ...{ personId: null, personEmail: null, ofAccountId: null, accountName: null },
    requests: 0n,
    inputTokens: 0n,
    outputTokens: 0n,
    cacheReadTokens: 0n,
    cacheWriteTokens: 0n,
    costNanos: 0n,
    listNanos: 0n,
    creditedNanos: 0n,
    unpricedRequests: 0n,
    estimatedRequests: 0n,
  }
}

const int = (row: Row, column: string): bigint => BigInt(String(row[column] ?? 0))

/** Texts in the order of their code points, which is the order of their bytes in UTF-8. */
function inOrder(one: UsageBucket, other: UsageBucket): number {
  const texts = ({ day, hour, model, keyId }: UsageBucket) =>
    [day, hour, model, keyId].map((text) => text ?? '')
  const others = texts(other)
  for (const [i, text] of texts(one).entries()) {
    const order = Buffer.compare(Buffer.from(text), Buffer.from(others[i] ?? ''))
    if (order !== 0) return order
  }
  return 0
}
