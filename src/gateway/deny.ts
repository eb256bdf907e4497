import { type Exchange, sendWhole } from '../http/exchange.ts'
import { type Refusal, redactRefusal } from '../kernel/errors.ts'
import type { Nanos } from '../kernel/money.ts'
import { type Audience, shapeError } from '../providers/surfaces.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import { figureLines } from './answer.ts'

/** A refusal, and the balance of the account where the client may know it. */
export interface Denial {
  readonly refusal: Refusal
  readonly balanceNanos: Nanos | null
}

/** Answers with a refusal. On a proxied path it says what it cost, which is nothing. */
export function deny(
  exchange: Exchange,
  audience: Audience,
  refusal: Refusal,
  known: { readonly balanceNanos?: Nanos | null; readonly upstreamMs?: number } = {},
): void {
  // A response that has begun cannot become an error; breaking it off is the only honest sign left.
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

/** The same where nothing was sent upstream: a refusal, and counted as one where upstream was meant. */
export function refuseRequest(
  exchange: Exchange,
  audience: Audience,
  refusal: Refusal,
  counts: CallCounts,
): void {
  if (audience !== 'own') counts.refused(refusal.code)
  deny(exchange, audience, refusal)
}
