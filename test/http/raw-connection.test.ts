import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { RawConnection } from '../../src/http/node-sockets.ts'
import { test } from '../support/suite.ts'

test('a connection that is ended again and again waits for its close once', async () => {
  const server = createServer((peer) => peer.resume()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  const connection = new RawConnection(socket)
  connection.end(60_000)
  const listeners = socket.listenerCount('close')
  for (let i = 0; i < 20; i++) connection.end(60_000)
  assert.equal(socket.listenerCount('close'), listeners)
  await once(socket, 'close')
  server.close()
})
