import net from 'node:net'
import { parentPort } from 'node:worker_threads'
import { sized } from './wire-bytes.ts'

/** A worker: in the gateway's thread the reset and its next write never cross, which loses the reply. */
const tooLarge = sized(
  'HTTP/1.1 413 Payload Too Large',
  ['Connection: close', 'X-Up: 1'],
  '{"error":"too large"}',
)

const server = net.createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => undefined)
  socket.once('data', () => {
    socket.pause()
    socket.write(tooLarge, () => socket.destroy())
  })
})

server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as net.AddressInfo).port))
