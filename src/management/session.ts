import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import type { Written } from '../api/fields.ts'
import { personObject } from '../api/objects.ts'
import { type Session, signInFields } from '../api/overview.ts'
import type { Person } from '../api/person.ts'
import type { Exchange } from '../http/exchange.ts'
import { type RawHeaders, valuesOf } from '../http/raw-headers.ts'
import { unlessLate } from '../kernel/deadlines.ts'
import { limits } from '../kernel/limits.ts'
import { type Caller, callerId, type KeyCaller, type KeyLookup } from '../keys/credential.ts'
import type { DigestKey } from '../keys/secrets.ts'
import { queuesOf, RequestQueues, TOO_MANY } from './request-queues.ts'
import { DEFAULT_ACCOUNT } from './resolve-account.ts'
import { roleOf } from './roles.ts'
import {
  defineRoute,
  formatInstant,
  invalid,
  type Management,
  NO_STORE,
  type OwnExchange,
  type Refused,
  refused,
  replyEmpty,
  replyJson,
} from './route.ts'

export const SESSIONS_MAX = 100

const signIns = new RequestQueues()

/** The cookie replaces the key that signed in, but only on own paths, and only in requests of our own pages. */

export const SESSION_COOKIE = 'tollgate_session'
const TOKEN_BYTES = 32
const TOKEN = /^[\w-]{43}$/

/** No key has the form `session:…`, so no key shares a token's digest. */
const digestOf = (token: string, digestKey: DigestKey): Buffer => digestKey(`session:${token}`)

/** A session that is about to be opened: the cookie's value, and what the store keeps of it. */
export function newToken(digestKey: DigestKey) {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  return { token, digest: digestOf(token, digestKey) }
}

/** Sessions are not cached: revoking the key ends them at once, on every node. */
export async function sessionOf(
  exchange: Pick<Exchange, 'method' | 'headers'>,
  { store, clock, digestKey }: Pick<Management, 'store' | 'clock' | 'digestKey'>,
) {
  const token = acceptsCookie(exchange) ? tokenIn(exchange.headers) : null
  if (token === null) return { kind: 'none' } as const
  const digest = digestOf(token, digestKey)
  const record = await store.findSession(digest, clock.nowMs())
  if (record === null) return refused('invalid_api_key', 'The session has ended. Sign in again.')
  const { caller, expiresAtMs } = record
  return { kind: 'session', session: { digest, expiresAtMs }, caller } as const
}

/** Whether the cookie is accepted. A change must prove the same origin; a read must not come from another site. */
function acceptsCookie({ method, headers }: Pick<Exchange, 'method' | 'headers'>): boolean {
  const sites = valuesOf(headers, 'sec-fetch-site')
  if (method === 'GET' || method === 'HEAD')
    return sites.every((site) => site === 'same-origin' || site === 'none')
  if (sites.length > 0) return sites.every((site) => site === 'same-origin')
  return valuesOf(headers, 'origin').length > 0 && isOwnOrigin(headers)
}

function isOwnOrigin(headers: RawHeaders): boolean {
  const [host = ''] = valuesOf(headers, 'host')
  return valuesOf(headers, 'origin').every((origin) => {
    const url = URL.parse(origin)
    return url !== null && url.host === URL.parse(`${url.protocol}//${host}`)?.host
  })
}

/** Whether another site sends the sign-in (login CSRF), so that the user works in the attacker's account. */
function isForeignSignIn(headers: RawHeaders): boolean {
  const sites = valuesOf(headers, 'sec-fetch-site')
  if (sites.length > 0) return sites.some((site) => site !== 'same-origin' && site !== 'none')
  return !isOwnOrigin(headers)
}

/** Two different cookies count as none: a sibling site can set cookies for the whole domain. */
function tokenIn(headers: RawHeaders): string | null {
  const pairs = valuesOf(headers, 'cookie').flatMap((line) => line.split(';'))
  const named = pairs.map((pair) => pair.trim()).filter((pair) => pair.startsWith(`${SESSION_COOKIE}=`))
  const [token = '', another] = new Set(named.map((pair) => pair.slice(SESSION_COOKIE.length + 1)))
  return another === undefined && TOKEN.test(token) ? token : null
}

export function setCookie(
  { isSecure }: Pick<OwnExchange, 'isSecure'>,
  token: string,
  seconds: number,
): readonly string[] {
  const parts = [`${SESSION_COOKIE}=${token}`, 'Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict']
  return ['set-cookie', [...parts, ...(isSecure ? ['Secure'] : [])].join('; ')]
}

async function authenticateSignIn(
  body: z.infer<typeof signInFields>,
  { store, clock, digestKey }: Management,
): Promise<KeyCaller | Refused> {
  const { admin_key: adminKey, key } = body
  const param = adminKey === undefined ? 'key' : 'admin_key'
  const given = adminKey ?? key
  if (given === undefined || (adminKey !== undefined && key !== undefined))
    return invalid(param, 'Exactly one of admin_key and key is required. Send one of them.')
  const caller = await store.lookUpKey(digestKey(given), clock.nowMs())
  if (caller.kind === (adminKey === undefined ? 'api_key' : 'admin_key')) return caller
  return refused('invalid_api_key', whyNotSignedIn(caller, param), param)
}

function whyNotSignedIn(caller: KeyLookup, param: 'key' | 'admin_key'): string {
  if (caller.kind === 'admin_key') return 'This is an admin key. Send it as `admin_key`.'
  if (caller.kind === 'api_key') return 'This is an API key. Send it as `key`.'
  const kind = param === 'key' ? 'API key' : 'admin key'
  if (caller.reason === 'revoked_key') return `This ${kind} was revoked. Sign in with another one.`
  if (caller.reason === 'expired_key') return `This ${kind} has expired. Sign in with another one.`
  return `This is not an ${kind} of this gateway. Check the key.`
}

export function sessionObject(
  expiresAtMs: number,
  caller: Caller,
  person: Written<Person> | null,
): Written<Session> {
  const { accountId: account_id } = caller
  return {
    object: 'session',
    expires_at: formatInstant(expiresAtMs),
    role: roleOf(caller),
    account_id,
    person,
  }
}

export const openSession = defineRoute({
  summary: 'Sign in to the dashboard',
  description:
    `Exchanges an admin key, or an API key, for a session cookie that is valid for ${limits.sessionMs / 3_600_000} hours, on the gateway's own paths only. ` +
    'If a request also sends a key, the key is used. Requests from other sites are refused.',
  body: signInFields,
  status: 201,
  async handle({ exchange, body, atMs }, management) {
    if (isForeignSignIn(exchange.headers))
      return refused('bad_request', 'Sign in from a page of this gateway, not from another site.')
    const caller = await authenticateSignIn(body, management)
    if (caller.kind === 'refused') return caller
    const { store, digestKey } = management
    const { token, digest } = newToken(digestKey)
    const keyId = callerId(caller)
    const session = { digest, keyId, atMs, lifeMs: limits.sessionMs, sessionsMax: SESSIONS_MAX }
    const opened = await signIns.run(queuesOf(caller), async () => ({
      record: await store.openSession(session),
    }))
    if (opened === null) return TOO_MANY
    const { record } = opened
    if (record === null) return refused('invalid_api_key', 'This key was revoked. Sign in with another one.')
    const cookie = setCookie(exchange, token, limits.sessionMs / 1_000)
    return replyJson(201, sessionObject(record.expiresAtMs, caller, null), [...NO_STORE, ...cookie])
  },
})

export const getSession = defineRoute({
  summary: 'Show the session of this request',
  async handle({ session, caller, atMs }, { store }) {
    if (session === null) return NO_SESSION
    if (caller.kind !== 'person') return sessionObject(session.expiresAtMs, caller, null)
    const person = await store.getPerson(caller.accountId ?? DEFAULT_ACCOUNT, caller.personId, atMs)
    return sessionObject(session.expiresAtMs, caller, person && personObject(person, atMs))
  },
})

/** Signing out must not wait long for a provider that is slow. */
const END_SESSION_URL_MS = 2_000

export const endSession = defineRoute({
  summary: 'Sign out',
  description:
    'For a person, the answer names the page of the identity provider that ends the session there too.',
  mayBeEmpty: true,
  async handle({ exchange, session, caller }, { store, endSessionUrl }) {
    if (session === null) return NO_SESSION
    await store.endSession(session.digest)
    const headers = [...NO_STORE, ...setCookie(exchange, '', 0)]
    if (caller.kind !== 'person') return replyEmpty(headers)
    const end_session_url = await unlessLate(endSessionUrl(), END_SESSION_URL_MS)
    return replyJson(200, { end_session_url }, headers)
  },
})

const NO_SESSION = refused('invalid_api_key', 'There is no session. Sign in with POST /gateway/v1/session.')
