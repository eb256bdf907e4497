import type { SignInConfig } from '../config/read-sign-in.ts'
import { type Exchange, sendWhole } from '../http/exchange.ts'
import { firstValue } from '../http/raw-headers.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { RecentEntries } from '../kernel/recent-entries.ts'
import { type Credential, refuseKey } from '../keys/credential.ts'
import type { Device } from '../keys/device-store.ts'
import { shapeError } from '../providers/surfaces.ts'
import type { Store } from '../store/store.ts'
import { hasSettings, type ServedSettings, serveSettings, spendOf } from './agent-settings.ts'
import { sendOAuth } from './oauth.ts'

export interface AgentDoor {
  readonly settings: Pick<SignInConfig, 'dashboardUrl' | 'managedSettings'>
  readonly store: Pick<Store, 'findDevice' | 'lookUpKey' | 'getPerson'>
  readonly clock: Clock
  isSecure(exchange: Exchange): boolean
}

type Handle = (exchange: Exchange, credential: Credential) => Promise<void>

/** What coding agents ask besides signing in and calling models, at the paths where they expect it. */
export class AgentEndpoints {
  readonly #door: AgentDoor
  readonly #settings: ServedSettings | null
  /** When the keys of devices end, by digest. An agent does not start without its settings, so a database is not needed. */
  readonly #known = new RecentEntries<number>(limits.devicesRememberedMax)

  constructor(door: AgentDoor) {
    this.#door = door
    const { managedSettings } = door.settings
    this.#settings = managedSettings === null ? null : serveSettings(managedSettings)
  }

  /** Null: the path is none of these. */
  endpoint(path: string): Handle | null {
    const handle = this.#handlerOf(path)
    if (handle === null) return null
    return async (exchange, credential) => {
      if (exchange.method === 'GET' || exchange.method === 'HEAD') return await handle(exchange, credential)
      const headers = ['allow', 'GET, HEAD']
      deny(
        exchange,
        refuse('method_not_allowed', `Use GET for this endpoint, not ${exchange.method}.`, { headers }),
      )
    }
  }

  #handlerOf(path: string): Handle | null {
    if (path === '/.well-known/oauth-authorization-server') return (exchange) => this.#describe(exchange)
    if (path === '/managed/settings')
      return (exchange, credential) => this.#sendSettings(exchange, credential)
    return path === '/api/oauth/usage'
      ? (exchange, credential) => this.#sendSpend(exchange, credential)
      : null
  }

  /** Agents only accept endpoints at the address that they were given. It may be another name of the gateway. */
  async #describe(exchange: Exchange): Promise<void> {
    const { dashboardUrl } = this.#door.settings
    const host = firstValue(exchange.headers, 'host') ?? ''
    const scheme = this.#door.isSecure(exchange) ? 'https' : 'http'
    const base = new URL(dashboardUrl).host === host ? dashboardUrl : `${scheme}://${host}`
    const json = {
      issuer: dashboardUrl,
      device_authorization_endpoint: `${base}/gateway/oauth/device_authorization`,
      token_endpoint: `${base}/gateway/oauth/token`,
      revocation_endpoint: `${base}/gateway/oauth/revoke`,
      grant_types_supported: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
      response_types_supported: [],
      token_endpoint_auth_methods_supported: ['none'],
      scopes_supported: ['openid', 'profile', 'email'],
      gateway_protocol_version: 1,
    }
    sendOAuth(exchange, { status: 200, json })
  }

  async #sendSettings(exchange: Exchange, credential: Credential): Promise<void> {
    if (credential.kind !== 'key') return deny(exchange, refusalOf(credential))
    const name = credential.digest.toString('base64')
    const nowMs = this.#door.clock.nowMs()
    if ((this.#known.get(name) ?? 0) <= nowMs) {
      const device = await this.#findDevice(credential.digest, nowMs)
      if ('code' in device) return deny(exchange, device)
      this.#known.set(name, device.expiresAtMs ?? nowMs + limits.deviceUsableMs)
    }
    const served = this.#settings
    if (served === null) return deny(exchange, NO_SETTINGS)
    const headers = ['etag', served.etag]
    if (hasSettings(exchange.headers, served))
      return sendWhole(exchange, { status: 304, headers, body: Buffer.alloc(0) })
    sendOAuth(exchange, { status: 200, json: served.json, headers })
  }

  async #sendSpend(exchange: Exchange, credential: Credential): Promise<void> {
    if (credential.kind !== 'key') return deny(exchange, refusalOf(credential))
    const { store, clock } = this.#door
    const nowMs = clock.nowMs()
    const device = await this.#findDevice(credential.digest, nowMs)
    if ('code' in device) return deny(exchange, device)
    const person = await store.getPerson(device.accountId, device.personId, nowMs)
    if (person === null) return deny(exchange, refuseKey('unknown_key'))
    sendOAuth(exchange, { status: 200, json: spendOf(person, nowMs) })
  }

  async #findDevice(digest: Buffer, nowMs: number): Promise<Device | Refusal> {
    const { store } = this.#door
    const device = await store.findDevice(digest, nowMs)
    if (device?.isUsable === true) return device
    const caller = await store.lookUpKey(digest, nowMs)
    return caller.kind === 'refused' ? refuseKey(caller.reason) : NOT_A_DEVICE
  }
}

const refusalOf = (credential: Exclude<Credential, { kind: 'key' }>): Refusal =>
  credential.kind === 'refused' ? credential.refusal : refuseKey('no_key')

const NOT_A_DEVICE = refuse(
  'not_found',
  'This is only for devices that signed in. Sign in with /login or `tollgate login`.',
)
const NO_SETTINGS = refuse(
  'not_found',
  'The gateway has no managed settings. Its operator may set sign_in.managed_settings.',
)

function deny(exchange: Exchange, refusal: Refusal): void {
  sendWhole(exchange, shapeError('own', refusal, exchange.requestId))
}
