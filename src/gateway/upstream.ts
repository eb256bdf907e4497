import type { UpstreamConfig } from '../config.ts'
import type { Log } from '../kernel/log.ts'
import type { Secret } from '../kernel/secret.ts'
import { connectorOf } from './connect-upstream.ts'
import { UpstreamPool } from './upstream-pool.ts'

/** A configured provider: where it is, what pays it, and the connections to it. */
export interface Upstream {
  readonly url: URL
  readonly key: Secret | null
  readonly pool: UpstreamPool
}

export function openUpstream({ url, key }: UpstreamConfig, log: Pick<Log, 'error'>): Upstream {
  const onUnasked = () =>
    log.error(
      { upstream: url.host },
      'upstream sent bytes that nobody asked for; they reached nobody, and its idle connections were closed',
    )
  return { url, key, pool: new UpstreamPool(connectorOf(url), onUnasked) }
}
