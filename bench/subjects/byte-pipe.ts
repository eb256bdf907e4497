import { connect, createServer } from 'node:net'

/**
 * The least that can stand between two sockets on this Node: bytes in, bytes out, of any protocol.
 * Run: node bench/subjects/byte-pipe.ts <upstream URL>
 */

const { hostname, port } = new URL(process.argv[2] ?? '')

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ host: hostname, port: Number(port), noDelay: true })
  client.pipe(upstream).on('error', () => client.destroy())
  upstream.pipe(client).on('error', () => upstream.destroy())
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address()
  process.stdout.write(`listening ${typeof address === 'object' ? address?.port : 0}\n`)
})
process.stdin.on('end', () => process.exit()).resume()
