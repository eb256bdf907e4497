import type { Buffer } from 'node:buffer'
import net from 'node:net'
import type { Address } from './raw-client.ts'

export type Pipe = Address & { close: () => Promise<void> }

export type Mangle = { toUpstream?: (bytes: Buffer) => Buffer; toClient?: (bytes: Buffer) => Buffer }

/** Changes nothing, or does one thing wrong: it shows which differences the comparison notices. */
export async function startPipe(target: Address, mangle: Mangle = {}): Promise<Pipe> {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((client) => {
    const upstream = net.connect(target.port, target.host)
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true)
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => sockets.delete(socket))
    }
    const keep = (bytes: Buffer) => bytes
    const { toUpstream = keep, toClient = keep } = mangle
    client.on('data', (bytes: Buffer) => upstream.write(toUpstream(bytes)))
    upstream.on('data', (bytes: Buffer) => client.write(toClient(bytes)))
    client.on('close', () => upstream.destroy())
    upstream.on('end', () => client.end())
    upstream.on('close', () => client.destroySoon())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    host: '127.0.0.1',
    port: (server.address() as net.AddressInfo).port,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
