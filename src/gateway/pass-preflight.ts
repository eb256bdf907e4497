import type { Exchange } from '../http/exchange.ts'
import type { Target } from '../http/judge-head.ts'
import { refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Surface } from '../providers/surface.ts'
import { upstreamTarget } from '../providers/surfaces.ts'
import { Answer } from './answer.ts'
import { deny } from './deny.ts'
import { forward } from './forward.ts'
import { toUpstreamHeaders } from './forwarded-headers.ts'
import type { Gateway } from './gateway.ts'
import { explainFailure } from './refusals.ts'
import type { Upstream } from './upstream-pool.ts'

/** It belongs to no account, so there is no balance to tell. */
const FREE = { costNanos: 0n, listNanos: 0n, balanceNanos: null }

/**
 * A browser's question before the real request. It has no credential to check and none to pay with, and no body; the
 * browser sees upstream's own answer. It is no call: nothing is admitted, held or recorded.
 */
export async function passPreflight(
  exchange: Exchange,
  target: Target,
  surface: Surface,
  upstream: Upstream,
  gateway: Gateway,
): Promise<void> {
  const { res, names } = exchange
  if (gateway.inFlight.preflights >= limits.preflightsInFlightMax) {
    return deny(exchange, surface, refuse('overloaded', 'Too many preflights are in flight.'))
  }
  const sentMs = gateway.clock.monotonicMs()
  const answer = new Answer(exchange, {
    memory: gateway.heldReplies,
    keyName: '',
    upstreamMs: () => Math.round(gateway.clock.monotonicMs() - sentMs),
    onDrain: () => call.resume(),
  })
  const call = forward(
    upstream.pool,
    {
      method: exchange.method,
      target: upstreamTarget(surface, upstream.url, target),
      headers: toUpstreamHeaders(exchange.headers, {
        credential: null,
        host: upstream.url.host,
        contentLength: null,
        ownPrefix: names.prefix,
        bodyEdited: false,
      }),
      body: null,
    },
    {
      head: (head) => {
        if (head.status < 200) answer.interim(head)
        else answer.begin(head, { when: 'now', figures: FREE })
      },
      data: (chunk) => answer.data(chunk),
    },
  )
  res.whenClosed.add(() => {
    if (!res.writableFinished) call.abandon()
  })
  gateway.inFlight.preflights += 1
  const end = await call.ended
  gateway.inFlight.preflights -= 1
  if (end.kind === 'complete') answer.finish(FREE, end.trailers)
  else if (end.kind === 'cut') answer.cut()
  else if (end.kind === 'failed') deny(exchange, surface, explainFailure(end))
}
