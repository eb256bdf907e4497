import { z } from 'zod'
import { type RawHeaders, valuesOf } from '../http/raw-headers.ts'
import { Secret } from '../kernel/secret.ts'
import type { SecretSealer } from '../keys/secrets.ts'

/** The cookie of a sign-in that has begun. A callback counts only in the browser that has it. */

const NAME = 'tollgate_sign_in'
const PATH = '/gateway/sign-in'
const LIFE_MS = 600_000
/** What the sealed value is bound to. */
const RECORD = 'sign-in'

const attemptSchema = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  returnTo: z.string(),
  expiresAtMs: z.number(),
})

export type BegunAttempt = Omit<z.infer<typeof attemptSchema>, 'expiresAtMs'>

export function sealAttempt(
  { state, nonce, verifier, returnTo }: BegunAttempt,
  sealer: SecretSealer,
  nowMs: number,
): string {
  const text = JSON.stringify({ state, nonce, verifier, returnTo, expiresAtMs: nowMs + LIFE_MS })
  return sealer.seal(new Secret(text), RECORD).toString('base64url')
}

/** Null: there is no cookie, it has expired, or it is not ours. Several cookies count as none. */
export function openAttempt(headers: RawHeaders, sealer: SecretSealer, nowMs: number): BegunAttempt | null {
  const pairs = valuesOf(headers, 'cookie').flatMap((line) => line.split(';').map((pair) => pair.trim()))
  const [value, another] = pairs.filter((pair) => pair.startsWith(`${NAME}=`))
  if (value === undefined || another !== undefined) return null
  try {
    const sealed = Buffer.from(value.slice(NAME.length + 1), 'base64url')
    const attempt = attemptSchema.parse(JSON.parse(sealer.open(sealed, RECORD).reveal()))
    return attempt.expiresAtMs > nowMs ? attempt : null
  } catch {
    return null
  }
}

/** SameSite=Lax, because the provider's page sends the browser back from another site. */
export function attemptCookie(value: string, isSecure: boolean): readonly string[] {
  const seconds = value === '' ? 0 : LIFE_MS / 1_000
  const parts = [`${NAME}=${value}`, `Path=${PATH}`, `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Lax']
  return ['set-cookie', [...parts, ...(isSecure ? ['Secure'] : [])].join('; ')]
}

const DASHBOARD_PAGE = /^\/dashboard(\/[\w/-]*)?(\?[^#\\\p{Cc}]*)?$/u

/** Only a page of the dashboard: any other address might be another site's. */
export function returnPath(given: string | null): string {
  if (given === null || !DASHBOARD_PAGE.test(given)) return '/dashboard'
  return given.replace(/[^!-~]/gu, encodeURIComponent)
}
