import { createSecureContext } from 'node:tls'
// undici's index also loads fetch, WebSocket and caches: 80 ms of the start, and 4 MB that every collection walks.
import buildConnector from 'undici/lib/core/connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import type { UpstreamConfig } from '../config.ts'
import { limits } from '../kernel/limits.ts'
import type { Secret } from '../kernel/secret.ts'
import { connectTransparently } from './upstream-socket.ts'

/** A configured provider: where it is, what pays it, and the connections to it. */
export interface Upstream {
  readonly url: URL
  readonly key: Secret | null
  readonly pool: Pool
}

export function openUpstream({ url, key }: UpstreamConfig): Upstream {
  const connect = buildConnector({
    allowH2: false,
    timeout: limits.upstreamConnectTimeoutMs,
    // One context for all connections: building it anew costs about 0.3 ms of the main thread each time.
    ...(url.protocol === 'https:' ? { secureContext: createSecureContext() } : {}),
  })
  const pool = new Pool(url.origin, {
    connect: connectTransparently(connect),
    // HTTP/2 would lower-case header names and lose the reason phrase.
    allowH2: false,
    // A model may think for minutes. Upstream ends a call it no longer wants; the client ends one it gives up.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: limits.upstreamHeadBytesMax,
    pipelining: 1,
    connections: null,
  })
  return { url, key, pool }
}
