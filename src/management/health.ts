import { type Exchange, sendWhole } from '../http/exchange.ts'
import type { Target } from '../http/validate-head.ts'
import type { Clock } from '../kernel/clock.ts'
import { shareWork } from '../kernel/shared-work.ts'
import { shapeError } from '../providers/surfaces.ts'
import { refuseMethod, replyJson } from './route.ts'

/** Requests within this time share the result of a write probe. */
export const READY_PROBE_MS = 1_000

export const isHealthPath = ({ path }: Target): boolean => path === '/healthz' || path === '/readyz'

/** Probes whether the database can write. Requests share a probe, because anyone can send them. */
export function createWriteProbe(write: () => Promise<void>, clock: Clock): () => Promise<boolean> {
  const probe = () =>
    write().then(
      () => true,
      () => false,
    )
  return shareWork(probe, clock, () => READY_PROBE_MS)
}

/** /healthz: the process answers. /readyz: it can serve. Neither needs a credential. */
export async function answerHealth(
  exchange: Exchange,
  { path }: Target,
  isReady: () => Promise<boolean>,
): Promise<void> {
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') {
    const refusal = refuseMethod(exchange, ['GET', 'HEAD'])
    return sendWhole(exchange, shapeError('own', refusal, exchange.requestId))
  }
  const serving = path === '/healthz' || (await isReady())
  const { reply } = replyJson(serving ? 200 : 503, { status: serving ? 'ok' : 'unavailable' })
  sendWhole(exchange, reply)
}
