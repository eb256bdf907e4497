import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { z } from 'zod'
import { systemClock } from '../kernel/clock.ts'
import { VERSION } from '../kernel/runtime.ts'
import { type CommandOptions, explainBroken, gatewayUrl } from './client.ts'
import { Failure } from './command.ts'
import { readCredential, type StoredCredential, signedInUrls, storeCredential } from './credentials.ts'
import { JSON_OPTION, printResult, shownText } from './terminal.ts'

/** Signs this terminal in as a person (RFC 8628), so that agents and scripts need no key. */

/** A token is refreshed if it would end earlier: whoever asks for it needs time to use it. */
const VALID_MS_MIN = 300_000
const TIMEOUT_MS = 60_000

const codesSchema = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri_complete: z.string(),
  expires_in: z.number(),
  interval: z.number(),
})
const tokenSchema = z.object({
  access_token: z.string(),
  expires_in: z.number(),
  email: z.string().optional(),
})
const refusalSchema = z.object({ error: z.string(), error_description: z.string() })

export function register(command: Command): void {
  command
    .option('--url <url>', 'URL of the gateway')
    .option(...JSON_OPTION)
    .action(async () => await RUN[command.name()]?.(command.opts<CommandOptions>()))
}

const RUN: Readonly<Record<string, (options: CommandOptions) => Promise<void>>> = { login, token, logout }

async function login(options: CommandOptions): Promise<void> {
  const url = gatewayUrl(options)
  const codes = await post(url, 'device_authorization', {}, codesSchema)
  if ('error' in codes) throw new Failure(codes.error_description)
  process.stderr.write(
    `Open ${shownText(codes.verification_uri_complete, 300)}\nand compare the code: ${shownText(codes.user_code)}\n`,
  )
  const credential = await waitForToken(url, codes)
  storeCredential(url, credential)
  const text = `Signed in at ${url}${emailOf(credential)}.\n`
  await printResult(options, { object: 'sign_in', url, email: credential.email ?? null }, text)
}

const emailOf = ({ email }: StoredCredential) => (email === undefined ? '' : ` as ${shownText(email)}`)

async function waitForToken(url: string, codes: z.infer<typeof codesSchema>): Promise<StoredCredential> {
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
  for (let seconds = codes.interval; ; ) {
    await sleep(seconds * 1_000)
    const answer = await post(url, 'token', { grant_type, device_code: codes.device_code }, tokenSchema)
    if (!('error' in answer)) return credentialOf(answer)
    if (answer.error === 'slow_down') seconds += 5
    else if (answer.error !== 'authorization_pending') throw new Failure(answer.error_description)
  }
}

function credentialOf({
  access_token: token,
  expires_in,
  email,
}: z.infer<typeof tokenSchema>): StoredCredential {
  const credential = { token, expires_at: systemClock.nowMs() + expires_in * 1_000 }
  return email === undefined ? credential : { ...credential, email }
}

async function token(options: CommandOptions): Promise<void> {
  const url = gatewayUrl(options)
  const stored = readCredential(url)
  if (stored === null) throw notSignedIn(url)
  const isValid = stored.expires_at > systemClock.nowMs() + VALID_MS_MIN
  const { token: key, expires_at } = isValid ? stored : await refresh(url, stored)
  const ends = new Date(expires_at).toISOString()
  await printResult(options, { object: 'token', token: key, expires_at: ends }, `${key}\n`)
}

const SIGN_IN = 'Run `tollgate login`.'

function notSignedIn(url: string): Failure {
  const others = signedInUrls()
  const elsewhere =
    others.length === 0
      ? '.'
      : `, but at ${others.map((other) => shownText(other, 300)).join(', ')}: name that one with --url or TOLLGATE_URL.`
  return new Failure(`This terminal is not signed in at ${url}${elsewhere} ${SIGN_IN}`)
}

async function refresh(url: string, stored: StoredCredential): Promise<StoredCredential> {
  const form = { grant_type: 'refresh_token', refresh_token: stored.token }
  const answer = await post(url, 'token', form, tokenSchema)
  if ('error' in answer) {
    if (answer.error !== 'invalid_grant') throw new Failure(answer.error_description)
    storeCredential(url, null)
    throw new Failure(`This terminal is no longer signed in at ${url}. ${SIGN_IN}`)
  }
  const credential = credentialOf(answer)
  storeCredential(url, credential)
  return credential
}

async function logout(options: CommandOptions): Promise<void> {
  const url = gatewayUrl(options)
  const stored = readCredential(url)
  if (stored !== null) {
    const answer = await post(url, 'revoke', { token: stored.token }, z.object({}))
    if ('error' in answer) throw new Failure(answer.error_description)
    storeCredential(url, null)
  }
  const text = stored === null ? `Nobody is signed in at ${url}.\n` : `Signed out at ${url}.\n`
  await printResult(options, { object: 'sign_out', url }, text)
}

type OAuthRefusal = z.infer<typeof refusalSchema>

/** Sends a form to an OAuth endpoint of the gateway. */
async function post<T>(
  url: string,
  endpoint: string,
  form: Readonly<Record<string, string>>,
  schema: z.ZodType<T>,
): Promise<T | OAuthRefusal> {
  try {
    const response = await fetch(`${url}/gateway/oauth/${endpoint}`, {
      method: 'POST',
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { 'user-agent': `tollgate/${VERSION} on ${hostname()}` },
      body: new URLSearchParams(form),
    })
    const answer: unknown = await response.json().catch(() => null)
    const parsed = (response.ok ? schema : refusalSchema).safeParse(answer)
    if (parsed.success) return parsed.data as T | OAuthRefusal
    throw new Failure(
      response.status === 401
        ? `People do not sign in at ${url}: its operator can turn that on with sign_in. Until then, use a key.`
        : `${url} answered ${response.status}, but not like a Tollgate gateway of this version. Check --url and TOLLGATE_URL.`,
    )
  } catch (error) {
    throw explainBroken(url, error)
  }
}
