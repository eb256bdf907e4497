import { type Config, PROVIDER_URLS } from '../config.ts'
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

/** The accounts' own upstreams, as admission names them. The installation's keys are never sent there. */
export class OwnUpstreams {
  readonly #sealer: SecretSealer
  /** The keys that this node has seen, which are redacted everywhere. */
  readonly #seen: SeenSecrets
  readonly #log: Log
  readonly #poolsMax: number
  readonly #opened = new Map<string, Omit<Upstream, 'pool'>>()
  readonly #pools = new Map<string, UpstreamPool>()
  /** Whether any account is known to have its own upstream: the simulator then stops serving. */
  isUsed = false

  constructor(sealer: SecretSealer, seen: SeenSecrets, log: Log, poolsMax = POOLS_MAX) {
    this.#sealer = sealer
    this.#seen = seen
    this.#log = log
    this.#poolsMax = poolsMax
  }

  async load(store: OwnUpstreamStore): Promise<void> {
    const accounts = await store.readOwnUpstreams()
    this.isUsed = accounts.length > 0
    for (const { id, upstreams } of accounts)
      for (const surface of SURFACE_NAMES) {
        const own = upstreams[surface]
        try {
          if (own !== null) this.#unseal(id, surface, own)
        } catch (error) {
          this.#log.warn(
            { account: id, surface, cause: (error as Error).message },
            'an upstream key cannot be decrypted',
          )
        }
      }
  }

  /** Null: no credential is sent there. Throws if the key was sealed under another pepper. */
  #unseal(accountId: string, surface: Surface, { url, sealedKey }: OwnUpstream): Secret | null {
    if (sealedKey === null) return null
    const key = this.#sealer.open(
      Buffer.from(sealedKey, 'base64'),
      upstreamKeyRecord(accountId, surface, url),
    )
    this.#seen.add(key.reveal())
    return key
  }

  open(accountId: string, surface: Surface, { url, sealedKey }: OwnUpstream): Upstream {
    this.isUsed = true
    const name = `${upstreamKeyRecord(accountId, surface, url)} ${sealedKey}`
    const known = this.#opened.get(name)
    if (known !== undefined) return { ...known, pool: this.#poolOf(url) }
    const key = this.#unseal(accountId, surface, { url, sealedKey })
    const opened = { url: new URL(url), key }
    if (this.#opened.size >= OPENED_MAX) this.#opened.clear()
    this.#opened.set(name, opened)
    return { ...opened, pool: this.#poolOf(url) }
  }

  #poolOf(url: string): UpstreamPool {
    const known = this.#pools.get(url)
    if (known !== undefined) return known
    const { pool } = openUpstream({ url: new URL(url), key: null }, this.#log)
    this.#pools.set(url, pool)
    if (this.#pools.size > this.#poolsMax) this.#closeIdlePool(url)
    return pool
  }

  #closeIdlePool(except: string): void {
    for (const [url, pool] of this.#pools) {
      if (url === except || pool.connections.busy > 0) continue
      pool.destroy()
      this.#pools.delete(url)
      return
    }
  }

  destroy(): void {
    for (const pool of this.#pools.values()) pool.destroy()
  }
}

/** The configured upstreams. A simulated upstream serves no calls once an account has its own upstream. */
export function unlessSimulated(
  configured: Readonly<Record<Surface, Upstream | null>>,
  isSimulator: boolean,
  own: OwnUpstreams,
): Readonly<Record<Surface, Upstream | null>> {
  if (!isSimulator) return configured
  const of = (surface: Surface) => (own.isUsed ? null : configured[surface])
  return {
    get messages() {
      return of('messages')
    },
    get chat() {
      return of('chat')
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
