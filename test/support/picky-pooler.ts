import net from 'node:net'
import type { FaultProxy } from './fault-proxy.ts'

/** A proxy before PostgreSQL that refuses connections with settings, as some poolers do. */
export async function startPickyPooler(serverUrl: string): Promise<Pick<FaultProxy, 'url' | 'close'>> {
  const url = new URL(serverUrl)
  const sockets = new Set<net.Socket>()
  const listener = net.createServer((client) => {
    sockets.add(client)
    client.on('error', () => {})
    client.on('close', () => sockets.delete(client))
    client.once('data', (startup) => {
      if (startup.includes('_timeout'))
        return client.end(refusal('unsupported startup parameter: statement_timeout'))
      const server = net.connect(Number(url.port), url.hostname)
      sockets.add(server)
      server.on('error', () => {})
      server.on('close', () => {
        client.destroy()
        sockets.delete(server)
      })
      client.on('close', () => server.destroy())
      server.write(startup)
      client.pipe(server)
      server.pipe(client)
      return undefined
    })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const through = new URL(serverUrl)
  through.port = String((listener.address() as net.AddressInfo).port)
  return {
    url: through.href,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => listener.close(() => resolve()))
    },
  }
}

/** An ErrorResponse of the PostgreSQL protocol. */
function refusal(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C08P01\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
