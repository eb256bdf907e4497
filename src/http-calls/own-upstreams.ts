import { type Config, PROVIDER_URLS } from '../config/read-config.ts'
import { DIRECT, type EgressRules } from '../http/egress.ts'
import { openUpstream, type Upstream } from '../http/upstream-connection.ts'
import type { Log } from '../kernel/log.ts'
import { Secret } from '../kernel/secret.ts'
import { type OwnUpstream, SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { type SecretSealer, upstreamKeyRecord } from '../keys/secrets.ts'
import type { Store } from '../store/store.ts'

type OwnUpstreamStore = Pick<Store, 'readOwnUpstreams'>

/** The accounts' own upstreams, as admission names them. The installation's keys are never sent there. */
export class OwnUpstreams {
  readonly #sealer: SecretSealer
  readonly #log: Log
  readonly #egress: EgressRules
  /** Those in use: an account's URL and key have connections of their own. */
  readonly #open = new Map<string, Upstream>()
  #isUsed = false

  constructor(sealer: SecretSealer, log: Log, egress: EgressRules = DIRECT) {
    this.#sealer = sealer
    this.#log = log
    this.#egress = egress
  }

  /** Whether any account is known to have its own upstream: the simulator then stops serving. */
  get isUsed(): boolean {
    return this.#isUsed
  }

  async load(store: OwnUpstreamStore): Promise<void> {
    const accounts = await store.readOwnUpstreams()
    this.#isUsed = accounts.length > 0
    for (const { id, upstreams } of accounts)
      for (const surface of SURFACE_NAMES) {
        const own = upstreams[surface]
        try {
          if (own !== null) this.#unseal(id, surface, own)
        } catch (error) {
          const about = { account: id, surface, cause: (error as Error).message }
          this.#log.warn(about, 'an upstream key cannot be decrypted')
        }
      }
  }

  /** Throws if the key was sealed under another pepper. */
  open(accountId: string, surface: Surface, own: OwnUpstream): Upstream {
    this.#isUsed = true
    const name = `${upstreamKeyRecord(accountId, surface, own.url)} ${own.sealedKey}`
    const known = this.#open.get(name)
    if (known !== undefined) return known
    const key = this.#unseal(accountId, surface, own)
    this.#forgetIdle()
    const opened = openUpstream({ url: new URL(own.url), key }, this.#log, this.#egress)
    this.#open.set(name, opened)
    return opened
  }

  destroy(): void {
    for (const { pool } of this.#open.values()) pool.destroy()
  }

  /** Idle connections close by themselves, so an upstream that is no longer called has none. */
  #forgetIdle(): void {
    for (const [name, { pool }] of this.#open)
      if (pool.connections.busy + pool.connections.idle === 0) this.#open.delete(name)
  }

  /** Null: no credential is sent there. */
  #unseal(accountId: string, surface: Surface, { url, sealedKey }: OwnUpstream): Secret | null {
    if (sealedKey === null) return null
    return this.#sealer.open(Buffer.from(sealedKey, 'base64'), upstreamKeyRecord(accountId, surface, url))
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
