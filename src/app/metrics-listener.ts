import type { Config } from '../config/read-config.ts'
import { sendWhole } from '../http/exchange.ts'
import { HttpServer, type ServerOptions } from '../http/server.ts'
import { validateTarget } from '../http/validate-head.ts'
import { refuse } from '../kernel/errors.ts'
import { answerHealth } from '../management/health.ts'
import { refuseMethod, replyWhole } from '../management/route.ts'
import { shapeError } from '../providers/surfaces.ts'

/**
 * The second listener: `/metrics` and `/healthz` without a key, so that the monitoring system does not hold an operator
 * key. It speaks plain HTTP. The operator keeps the port private.
 */
export async function openMetricsListener(
  { host, metricsPort }: Pick<Config, 'host' | 'metricsPort'>,
  options: Pick<ServerOptions, 'clock' | 'nextUlid' | 'names' | 'shapeBroken'>,
  scrape: () => Promise<{ readonly contentType: string; readonly text: string }>,
) {
  if (metricsPort === null) return null
  const server = new HttpServer({
    ...options,
    onExchange(exchange) {
      const { method, req } = exchange
      const deny = (refusal: ReturnType<typeof refuse>) =>
        sendWhole(exchange, shapeError('own', refusal, exchange.requestId))
      const validated = validateTarget(req.head.target, undefined)
      if (validated.kind === 'refused') return deny(validated.refusal)
      const { target } = validated
      if (target.path === '/healthz') return void answerHealth(exchange, target, async () => true)
      if (target.path !== '/metrics')
        return deny(refuse('not_found', 'This port serves only /metrics and /healthz.'))
      if (method !== 'GET' && method !== 'HEAD') return deny(refuseMethod(exchange, ['GET', 'HEAD']))
      scrape().then(
        ({ contentType, text }) => sendWhole(exchange, replyWhole(200, contentType, text, []).reply),
        () => deny(refuse('internal_error', 'The metrics cannot be read. Look into the log of the gateway.')),
      )
    },
  })
  const { port } = await server.listen(host, metricsPort)
  return { port, close: () => server.drain(0) }
}
