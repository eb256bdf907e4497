import { constants } from 'node:crypto'
import type { Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { limits } from '../kernel/limits.ts'

export interface CertificatePair {
  readonly cert: string
  readonly key: string
}

interface HandshakeCallbacks {
  /** Called when the handshake has completed. Requests arrive on `secure`, which wraps the accepted socket. */
  onSecure(secure: TLSSocket): void
  onGone(): void
}

/** With this option OpenSSL refuses renegotiation itself; Node's `disableRenegotiation` only reports it afterwards. */
const PROTOCOL = { minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const

/** Creates a TLS server for handshakes only. Connections are accepted, counted and timed elsewhere. */
export function createTlsHandshakes(pair: CertificatePair) {
  const handshakes = new Map<string, Handshake>()
  const server = createServer({
    ...PROTOCOL,
    ...pair,
    // HTTP/2 is not supported. The handshake fails for a client that offers nothing else.
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: limits.tlsHandshakeTimeoutMs,
  })
  server.on('secureConnection', (secure) => {
    const handshake = handshakes.get(addressesOf(secure))
    if (handshake === undefined) secure.destroy()
    else {
      handshake.isDone = true
      handshakes.delete(handshake.addresses)
      handshake.callbacks.onSecure(secure)
    }
  })

  return {
    receive(accepted: Socket, callbacks: HandshakeCallbacks): void {
      const handshake: Handshake = { addresses: addressesOf(accepted), callbacks, isDone: false }
      accepted.once('close', () => {
        if (handshakes.get(handshake.addresses) === handshake) handshakes.delete(handshake.addresses)
        if (!handshake.isDone) callbacks.onGone()
      })
      accepted.on('error', () => {})
      accepted.once('readable', () => {
        const first = accepted.read() as Buffer | null
        if (first === null) accepted.destroy()
        else {
          accepted.unshift(first)
          handshakes.set(handshake.addresses, handshake)
          server.emit('connection', accepted)
        }
      })
    },
    use(next: CertificatePair): void {
      server.setSecureContext({ ...PROTOCOL, ...next })
    },
  }
}

interface Handshake {
  readonly addresses: string
  readonly callbacks: HandshakeCallbacks
  isDone: boolean
}

/** Identifies a connection by its addresses, which the accepted socket and the TLS socket on it share. */
function addressesOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
