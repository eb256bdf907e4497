import type { CallRecord } from './call.ts'

type Known =
  | 'requestId'
  | 'accountId'
  | 'keyId'
  | 'state'
  | 'startedAtMs'
  | 'method'
  | 'path'
  | 'surface'
  | 'modelAsked'
  | 'clientIp'
  | 'userAgent'

/** The record of a call that never went upstream: one that waits, or one that was refused. */
export function unsentCall(parts: Pick<CallRecord, Known> & Partial<CallRecord>): CallRecord {
  return { ...NOTHING, ...parts }
}

const NOTHING: Omit<CallRecord, Known> = {
  endedAtMs: null,
  modelServed: null,
  status: null,
  stopReason: null,
  streamed: false,
  estimated: false,
  unpriced: false,
  overrun: false,
  pricedAsRequested: false,
  usage: null,
  tokens: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  costNanos: null,
  listNanos: null,
  lostListNanos: 0n,
  balanceNanos: null,
  upstreamMs: null,
  overheadMs: null,
  priceVersion: null,
  rating: '{}',
  upstreamRequestId: null,
  bytesIn: 0,
  bytesOut: 0,
  credited: false,
  code: null,
}
