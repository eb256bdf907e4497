import { randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Exchange } from '../http/exchange.ts'
import { type RawHeaders, valuesOf } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Caller } from '../keys/credential.ts'
import type { DigestKey } from '../keys/key-digest.ts'
import { formatInstant, instant, type Members, objectOf, schemaOf } from './fields.ts'
import {
  defineRoute,
  type Management,
  type OwnExchange,
  type OwnReply,
  type OwnRequest,
  refused,
  replyJson,
  type Session,
  UNSTORED,
} from './route.ts'

/**
 * Sessions of the dashboard. The cookie stands in for the admin key it was opened with, on our own paths alone: on other
 * paths nothing reads it. Pages of other sites can make a browser send a request, with its cookies in browsers that do not
 * know SameSite; such pages can neither read the token that a change needs nor set its header, and `Sec-Fetch-Site` shows them.
 */

export const SESSION_COOKIE = 'tollgate_session'
const TOKEN_BYTES = 32
const TOKEN = /^[\w-]{43}$/

/** The digest by which the store knows a session. Keys have another form, so no key has the digest of a token. */
const digestOf = (token: string, digestKey: DigestKey): Buffer => digestKey(`session:${token}`)

/** The CSRF token is derived from the session's token, so that nothing more is kept. It does not reveal the session's token. */
const csrfTokenOf = (token: string, digestKey: DigestKey): string =>
  digestKey(`csrf:${token}`).toString('base64url')

export type FoundSession =
  | { readonly kind: 'session'; readonly session: Session; readonly caller: Caller }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** The request has no cookie that counts. */
  | { readonly kind: 'none' }

/** The session of a request without a key. Sessions are not cached: a revoked admin key ends them at once, on every node. */
export async function findSession(
  { method, headers }: Pick<Exchange, 'method' | 'headers'>,
  { store, clock, digestKey }: Pick<Management, 'store' | 'clock' | 'digestKey'>,
): Promise<FoundSession> {
  const token = isOfOtherSite(headers) ? null : tokenIn(headers)
  if (token === null) return { kind: 'none' }
  const digest = digestOf(token, digestKey)
  const record = await store.findSession(digest, clock.nowMs())
  if (record === null) return refusal(refuse('invalid_api_key', 'The session has ended. Sign in again.'))
  const session = { digest, csrfToken: csrfTokenOf(token, digestKey), expiresAtMs: record.expiresAtMs }
  if (method !== 'GET' && method !== 'HEAD' && !carriesToken(headers, session.csrfToken)) {
    const message = 'Send the csrf_token of the session as the header x-csrf-token.'
    return refusal(refuse('csrf_token_required', message))
  }
  const caller = { kind: 'admin_key', keyId: record.adminKeyId, accountId: record.accountId } as const
  return { kind: 'session', session, caller }
}

function refusal(why: Refusal): FoundSession {
  return { kind: 'refused', refusal: why }
}

/** Browsers name the site of a request. A client without the header is no browser of today, and needs the token anyway. */
function isOfOtherSite(headers: RawHeaders): boolean {
  return valuesOf(headers, 'sec-fetch-site').some((site) => site !== 'same-origin' && site !== 'none')
}

/** Two different cookies count as none: one may be of a neighbouring site, which can set cookies for its whole domain. */
function tokenIn(headers: RawHeaders): string | null {
  const pairs = valuesOf(headers, 'cookie').flatMap((line) => line.split(';'))
  const named = pairs.map((pair) => pair.trim()).filter((pair) => pair.startsWith(`${SESSION_COOKIE}=`))
  const [token = '', another] = new Set(named.map((pair) => pair.slice(SESSION_COOKIE.length + 1)))
  return another === undefined && TOKEN.test(token) ? token : null
}

function carriesToken(headers: RawHeaders, wanted: string): boolean {
  const [given = '', another] = valuesOf(headers, 'x-csrf-token')
  const [one, other] = [Buffer.from(given), Buffer.from(wanted)]
  return another === undefined && one.length === other.length && timingSafeEqual(one, other)
}

function setCookie({ isSecure }: OwnExchange, token: string, seconds: number): readonly string[] {
  const parts = [`${SESSION_COOKIE}=${token}`, 'Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict']
  return ['set-cookie', [...parts, ...(isSecure ? ['Secure'] : [])].join('; ')]
}

// The endpoints

const sessionMembers: Members<Pick<Session, 'csrfToken' | 'expiresAtMs'>> = {
  object: [z.literal('session'), () => 'session'],
  expires_at: [instant(), ({ expiresAtMs }) => formatInstant(expiresAtMs)],
  csrf_token: [
    z.string().describe('What requests that change something send as the header `x-csrf-token`.'),
    'csrfToken',
  ],
}

const sessionSchema = schemaOf(sessionMembers).meta({
  id: 'session',
  description: 'A session of the dashboard. It ends by itself, with its admin key, or when it is deleted.',
})

const signInFields = z.strictObject({
  admin_key: z
    .string('admin_key must be an admin key.')
    .min(1, 'admin_key must be an admin key.')
    .max(1_024, 'admin_key must be an admin key.')
    .describe('The admin key that the session stands in for.'),
})

/** The body of a sign-in, by which its caller is recognised before it is handled. */
export type SignIn = z.infer<typeof signInFields>

const openSession = defineRoute({
  endpoint: 'POST /gateway/v1/session',
  access: 'sign_in',
  operationId: 'open_session',
  summary: 'Sign in to the dashboard',
  description:
    `Exchanges an admin key for a cookie that stands in for it for ${limits.sessionMs / 3_600_000} hours, on the ` +
    "gateway's own paths. Anything but GET and HEAD needs `csrf_token` as the header `x-csrf-token` too. A request with " +
    'a key of its own uses that.',
  body: signInFields,
  success: { status: 201, schema: sessionSchema },
  errors: ['too_many_sign_ins'],
  async handle({ exchange, caller }, { store, clock, digestKey }) {
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    const record = await store.openSession({
      digest: digestOf(token, digestKey),
      adminKeyId: caller.keyId,
      atMs: clock.nowMs(),
      lifeMs: limits.sessionMs,
      sessionsMax: limits.sessionsPerAdminKeyMax,
    })
    if (record === null) return refused('invalid_api_key', 'This admin key was revoked.', 'admin_key')
    const shown = { csrfToken: csrfTokenOf(token, digestKey), expiresAtMs: record.expiresAtMs }
    const cookie = setCookie(exchange, token, limits.sessionMs / 1_000)
    return replyJson(201, objectOf(sessionMembers, shown), [...UNSTORED, ...cookie])
  },
})

const getSession = defineRoute({
  endpoint: 'GET /gateway/v1/session',
  operationId: 'get_session',
  summary: 'Show the session that this request comes with',
  success: { status: 200, schema: sessionSchema },
  async handle({ session }) {
    return session === null ? refusedNoSession() : replyJson(200, objectOf(sessionMembers, session))
  },
})

const endSession = defineRoute({
  endpoint: 'DELETE /gateway/v1/session',
  operationId: 'end_session',
  summary: 'Sign out',
  success: { status: 204, schema: null },
  async handle({ exchange, session }: OwnRequest, { store }): Promise<OwnReply> {
    if (session === null) return refusedNoSession()
    await store.endSession(session.digest)
    const headers = [...UNSTORED, ...setCookie(exchange, '', 0)]
    return { kind: 'reply', reply: { status: 204, headers, body: Buffer.alloc(0) } }
  },
})

/** The refusal of a request with a key: a key opens everything else, but it is no session. */
function refusedNoSession(): OwnReply {
  return refused('invalid_api_key', 'There is no session. Sign in with POST /gateway/v1/session.')
}

export const sessionRoutes = [openSession, getSession, endSession]
