import { type Exchange, sendWhole } from '../http/exchange.ts'
import type { CallEnd } from '../http/upstream-call.ts'
import { type ErrorCode, type Refusal, redactRefusal } from '../kernel/errors.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Settled } from '../ledger/call.ts'
import { type Audience, shapeError, statusOf } from '../providers/surfaces.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import type { EndedCall } from '../telemetry/ended-call.ts'
import { describeUnsent, recordable } from './admit.ts'
import { figureLines } from './answer.ts'
import { type Bill, withoutSecrets } from './bill.ts'
import type { AdmittedCall, Call } from './call.ts'
import type { Gateway } from './gateway.ts'
import { explainFailure } from './refusals.ts'

export function deny(
  exchange: Exchange,
  audience: Audience,
  refusal: Refusal,
  known: { readonly balanceNanos?: Nanos | null; readonly upstreamMs?: number } = {},
): void {
  // A response that has begun cannot become an error; the client only sees that it breaks off.
  if (exchange.res.headersSent) {
    exchange.res.destroy()
    return
  }
  const shaped = shapeError(audience, redactRefusal(refusal, exchange.names.redact), exchange.requestId)
  const figures = { costNanos: 0n, listNanos: 0n, balanceNanos: known.balanceNanos ?? null }
  const lines = audience === 'own' ? [] : figureLines(exchange.names, figures, known.upstreamMs ?? 0)
  sendWhole(
    exchange,
    { ...shaped, headers: [...shaped.headers, ...lines] },
    { close: refusal.close === true },
  )
}

/**
 * Denies a request, and counts the refusal where the request was meant for upstream. Leaves no record. A defect after the
 * reply has begun is counted too, for alerts, though the client never sees its code.
 */
export function refuseRequest(
  exchange: Exchange,
  audience: Audience,
  refusal: Refusal,
  counts: CallCounts,
): void {
  if (audience !== 'own') counts.refused(refusal.code)
  deny(exchange, audience, refusal)
}

/** The times and bytes of a call as its record has them. */
export function passedBy(
  { exchange }: AdmittedCall,
  seen: {
    readonly upstreamMs: number
    readonly streamed: boolean
    readonly bytesIn: number
    readonly bytesOut: number
  },
  { clock }: Gateway,
) {
  const overheadMs = Math.max(0, clock.monotonicMs() - exchange.startedMs - seen.upstreamMs)
  return {
    ...seen,
    requestId: exchange.requestId,
    overheadMs: Math.round(overheadMs),
    upstreamMs: Math.round(seen.upstreamMs),
  }
}

/** Settles a call over HTTP or a turn. `isCounted`: whether the settlement counts in the metrics. */
export function settleCall(
  { exchange, surface, admission, plan }: AdmittedCall,
  bill: Bill,
  passed: ReturnType<typeof passedBy>,
  upstreamMs: number,
  { clock, settler, queues, counts }: Gateway,
  isCounted: (booked: boolean) => boolean = () => true,
): Promise<Settled | null> {
  const times = { overheadMs: Math.max(0, clock.monotonicMs() - exchange.startedMs - upstreamMs), upstreamMs }
  const closing = { ...withoutSecrets(bill, exchange.names.redact), ...passed, atMs: clock.nowMs() }
  return settler.settle(closing, ({ booked }) => {
    queues.settled(admission.budgetId, admission.accountId)
    if (isCounted(booked)) counts.settled(surface, plan.modelAsked, closing, times)
  })
}

export function endedCall(call: AdmittedCall, bill: Bill, end: CallEnd, { clock }: Gateway): EndedCall {
  const { exchange } = call
  const { names } = exchange
  const modelAsked = recordable(call.plan.modelAsked, names)
  const sameModel = bill.modelServed === call.plan.modelAsked
  return {
    requestId: exchange.requestId,
    keyId: call.admission.keyId,
    surface: call.surface,
    method: exchange.method,
    path: call.target.path,
    endpoint: call.endpoint,
    modelAsked,
    modelServed: sameModel ? modelAsked : recordable(bill.modelServed, names),
    status: bill.status,
    code: end.kind === 'failed' ? explainFailure(end).code : null,
    cut: end.kind === 'cut',
    tokens: bill.tokens,
    costNanos: bill.costNanos,
    endedAtMs: clock.nowMs(),
    ms: clock.monotonicMs() - exchange.startedMs,
    headers: exchange.headers,
    upstream: call.upstream.url,
  }
}

/**
 * Answers a call with a refusal, and then leaves a record of the refusal: people quote its id when they ask why. A call
 * with a key that is none of ours leaves no record.
 */
export function refuseCall(
  call: Call,
  refusal: Refusal,
  gateway: Gateway,
  known: { readonly balanceNanos?: Nanos | null; readonly modelAsked?: string | null } = {},
): void {
  deny(call.exchange, call.surface, refusal, known)
  recordRefusal(call, refusal, gateway, known.modelAsked ?? null)
}

export function recordRefusal(
  call: Call,
  refusal: Refusal,
  gateway: Gateway,
  modelAsked: string | null,
): void {
  const { surface, digest } = call
  const { clock, counts, refusedCalls, observeCall } = gateway
  counts.refused(refusal.code)
  if (refusal.stranger === true && observeCall === null) return
  const unsent = describeUnsent(call, modelAsked, gateway)
  const status = statusOf(surface, refusal.code)
  const endedAtMs = Math.trunc(clock.nowMs())
  if (refusal.stranger !== true) {
    refusedCalls.add({ ...unsent, digest, endedAtMs, status, code: refusal.code })
  }
  observeCall?.(refusedCall(call, unsent, { status, code: refusal.code, endedAtMs }))
}

function refusedCall(
  { exchange, endpoint }: Call,
  unsent: ReturnType<typeof describeUnsent>,
  refused: { readonly status: number; readonly code: ErrorCode; readonly endedAtMs: number },
): EndedCall {
  return {
    ...unsent,
    ...refused,
    ...{ keyId: null, endpoint, modelServed: null, cut: false, tokens: null, costNanos: 0n },
    ...{ ms: refused.endedAtMs - unsent.startedAtMs, headers: exchange.headers, upstream: null },
  }
}
