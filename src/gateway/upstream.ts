import type { UpstreamConfig } from '../config.ts'
import type { Secret } from '../kernel/secret.ts'
import { connectorOf } from './connect-upstream.ts'
import { UpstreamPool } from './upstream-pool.ts'

/** A configured provider: where it is, what pays it, and the connections to it. */
export interface Upstream {
  readonly url: URL
  readonly key: Secret | null
  readonly pool: UpstreamPool
}

export function openUpstream({ url, key }: UpstreamConfig): Upstream {
  return { url, key, pool: new UpstreamPool(connectorOf(url)) }
}
