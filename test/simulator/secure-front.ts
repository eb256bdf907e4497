import { once } from 'node:events'
import { connect } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import OpenAI from 'openai'
import { localPair } from '../support/certificates.ts'
import type { Address } from '../support/raw-client.ts'

/** TLS before a server, since the SDK's sockets for Realtime speak only TLS. */
export async function startSecureFront(target: Address, apiKey = 'sk-simulator') {
  const open = new Set<TLSSocket>()
  const server = createServer(localPair, (socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    const inner = connect(target.port, target.host)
    socket.pipe(inner).pipe(socket)
    for (const [one, other] of [
      [socket, inner],
      [inner, socket],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    client: new OpenAI({ apiKey, baseURL: `https://127.0.0.1:${port}/v1` }),
    /** The options that the SDK hands on to its socket. */
    options: { ca: localPair.cert },
    close(): void {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}
