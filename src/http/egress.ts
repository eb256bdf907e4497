import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecurely, createSecureContext } from 'node:tls'
import type { Secret } from '../kernel/secret.ts'
import { AddressRanges } from './addresses.ts'
import { readInto } from './node-sockets.ts'

export interface ProxyAddress {
  readonly host: string
  readonly port: number
  /** Value of `Proxy-Authorization`. */
  readonly authorization: Secret | null
}

/** The proxy that `https:` URLs are called through, and the hosts that are called directly. */
export interface EgressRules {
  readonly proxy: ProxyAddress | null
  readonly direct: readonly string[]
}

export const DIRECT: EgressRules = { proxy: null, direct: [] }

/** How connections to a URL are opened. */
export interface EgressRoute {
  /** `tunnel`: a connection to the host through the proxy. */
  connect(onChunk: (chunk: Buffer) => void, tunnel?: Socket): Socket
  readonly proxy: ProxyAddress | null
  /** Host and port, for CONNECT. */
  readonly authority: string
}

export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 60_000, noDelay: true } as const

export function routeTo(url: URL, rules: EgressRules): EgressRoute {
  const isSecure = url.protocol === 'https:'
  const host = bareHost(url.hostname)
  const port = Number(url.port || (isSecure ? 443 : 80))
  const proxy = isSecure && !isDirect(host, port, rules.direct) ? rules.proxy : null
  const connect = isSecure
    ? secureConnector(host, port)
    : (onChunk: (chunk: Buffer) => void) =>
        connectPlain({ host, port, ...KEEP_ALIVE, onread: readInto(onChunk) })
  return { connect, proxy, authority: `${url.hostname}:${port}` }
}

function secureConnector(host: string, port: number): EgressRoute['connect'] {
  // One context for all connections: creating one takes about 0.3 ms.
  const secureContext = createSecureContext()
  let session: Buffer | undefined
  return (onChunk, tunnel) => {
    const socket = connectSecurely({
      host,
      port,
      servername: isIP(host) === 0 ? host : '',
      secureContext,
      // HTTP/2 would lower-case header names and lose the reason phrase.
      ALPNProtocols: ['http/1.1'],
      ...(session === undefined ? {} : { session }),
      ...(tunnel === undefined ? {} : { socket: tunnel }),
    })
    if (tunnel === undefined) {
      socket.setKeepAlive(true, KEEP_ALIVE.keepAliveInitialDelay)
      socket.setNoDelay(true)
    }
    socket.on('data', onChunk)
    socket.on('session', (given: Buffer) => {
      session = given
    })
    return socket
  }
}

/** Whether an entry of NO_PROXY names the host: `*`, a domain with its subdomains, an address or a range. */
function isDirect(host: string, port: number, direct: readonly string[]): boolean {
  return direct.some((entry) => {
    if (entry === '*') return true
    const [, bracketed, name = '', statedPort] =
      /^(?:\[(.+)\]|([^:]+|.*:.*:.*))(?::(\d+))?$/.exec(entry) ?? []
    if (statedPort !== undefined && Number(statedPort) !== port) return false
    const domain = (bracketed ?? name).replace(/^\*?\./, '').toLowerCase()
    if (isIP(host) !== 0) return isInRange(host, domain)
    return domain !== '' && (host === domain || host.endsWith(`.${domain}`))
  })
}

function isInRange(address: string, range: string): boolean {
  const [start = '', bits = '0'] = range.split('/')
  const family = isIP(start)
  if (family === 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)) return false
  return new AddressRanges([range]).has(address)
}

function bareHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}
