import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecurely, createSecureContext } from 'node:tls'
import { readBuffer } from '../kernel/read-buffer.ts'

/** A socket that has begun to connect, and what it says when it is ready. */
export interface Connecting {
  readonly socket: Socket
  readonly readyEvent: 'connect' | 'secureConnect'
}

/** `onChunk` gets what arrives. It is good until that returns. */
export type Connect = (onChunk: (chunk: Buffer) => void) => Connecting

/** After a minute of silence the kernel asks whether the other side is still there. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 60_000, noDelay: true } as const

export function connectorOf(url: URL): Connect {
  // The brackets of an IPv6 address belong to the URL.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return url.protocol === 'https:' ? secureConnector(host, url) : plainConnector(host, url)
}

function plainConnector(host: string, url: URL): Connect {
  const port = url.port === '' ? 80 : Number(url.port)
  return (onChunk) => {
    const callback = (bytes: number) => {
      onChunk(readBuffer.subarray(0, bytes))
      return true
    }
    const onread = { buffer: readBuffer, callback }
    return { socket: connectPlain({ host, port, ...KEEP_ALIVE, onread }), readyEvent: 'connect' }
  }
}

function secureConnector(host: string, url: URL): Connect {
  const port = url.port === '' ? 443 : Number(url.port)
  // One context for all connections: building it anew costs about 0.3 ms of the main thread each time.
  const secureContext = createSecureContext()
  let session: Buffer | undefined
  return (onChunk) => {
    const socket = connectSecurely({
      host,
      port,
      // A name for the certificate; an address is none.
      servername: isIP(host) === 0 ? host : '',
      secureContext,
      // HTTP/2 would lower-case header names and lose the reason phrase.
      ALPNProtocols: ['http/1.1'],
      ...(session === undefined ? {} : { session }),
    })
    socket.setKeepAlive(true, KEEP_ALIVE.keepAliveInitialDelay)
    socket.setNoDelay(true)
    socket.on('data', onChunk)
    socket.on('session', (given: Buffer) => {
      session = given
    })
    return { socket, readyEvent: 'secureConnect' }
  }
}
