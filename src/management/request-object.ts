import type { CallRecord } from '../ledger/call.ts'
import { usd } from './usd.ts'

/** A call as the API shows it. While it is in flight its figures are null. */
export function requestObject(call: CallRecord): Record<string, unknown> {
  const open = call.state === 'in_flight'
  return {
    id: call.requestId,
    object: 'request',
    key_id: call.keyId,
    state: call.state,
    started_at: new Date(call.startedAtMs).toISOString(),
    ended_at: call.endedAtMs === null ? null : new Date(call.endedAtMs).toISOString(),
    method: call.method,
    path: call.path,
    surface: call.surface,
    model: call.modelAsked,
    model_served: call.modelServed,
    status: call.status,
    stop_reason: call.stopReason,
    streamed: call.streamed,
    estimated: call.estimated,
    unpriced: call.unpriced,
    overrun: call.overrun,
    priced_as_requested: call.pricedAsRequested,
    usage: open
      ? null
      : {
          input_tokens: call.tokens.input,
          output_tokens: call.tokens.output,
          cache_read_tokens: call.tokens.cacheRead,
          cache_write_tokens: call.tokens.cacheWrite,
        },
    cost_usd: usd(call.costNanos),
    list_cost_usd: usd(call.listNanos),
    lost_list_cost_usd: usd(call.lostListNanos),
    balance_usd: usd(call.balanceNanos),
    upstream_ms: call.upstreamMs,
    overhead_ms: call.overheadMs,
    price_version: call.priceVersion,
    upstream_request_id: call.upstreamRequestId,
    client_ip: call.clientIp,
    user_agent: call.userAgent,
    bytes_in: call.bytesIn,
    bytes_out: call.bytesOut,
    credited: call.credited,
  }
}
