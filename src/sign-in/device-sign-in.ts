import { randomBytes, randomInt } from 'node:crypto'
import { USER_CODE_LETTERS } from '../api/device.ts'
import { networkOf } from '../http/addresses.ts'
import type { Exchange } from '../http/exchange.ts'
import type { BodyTimes } from '../http/incoming-request.ts'
import { firstValue } from '../http/raw-headers.ts'
import type { Clock } from '../kernel/clock.ts'
import { unlessLate } from '../kernel/deadlines.ts'
import type { IdSource } from '../kernel/ids.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { DeviceLife, Redemption } from '../keys/device-store.ts'
import { keyKindOf, mintKey, shownParts } from '../keys/key-format.ts'
import type { DigestKey } from '../keys/secrets.ts'
import { ChangeRate } from '../management/change-rate.ts'
import type { Store } from '../store/store.ts'
import { reasonOf } from './identity-provider.ts'
import { invalidRequest, type OAuthReply, oauthError, readForm, sendOAuth } from './oauth.ts'
import type { PersonChecks } from './person-checks.ts'

export interface DeviceDoor {
  readonly dashboardUrl: string
  readonly deviceMs: number
  readonly servicePrefix: string
  readonly store: Pick<
    Store,
    'createDeviceCode' | 'redeemDeviceCode' | 'findDevice' | 'refreshDevice' | 'revokeDevice'
  >
  readonly clock: Clock
  readonly log: Log
  readonly nextUlid: IdSource
  readonly digestKey: DigestKey
  readonly checks: Pick<PersonChecks, 'checkAgain'>
  readonly bodyTimes: BodyTimes
  /** Waiting calls of a key that was revoked must be refused. */
  recheckWaitingCalls(): void
}

type Form = ReadonlyMap<string, string>

const USER_CODE_CHARS = 8
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** A client keeps its session while it waits so long for a refresh; a slow provider's answer counts when it comes. */
const CHECK_WAIT_MS = 5_000

/** How devices sign in, stay signed in and sign out: RFC 8628, and what coding agents make of it. */
export class DeviceSignIn {
  readonly #door: DeviceDoor
  readonly #byAddress = new ChangeRate(limits.deviceCodesPerAddressMax, limits.deviceCodeMs)
  readonly #onNode = new ChangeRate(limits.deviceCodesPerNodeMax, limits.deviceCodeMs)

  constructor(door: DeviceDoor) {
    this.#door = door
  }

  /** Null: the path is none of these. */
  endpoint(path: string): ((exchange: Exchange) => Promise<void>) | null {
    const handle = this.#handlerOf(path)
    return handle === null ? null : (exchange) => this.#answer(exchange, handle)
  }

  #handlerOf(path: string): ((form: Form, exchange: Exchange) => Promise<OAuthReply>) | null {
    if (path === '/gateway/oauth/device_authorization') return (_, exchange) => this.#begin(exchange)
    if (path === '/gateway/oauth/token') return (form) => this.#exchangeToken(form)
    return path === '/gateway/oauth/revoke' ? (form) => this.#revoke(form) : null
  }

  async #answer(
    exchange: Exchange,
    handle: (form: Form, exchange: Exchange) => Promise<OAuthReply>,
  ): Promise<void> {
    if (exchange.method !== 'POST')
      return sendOAuth(exchange, {
        ...invalidRequest('Send a form with POST.'),
        status: 405,
        headers: ['allow', 'POST'],
      })
    const form = await readForm(exchange, this.#door.bodyTimes)
    if (form === null) return
    const reply =
      'status' in form ? form : await handle(form, exchange).catch((error: unknown) => this.#fail(error))
    sendOAuth(exchange, reply)
  }

  #fail(error: unknown): OAuthReply {
    this.#door.log.warn({ reason: reasonOf(error) }, 'a device could not sign in, refresh or sign out')
    return oauthError('temporarily_unavailable', 'The gateway cannot answer now. Try again.', [
      'retry-after',
      '1',
    ])
  }

  async #begin(exchange: Exchange): Promise<OAuthReply> {
    const { store, clock, digestKey, dashboardUrl } = this.#door
    const atMs = clock.nowMs()
    const seconds = this.#secondsToWait(networkOf(exchange.clientIp), atMs)
    if (seconds !== null) {
      const wait = ['retry-after', String(seconds)]
      return oauthError('slow_down', `Too many sign-ins have begun. Try again in ${seconds} s.`, wait)
    }
    const deviceCode = randomBytes(32).toString('base64url')
    const digest = digestOf(deviceCode, digestKey)
    const client = clientOf(exchange)
    let userCode: string
    do userCode = newUserCode()
    while (!(await store.createDeviceCode({ digest, userCode, client, lifeMs: limits.deviceCodeMs, atMs })))
    const shown = `${userCode.slice(0, 4)}-${userCode.slice(4)}`
    const page = `${dashboardUrl}/dashboard/device`
    return {
      status: 200,
      json: {
        device_code: deviceCode,
        user_code: shown,
        verification_uri: page,
        verification_uri_complete: `${page}?user_code=${shown}`,
        expires_in: limits.deviceCodeMs / 1_000,
        interval: 5,
      },
    }
  }

  /** What one address may not begin does not count for the node: it must not lock the others out. */
  #secondsToWait(address: string, atMs: number): number | null {
    const [node, addresses] = [this.#onNode, this.#byAddress]
    return node.secondsToWait('', atMs) ?? addresses.admit(address, atMs) ?? node.admit('', atMs)
  }

  async #exchangeToken(form: Form): Promise<OAuthReply> {
    const grant = form.get('grant_type')
    if (grant === DEVICE_GRANT) return await this.#redeem(form.get('device_code'))
    if (grant === 'refresh_token') return await this.#refresh(form.get('refresh_token'))
    if (grant === undefined) return missing('grant_type')
    return oauthError('unsupported_grant_type', `Use the grant type ${DEVICE_GRANT} or refresh_token.`)
  }

  async #redeem(deviceCode: string | undefined): Promise<OAuthReply> {
    if (deviceCode === undefined) return missing('device_code')
    const { store, clock, digestKey, nextUlid, servicePrefix, log } = this.#door
    const secret = mintKey(servicePrefix, 'live')
    const device = {
      id: `key_${nextUlid()}`,
      digest: digestKey(secret.reveal()),
      ...shownParts(secret, servicePrefix),
      ...this.#life(clock.nowMs()),
    }
    // Clients give up at the first 5xx, so a database that does not answer looks like a person who has not answered yet.
    const redemption = await store
      .redeemDeviceCode(digestOf(deviceCode, digestKey), device)
      .catch((error: unknown): Redemption => {
        log.warn({ reason: reasonOf(error) }, 'a device must ask again, because the database did not answer')
        return { kind: 'pending' }
      })
    return redemption.kind === 'signed_in'
      ? tokenReply(secret.reveal(), redemption.email)
      : PENDING[redemption.kind]
  }

  /** The key is its own refresh token. A leaver is noticed here, within the hour. */
  async #refresh(key: string | undefined): Promise<OAuthReply> {
    if (key === undefined) return missing('refresh_token')
    const { store, clock, digestKey, checks } = this.#door
    const digest = this.#isKey(key) ? digestKey(key) : null
    const device = digest && (await store.findDevice(digest, clock.nowMs()))
    if (digest === null || device === null) return SIGNED_OUT
    await unlessLate(checks.checkAgain(device.personId), CHECK_WAIT_MS)
    const person = await store.refreshDevice(digest, this.#life(clock.nowMs()))
    return person === null ? SIGNED_OUT : tokenReply(key, person.email)
  }

  async #revoke(form: Form): Promise<OAuthReply> {
    const token = form.get('token') ?? ''
    const { store, clock, digestKey, recheckWaitingCalls } = this.#door
    if (this.#isKey(token)) {
      await store.revokeDevice(digestKey(token), clock.nowMs())
      recheckWaitingCalls()
    }
    return { status: 200, json: {} }
  }

  #isKey(text: string): boolean {
    return keyKindOf(text, this.#door.servicePrefix) === 'live'
  }

  #life(atMs: number): DeviceLife {
    return { usableMs: limits.deviceUsableMs, refreshableMs: this.#door.deviceMs, atMs }
  }
}

/** No key has the form `device:…`, so no key shares a code's digest. */
const digestOf = (deviceCode: string, digestKey: DigestKey) => digestKey(`device:${deviceCode}`)

function newUserCode(): string {
  const letter = () => USER_CODE_LETTERS[randomInt(USER_CODE_LETTERS.length)]
  return Array.from({ length: USER_CODE_CHARS }, letter).join('')
}

const NAME_CHARS_MAX = 120

function clientOf({ headers }: Exchange): string {
  const name = (firstValue(headers, 'user-agent') ?? '').replace(/[^\x20-\x7e]/g, '?').trim()
  return name === '' ? 'device' : name.slice(0, NAME_CHARS_MAX)
}

function tokenReply(key: string, email: string): OAuthReply {
  const tokens = { access_token: key, refresh_token: key, token_type: 'Bearer' }
  const expires_in = limits.deviceUsableMs / 1_000
  return { status: 200, json: { ...tokens, expires_in, email: email === '' ? undefined : email } }
}

const missing = (member: string) => invalidRequest(`${member} is missing from the form.`)

const PENDING: Readonly<Record<Exclude<Redemption['kind'], 'signed_in'>, OAuthReply>> = {
  pending: oauthError('authorization_pending', 'Nobody has approved the device yet. Ask again in 5 s.'),
  too_fast: oauthError('slow_down', 'Wait 5 s longer between two requests.'),
  denied: oauthError('access_denied', 'The sign-in was denied. Begin again if you want to sign in.'),
  expired: oauthError('expired_token', 'The code has expired, was used, or is unknown. Begin again.'),
}

const SIGNED_OUT = oauthError('invalid_grant', 'This device is signed out. Sign in again.')
