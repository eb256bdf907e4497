import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import { callUpstream, openUpstream } from '../../src/http/upstream-connection.ts'
import { createLogLines } from '../support/log-lines.ts'
import { test } from '../support/suite.ts'

/** An upstream in its own thread, so that it can write while this thread is busy. */
const UPSTREAM = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { createServer } = require('node:net')
  const flags = new Int32Array(workerData.flags)
  const reply = (text) => 'HTTP/1.1 200 OK\\r\\ncontent-length: ' + text.length + '\\r\\n\\r\\n' + text
  const upstream = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => socket.write(reply(String(bytes).split(' ')[1])))
    const asked = setInterval(() => {
      if (Atomics.compareExchange(flags, 0, 1, 2) !== 1) return
      socket.write(workerData.unsolicited, () => {
        Atomics.store(flags, 1, 1)
        Atomics.notify(flags, 1)
      })
    }, 1)
    socket.on('close', () => clearInterval(asked))
  })
  const bell = createServer((socket) => socket.on('data', () => socket.write('ring')).on('error', () => {}))
  upstream.listen(0, '127.0.0.1', () => bell.listen(0, '127.0.0.1', () => {
    parentPort.postMessage([upstream.address().port, bell.address().port])
  }))
`

for (const [what, unsolicited] of [
  ['a whole reply', 'HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nunasked'],
  ['a 408', 'HTTP/1.1 408 Request Timeout\r\ncontent-length: 4\r\n\r\nidle'],
  ['half a head', 'HTTP/1.1 200 OK\r\ncontent-le'],
] as const) {
  test(`${what}, unsolicited and received while the thread was busy, answers no call`, async (t) => {
    const flags = new SharedArrayBuffer(8)
    const worker = new Worker(UPSTREAM, { eval: true, workerData: { flags, unsolicited } })
    t.after(() => worker.terminate())
    const [[upstreamPort, bellPort]] = (await once(worker, 'message')) as [[number, number]]
    const { log, lines: logged } = createLogLines()
    const { pool } = openUpstream({ url: new URL(`http://127.0.0.1:${upstreamPort}`), key: null }, log)
    t.after(() => pool.destroy())
    const call = async (target: string): Promise<string> => {
      let text = ''
      const end = await callUpstream(
        pool,
        { method: 'POST', target, host: 'h', headers: [], lengthBytes: 2, body: [Buffer.from('hi')] },
        {
          head() {},
          data(chunk) {
            text += chunk.toString()
            return true
          },
        },
      ).ended
      return `${end.kind} ${text}`
    }
    assert.equal(await call('/1'), 'complete /1')

    // As in production, the next call is made while Node polls its sockets, after it has polled upstream's.
    const bell = connect(bellPort, '127.0.0.1')
    t.after(() => bell.destroy())
    await once(bell, 'connect')
    const second = new Promise<string>((resolve) => {
      bell.once('data', () => {
        const view = new Int32Array(flags)
        Atomics.store(view, 0, 1)
        Atomics.wait(view, 1, 0, 20_000)
        resolve(call('/2'))
      })
    })
    bell.write('x')
    assert.equal(await second, 'complete /2')
    assert.equal(await call('/3'), 'complete /3')
    assert.equal(logged.length, 1)
  })
}
