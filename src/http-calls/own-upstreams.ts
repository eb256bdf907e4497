import { type Config, PROVIDER_URLS } from '../config/read-config.ts'
import { openUpstream, type Upstream, type UpstreamPool } from '../http/upstream-connection.ts'
import type { Log } from '../kernel/log.ts'
import { Secret, type SeenSecrets } from '../kernel/secret.ts'
import { type OwnUpstream, SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { type SecretSealer, upstreamKeyRecord } from '../keys/secrets.ts'
import type { Store } from '../store/store.ts'

/** Connection pools for accounts' own URLs. If there are more, an idle one is closed. */
const POOLS_MAX = 1_000
const OPENED_MAX = 10_000

type OwnUpstreamStore = Pick<Store, 'readOwnUpstreams'>

export type OwnUpstreams = ReturnType<typeof createOwnUpstreams>

/**
 * The accounts' own upstreams, as admission names them. The installation's keys are never sent there. `seen`: the keys
 * that this node has seen, which are redacted everywhere.
 */
export function createOwnUpstreams(sealer: SecretSealer, seen: SeenSecrets, log: Log, poolsMax = POOLS_MAX) {
  const known = new Map<string, Omit<Upstream, 'pool'>>()
  let isUsed = false
  const pools = new Map<string, UpstreamPool>()

  /** Null: no credential is sent there. Throws if the key was sealed under another pepper. */
  function unseal(accountId: string, surface: Surface, { url, sealedKey }: OwnUpstream): Secret | null {
    if (sealedKey === null) return null
    const key = sealer.open(Buffer.from(sealedKey, 'base64'), upstreamKeyRecord(accountId, surface, url))
    seen.add(key.reveal())
    return key
  }

  function poolOf(url: string): UpstreamPool {
    const open = pools.get(url)
    if (open !== undefined) return open
    const { pool } = openUpstream({ url: new URL(url), key: null }, log)
    pools.set(url, pool)
    if (pools.size > poolsMax) closeIdlePool(url)
    return pool
  }

  function closeIdlePool(except: string): void {
    for (const [url, pool] of pools) {
      if (url === except || pool.connections.busy > 0) continue
      pool.destroy()
      pools.delete(url)
      return
    }
  }

  return {
    /** Whether any account is known to have its own upstream: the simulator then stops serving. */
    get isUsed(): boolean {
      return isUsed
    },
    async load(store: OwnUpstreamStore): Promise<void> {
      const accounts = await store.readOwnUpstreams()
      isUsed = accounts.length > 0
      for (const { id, upstreams } of accounts)
        for (const surface of SURFACE_NAMES) {
          const own = upstreams[surface]
          try {
            if (own !== null) unseal(id, surface, own)
          } catch (error) {
            log.warn(
              { account: id, surface, cause: (error as Error).message },
              'an upstream key cannot be decrypted',
            )
          }
        }
    },
    open(accountId: string, surface: Surface, { url, sealedKey }: OwnUpstream): Upstream {
      isUsed = true
      const name = `${upstreamKeyRecord(accountId, surface, url)} ${sealedKey}`
      let opened = known.get(name)
      if (opened === undefined) {
        opened = { url: new URL(url), key: unseal(accountId, surface, { url, sealedKey }) }
        if (known.size >= OPENED_MAX) known.clear()
        known.set(name, opened)
      }
      return { ...opened, pool: poolOf(url) }
    },
    destroy(): void {
      for (const pool of pools.values()) pool.destroy()
    },
  }
}

/** Null: no upstream is configured. Throws if the account's key was sealed under another pepper. */
export function upstreamFor(
  accountId: string,
  own: OwnUpstream | null,
  surface: Surface,
  from: Readonly<{ upstreams: Record<Surface, Upstream | null>; ownUpstreams: OwnUpstreams }>,
): Upstream | null {
  const { upstreams, ownUpstreams } = from
  return own === null ? upstreams[surface] : ownUpstreams.open(accountId, surface, own)
}

/** The upstreams, while the condition holds; else none. */
export function servedWhile(
  isServing: () => boolean,
  { messages, chat }: Readonly<Record<Surface, Upstream | null>>,
): Readonly<Record<Surface, Upstream | null>> {
  return {
    get messages() {
      return isServing() ? messages : null
    },
    get chat() {
      return isServing() ? chat : null
    },
  }
}

export function upstreamKeys(
  config: Pick<Config, Surface>,
  sealer: SecretSealer,
  own: OwnUpstreams,
  store: OwnUpstreamStore,
) {
  return {
    urlOf: (surface: Surface) => (config[surface]?.url.href ?? PROVIDER_URLS[surface]).replace(/\/$/, ''),
    seal(key: string, ...of: Parameters<typeof upstreamKeyRecord>) {
      return sealer.seal(new Secret(key), upstreamKeyRecord(...of)).toString('base64')
    },
    changed: () => own.load(store),
  }
}
