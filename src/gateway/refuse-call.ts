import type { Exchange } from '../http/exchange.ts'
import { firstValue } from '../http/raw-headers.ts'
import type { Refusal } from '../kernel/errors.ts'
import { requestInstantMs } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'
import { statusOf } from '../providers/error-shape.ts'
import type { Surface } from '../providers/surface.ts'
import { deny } from './deny.ts'
import type { Gateway } from './gateway.ts'
import { recordable } from './recordable.ts'

/** A call that is not sent: it waits, or it is refused. */
export interface UnsentCall {
  readonly exchange: Exchange
  readonly path: string
  readonly surface: Surface
  /** Null where nothing is known of the body yet. */
  readonly modelAsked: string | null
}

/** What its record says of it. */
export function describeUnsent({ exchange, path, surface, modelAsked }: UnsentCall, { clock }: Gateway) {
  const { names, requestId, method, headers } = exchange
  return {
    requestId,
    startedAtMs: requestInstantMs(requestId) ?? Math.trunc(clock.nowMs()),
    method,
    path: recordable(path, names),
    surface,
    modelAsked: recordable(modelAsked, names),
    clientIp: exchange.clientIp,
    userAgent: recordable(firstValue(headers, 'user-agent') ?? null, names),
  }
}

/**
 * Answers a call with a refusal, and then leaves a record of it: its id is what people quote when they ask why. A key
 * that is none of ours leaves nothing.
 */
export function refuseCall(
  call: UnsentCall & { readonly digest: Buffer },
  refusal: Refusal,
  gateway: Gateway,
  known: { readonly balanceNanos?: Nanos | null } = {},
): void {
  const { exchange, surface, digest } = call
  deny(exchange, surface, refusal, known)
  const { clock, refusedCalls, showCall } = gateway
  if (refusal.stranger === true && showCall === null) return
  const unsent = describeUnsent(call, gateway)
  const status = statusOf(surface, refusal.code)
  const endedAtMs = Math.trunc(clock.nowMs())
  if (refusal.stranger !== true) {
    refusedCalls.add({ ...unsent, digest, endedAtMs, status, code: refusal.code })
  }
  const { method, path, modelAsked: model } = unsent
  showCall?.({
    ...{ atMs: endedAtMs, method, path, model, status, code: refusal.code },
    ...{ tokens: null, costNanos: 0n, ms: endedAtMs - unsent.startedAtMs },
  })
}
