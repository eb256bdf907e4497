import { constants } from 'node:crypto'
import type { Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { limits } from '../kernel/limits.ts'

export interface CertificatePair {
  readonly cert: string
  readonly key: string
}

/** With this option OpenSSL refuses renegotiation itself; Node's `disableRenegotiation` only reports it afterwards. */
const PROTOCOL = { minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const

export type TlsHandshakes = ReturnType<typeof createTlsHandshakes>

/** Creates a TLS server for handshakes only. Connections are accepted, counted and timed elsewhere. */
export function createTlsHandshakes(pair: CertificatePair) {
  /** How to complete the running handshakes, by the addresses of their connections. */
  const running = new Map<string, (secure: TLSSocket) => void>()
  const server = createServer({
    ...PROTOCOL,
    ...pair,
    // HTTP/2 is not supported. The handshake fails for a client that offers nothing else.
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: limits.tlsHandshakeTimeoutMs,
  })
  server.on('secureConnection', (secure) => {
    const complete = running.get(addressesOf(secure))
    if (complete === undefined) secure.destroy()
    else complete(secure)
  })

  return {
    /**
     * Calls `onSecure` when the handshake has completed, else `onGone` when the connection has closed. Requests arrive on
     * `secure`, which wraps the accepted socket.
     */
    receive(accepted: Socket, onSecure: (secure: TLSSocket) => void, onGone: () => void): void {
      const addresses = addressesOf(accepted)
      const complete = (secure: TLSSocket) => {
        running.delete(addresses)
        accepted.off('close', onClose)
        onSecure(secure)
      }
      const onClose = () => {
        if (running.get(addresses) === complete) running.delete(addresses)
        onGone()
      }
      accepted.once('close', onClose)
      accepted.on('error', () => {})
      accepted.once('readable', () => {
        const first = accepted.read() as Buffer | null
        if (first === null) accepted.destroy()
        else {
          accepted.unshift(first)
          running.set(addresses, complete)
          server.emit('connection', accepted)
        }
      })
    },
    use(next: CertificatePair): void {
      server.setSecureContext({ ...PROTOCOL, ...next })
    },
  }
}

/** Identifies a connection by its addresses, which the accepted socket and the TLS socket on it share. */
function addressesOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
