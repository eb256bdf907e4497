import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { Readable } from 'node:stream'
import { ClientConnection } from '../../src/http/client-connection.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { prepareBody } from '../../src/http-calls/permitted-changes.ts'
import { ReadingPace } from '../../src/metering/reading-pace.ts'
import { NOT_READ } from '../../src/providers/request-facts.ts'
import { withDeadline } from '../support/deadline.ts'
import { closeAfter, test } from '../support/suite.ts'

const server = createServer()
closeAfter(server)

const KiB = 1024

test('a fast upload leaves iterations of the event loop to other connections', async () => {
  const bytes = 4_096 * KiB
  const bytesInTurn: number[] = [0]
  const uploaded = Promise.withResolvers<void>()
  const countTurns = () => {
    if (bytesInTurn.at(-1) !== 0) bytesInTurn.push(0)
    turn = setImmediate(countTurns)
  }
  let turn = setImmediate(countTurns)
  server.on('connection', (socket) => {
    new ClientConnection(socket, {
      isDraining: false,
      monotonicMs: () => 0,
      nowMs: () => 0,
      onBroken: (_socket, error) => uploaded.reject(error),
      onClosed() {},
      onRequest(req) {
        const { content } = prepareBody(
          { req, headers: req.head.headers } as unknown as Exchange,
          { kind: 'flowing', lengthBytes: bytes },
          NOT_READ,
          null,
          {
            injectUsage: true,
            times: { idleTimeoutMs: 60_000, bytesPerSecondMin: 0 },
            pace: new ReadingPace(),
            onChunk: (chunk) => bytesInTurn.push((bytesInTurn.pop() ?? 0) + chunk.length),
          },
        )
        assert.ok(content instanceof Readable)
        content.resume().on('end', uploaded.resolve)
      },
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write(`POST /v1/files HTTP/1.1\r\nHost: h\r\nContent-Length: ${bytes}\r\n\r\n`)
  client.write(Buffer.alloc(bytes))
  await withDeadline(uploaded.promise, () => 'the upload does not end')
  clearImmediate(turn)
  client.destroy()
  assert.ok(Math.max(...bytesInTurn) <= 128 * KiB, `${Math.max(...bytesInTurn)} bytes in one turn`)
})
