import { type Exchange, sendWhole } from '../http/exchange.ts'
import type { Target } from '../http/target.ts'
import { replyJson } from './route.ts'

export const isHealthPath = ({ path }: Target): boolean => path === '/healthz' || path === '/readyz'

/** Alive is whoever answers; ready is who can serve, and is asked only for that. Neither needs a credential. */
export async function answerHealth(
  exchange: Exchange,
  { path }: Target,
  isReady: () => Promise<boolean>,
): Promise<void> {
  const serving = path === '/healthz' || (await isReady())
  const answer = replyJson(serving ? 200 : 503, { status: serving ? 'ok' : 'unavailable' }, [
    'cache-control',
    'no-store',
  ])
  if (answer.kind === 'reply') sendWhole(exchange, answer.reply)
}
