import { type RawHeaders, valuesOf } from '../http/raw-headers.ts'

/** Where a browser puts its credential: its sockets can send no header of their own. */
const PROTOCOLS = 'sec-websocket-protocol'
const KEY = /^openai-insecure-api-key\.(.*)$/i
/** These would bill another account than the one that pays. */
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

/** The header lines with the key that pays upstream in the place of the client's, and no account but its own. */
export function replaceKeyInProtocols(headers: readonly string[], key: string | null): string[] {
  const lines: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const value = headers[i + 1] ?? ''
    if (name.toLowerCase() !== PROTOCOLS) lines.push(name, value)
    else {
      const kept = protocolsIn(value)
        .filter((protocol) => !ACCOUNT.test(protocol) && (key !== null || !KEY.test(protocol)))
        .map((protocol) => (KEY.test(protocol) ? `openai-insecure-api-key.${key}` : protocol))
      // A value without a credential in it stays as it was written.
      const isSame = kept.length === protocolsIn(value).length && !kept.some((protocol) => KEY.test(protocol))
      if (kept.length > 0) lines.push(name, isSame ? value : kept.join(', '))
    }
  }
  return lines
}
