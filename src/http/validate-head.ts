import { type ErrorCode, type Refusal, refuse } from '../kernel/errors.ts'
import { type RawHeaders, valuesOf } from './raw-headers.ts'

/** Host names, IP literals and ports. A slash, `#`, `?`, `@` or space in Host has led to routing attacks before. */
const HOST = /^[A-Za-z0-9._~%!$&'()*+,;=:[\]-]+$/

/** Refuses ambiguous heads that llhttp accepts. Each refusal closes the connection. */
export function validateHead(httpVersion: string, method: string, headers: RawHeaders): Refusal | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return close('Only HTTP/1.1 and HTTP/1.0 are supported.')
  if (method === 'TRACE' || method === 'CONNECT')
    return close(`${method} is not supported. Use the method of the endpoint.`, 'method_not_allowed')
  // llhttp takes the method of Icecast for one of HTTP.
  if (method === 'SOURCE') return close('SOURCE is not a method of HTTP. Use the method of the endpoint.')
  const hosts = valuesOf(headers, 'host')
  if (hosts.length > 1) return close('The request has more than one Host header. Send one.')
  const [host] = hosts
  if (host === undefined && httpVersion === '1.1') return close('The Host header is missing. Send one.')
  if (host !== undefined && !HOST.test(host))
    return close('The Host header is not a host name with an optional port. Correct it.')
  // Like Node, the connection accepts any value that contains `100-continue`.
  if (valuesOf(headers, 'expect').some((value) => value.trim().toLowerCase() !== '100-continue')) {
    const message = 'Only "Expect: 100-continue" is supported. Send that value or no Expect header.'
    return close(message, 'expectation_failed')
  }
  const codings = valuesOf(headers, 'transfer-encoding')
  if (codings.length === 0) return null
  if (httpVersion === '1.0') return close('HTTP/1.0 does not support Transfer-Encoding. Send Content-Length.')
  if (codings.length > 1 || codings[0]?.trim().toLowerCase() !== 'chunked')
    return close('Only the transfer coding "chunked" is supported. Send it alone, or send Content-Length.')
  return null
}

function close(message: string, code: ErrorCode = 'bad_request'): Refusal {
  return refuse(code, message, { close: true })
}

export interface Target {
  readonly path: string
  readonly query: string
}

type ValidatedTarget =
  | { readonly kind: 'target'; readonly target: Target }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Validates the target before `?` without normalising it. An ambiguous path is refused, not repaired. */
export function validateTarget(rawTarget: string, host: string | undefined): ValidatedTarget {
  const origin = toOriginForm(rawTarget, host)
  if (origin === null)
    return refused('The request target is neither a path nor a URL of this host. Send a path')
  const queryAt = origin.indexOf('?')
  const path = queryAt === -1 ? origin : origin.slice(0, queryAt)
  const problem = problemOf(path)
  if (problem !== null) return refused(`The path has ${problem}. Send the path without it`)
  return { kind: 'target', target: { path, query: queryAt === -1 ? '' : origin.slice(queryAt) } }
}

function decodeSlashes(path: string): string {
  return path.includes('%') ? path.replaceAll(/%2f/gi, '/') : path
}

function refused(message: string): ValidatedTarget {
  return { kind: 'refused', refusal: refuse('bad_request', `${message}.`) }
}

function toOriginForm(target: string, host: string | undefined): string | null {
  if (target.startsWith('/')) return target
  const absolute = /^https?:\/\/([^/?#]+)(.*)$/i.exec(target)
  if (absolute === null || host === undefined) return null
  const [, authority = '', rest = ''] = absolute
  if (authority.toLowerCase() !== host.toLowerCase()) return null
  return rest.startsWith('/') ? rest : `/${rest}`
}

const PLAIN_PATH = /^(?:\/[\w-]+)+$/

function problemOf(path: string): string | null {
  if (PLAIN_PATH.test(path)) return null
  if (path.includes('//')) return 'an empty segment (`//`)'
  if (path.includes('#')) return 'a fragment (`#`)'
  if (path.includes('\\') || /%5c/i.test(path)) return 'a backslash'
  if (/[^\x21-\x7e]/.test(path)) return 'a blank, control or non-ASCII character'
  for (const segment of decodeSlashes(path).split('/')) {
    const plain = segment.replaceAll(/%2e/gi, '.')
    if (plain === '.' || plain === '..') return 'a dot segment'
  }
  return null
}

/** The gateway's own paths, which are never forwarded. Under `/v1` there are exactly two. */
const OWNED_EXACT: ReadonlySet<string> = new Set([
  ...'/v1/keys /v1/usage /gateway /dashboard /healthz /readyz /metrics'.split(' '),
])
const OWNED_BELOW = ['/v1/keys/', '/gateway/', '/dashboard/']

/** Where coding agents expect what belongs to the sign-in of people. Without such a sign-in, they are upstream's. */
const OWNED_WITH_SIGN_IN: ReadonlySet<string> = new Set([
  ...'/.well-known/oauth-authorization-server /managed/settings /api/oauth/usage'.split(' '),
])

export function isOwnedPath(path: string, hasSignIn = false): boolean {
  if (OWNED_EXACT.has(path) || OWNED_BELOW.some((start) => path.startsWith(start))) return true
  return hasSignIn && OWNED_WITH_SIGN_IN.has(path)
}

/** Where people begin to sign in. */
export const SIGN_IN_PATH = '/gateway/sign-in'

/** The addresses through which people sign in at an identity provider. */
export function isSignInPath(path: string): boolean {
  return path === SIGN_IN_PATH || path === `${SIGN_IN_PATH}/callback`
}

/** Whether encoded slashes hide an own path. A proxy or upstream might decode it, so it must not be forwarded. */
export function hidesOwnedPath(path: string, hasSignIn = false): boolean {
  const decoded = decodeSlashes(path)
  return decoded !== path && !isOwnedPath(path, hasSignIn) && isOwnedPath(decoded, hasSignIn)
}
