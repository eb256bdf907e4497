import { hasHeader, type RawHeaders, valuesOf } from '../http/raw-headers.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import { SURFACES } from './surfaces.ts'

/** Headers in which clients send a key. All are read on both surfaces. */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'api-key'])

export function carriesCredential(headers: RawHeaders): boolean {
  for (const name of CREDENTIAL_HEADERS) if (hasHeader(headers, name)) return true
  return false
}

/** The client's credentials, and selectors of another organisation, project or workspace. */
export const CLIENT_ACCOUNT_HEADERS: ReadonlySet<string> = new Set([
  ...CREDENTIAL_HEADERS,
  'proxy-authorization',
  'cookie',
  ...Object.values(SURFACES).flatMap(({ upstream }) => upstream.accountHeaders),
])

export function providerCredential(surface: Surface, key: Secret): readonly [name: string, value: string] {
  return SURFACES[surface].upstream.credential(key.reveal())
}

/** The key in a credential header; null if the header has something else (`Basic …`, nothing). */
export function keyInHeader(lowerName: string, value: string): string | null {
  const text = value.trim()
  if (lowerName !== 'authorization') return text === '' ? null : text
  const bearer = /^bearer[ \t]+(\S.*)$/i.exec(text)
  return bearer?.[1]?.trim() ?? null
}

/** The header in which browsers send their credential, because browser WebSockets cannot set others. */
const PROTOCOLS = 'sec-websocket-protocol'
const KEY = /^openai-insecure-api-key\.(.*)$/i
const ACCOUNT = /^openai-(?:organization|project)\./i

function protocolsIn(value: string): string[] {
  return value.split(',').map((protocol) => protocol.trim())
}

/** The keys among the client's subprotocols. */
export function keysInProtocols(headers: RawHeaders): string[] {
  return valuesOf(headers, PROTOCOLS)
    .flatMap(protocolsIn)
    .flatMap((protocol) => KEY.exec(protocol)?.[1] ?? [])
}

/** The provider's key replaces the client's, account selectors are removed. Null: none are left. */
export function protocolsForUpstream(value: string, key: string | null): string | null {
  const offered = protocolsIn(value)
  const forwarded = offered
    .filter((protocol) => !ACCOUNT.test(protocol) && (key !== null || !KEY.test(protocol)))
    .map((protocol) => (KEY.test(protocol) ? `openai-insecure-api-key.${key}` : protocol))
  if (forwarded.length === 0) return null
  // A value without a credential stays unchanged.
  return forwarded.length === offered.length && !forwarded.some((protocol) => KEY.test(protocol))
    ? value
    : forwarded.join(', ')
}

/** Upstream's header lines. If upstream chose the subprotocol with the key, the client gets the one it offered. */
export function protocolsForClient(headers: readonly string[], offered: RawHeaders): string[] {
  return headers.map((text, i) => {
    if (i % 2 === 0 || headers[i - 1]?.toLowerCase() !== PROTOCOLS) return text
    const own = valuesOf(offered, PROTOCOLS)
      .flatMap(protocolsIn)
      .find((protocol) => KEY.test(protocol))
    return protocolsIn(text)
      .map((protocol) => (KEY.test(protocol) ? (own ?? '') : protocol))
      .join(', ')
  })
}
