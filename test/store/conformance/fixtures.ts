import { createHash } from 'node:crypto'
import type { CallClosing, CallOpening } from '../../../src/ledger/call.ts'
import type { Store } from '../../../src/store/store.ts'

/** A store under test: opened anew for each test, closed by it. */
export interface StoreUnderTest {
  readonly store: Store
  /** All rows of a table, as a reader beside the service sees them. Integers are bigint. */
  rows(table: string): readonly Record<string, unknown>[]
  close(): Promise<void>
}

export type OpenStoreUnderTest = () => Promise<StoreUnderTest>

export const NOON = Date.UTC(2026, 10, 15, 12)

export const digestOf = (name: string): Uint8Array => createHash('sha256').update(name).digest()

export async function addKey(store: Store, name: string, expiresAtMs: number | null = null): Promise<string> {
  const key = await store.createKey({
    id: `key_${name}`,
    accountId: 'default',
    name,
    digest: digestOf(name),
    prefix: 'svc_live_xxxxxxx',
    last4: 'xxxx',
    createdAtMs: NOON - 1_000,
    expiresAtMs,
  })
  return key.id
}

export function opening(requestId: string, keyName: string, more: Partial<CallOpening> = {}): CallOpening {
  return {
    requestId,
    digest: digestOf(keyName),
    atMs: NOON,
    method: 'POST',
    path: '/v1/messages',
    surface: 'messages',
    modelAsked: 'claude-haiku-5-5',
    clientIp: '127.0.0.1',
    userAgent: null,
    holdNanos: 1_000n,
    holdListNanos: 1_250n,
    priceVersion: 'test',
    rating: '{}',
    unratable: null,
    ...more,
  }
}

export function closing(requestId: string, more: Partial<CallClosing> = {}): CallClosing {
  return {
    requestId,
    state: 'settled',
    atMs: NOON + 500,
    status: 200,
    modelServed: 'claude-haiku-5-5',
    stopReason: 'end_turn',
    streamed: false,
    estimated: false,
    unpriced: false,
    pricedAsRequested: false,
    usage: '{"parts":[]}',
    tokens: { input: 10, output: 5, cacheRead: 3, cacheWrite: 2 },
    costNanos: 800n,
    listNanos: 1_000n,
    upstreamMs: 450,
    overheadMs: 3,
    upstreamRequestId: 'req_up',
    bytesIn: 100,
    bytesOut: 200,
    ...more,
  }
}
