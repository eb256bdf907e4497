import { type RawHeaders, valuesOf } from '../http/raw-headers.ts'

/** The header in which a browser puts its credential: a browser's sockets can send no header of their own. */
const PROTOCOLS = 'sec-websocket-protocol'
const KEY = /^openai-insecure-api-key\.(.*)$/i
/** Protocols that would bill another account than the one that pays. */
const ACCOUNT = /^openai-(?:organization|project)\./i

function protocolsIn(value: string): string[] {
  return value.split(',').map((protocol) => protocol.trim())
}

/** The keys among the protocols that a client offers. */
export function keysInProtocols(headers: RawHeaders): string[] {
  return valuesOf(headers, PROTOCOLS)
    .flatMap(protocolsIn)
    .flatMap((protocol) => KEY.exec(protocol)?.[1] ?? [])
}

/** The protocols to offer upstream: the key that pays in the place of the client's, and no account. Null: none are left. */
export function protocolsForUpstream(value: string, key: string | null): string | null {
  const offered = protocolsIn(value)
  const kept = offered
    .filter((protocol) => !ACCOUNT.test(protocol) && (key !== null || !KEY.test(protocol)))
    .map((protocol) => (KEY.test(protocol) ? `openai-insecure-api-key.${key}` : protocol))
  if (kept.length === 0) return null
  // A value without a credential in it stays as it was written.
  return kept.length === offered.length && !kept.some((protocol) => KEY.test(protocol))
    ? value
    : kept.join(', ')
}

/** Upstream's header lines. Where upstream chooses the protocol with the key, the client gets the one that it offered. */
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
