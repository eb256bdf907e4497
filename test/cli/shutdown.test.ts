import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Environment } from '../../src/config/read-config.ts'
import { connect } from '../support/raw-client.ts'
import { readDatabase } from '../support/read-database.ts'
import { test } from '../support/suite.ts'
import { type ServingProcess, serveTollgate } from '../support/tollgate-process.ts'

async function startOpenEnded(): Promise<{ url: string; reply: Promise<ServerResponse>; server: Server }> {
  const { promise: reply, resolve } = Promise.withResolvers<ServerResponse>()
  const server = createServer((req, res) => {
    req.resume()
    // A gateway requests the models when it starts.
    if (req.method === 'GET') {
      res.end('{"data":[]}')
      return
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: one\n\n')
    resolve(res)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, reply, server }
}

async function serveWith(
  upstreamUrl: string,
  settings = '{}',
  environment: Environment = {},
): Promise<{ tollgate: ServingProcess; key: string }> {
  const settingsFile = join(process.env['TMPDIR'] ?? '/tmp', `tollgate-settings-${process.pid}.json`)
  writeFileSync(settingsFile, settings)
  const tollgate = await serveTollgate({
    TOLLGATE_MESSAGES_URL: upstreamUrl,
    TOLLGATE_CONFIG: settingsFile,
    ...environment,
  })
  return { tollgate, key: await tollgate.createKey() }
}

async function openStream(tollgate: ServingProcess, key: string) {
  const response = await fetch(`${tollgate.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': key },
    body: '{"model":"m"}',
  })
  const reader = response.body?.getReader()
  assert.ok(reader)
  const first = await reader.read()
  assert.equal(Buffer.from(first.value ?? []).toString(), 'data: one\n\n')
  return reader
}

test('SIGTERM lets a running stream finish, closes idle connections, refuses new ones, and exits with 0', async () => {
  const upstream = await startOpenEnded()
  const { tollgate, key } = await serveWith(upstream.url)
  try {
    const { hostname, port } = new URL(tollgate.url)
    const idle = await connect({ host: hostname, port: Number(port) })
    const health = await idle.request('GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n')
    assert.equal(health.status, 200)
    const stream = await openStream(tollgate, key)

    tollgate.signal('SIGTERM')
    await idle.closed()
    await assert.rejects(fetch(`${tollgate.url}/healthz`), 'no new connection is accepted')

    const reply = await upstream.reply
    reply.end('data: two\n\n')
    const second = await stream.read()
    assert.equal(Buffer.from(second.value ?? []).toString(), 'data: two\n\n')
    assert.equal((await stream.read()).done, true)
    const end = await tollgate.finished
    assert.equal(end.code, 0)
    assert.match(end.stdout, /Stopped\.\n$/)
  } finally {
    await tollgate.dispose()
    upstream.server.close()
  }
})

test('a stream that outlasts the drain time is cut, and the exit code is still 0', async () => {
  const upstream = await startOpenEnded()
  const { tollgate, key } = await serveWith(upstream.url, '{"shutdown":{"drain_seconds":0.2}}')
  try {
    const stream = await openStream(tollgate, key)
    tollgate.signal('SIGTERM')
    await assert.rejects(stream.read(), 'the client sees a broken stream')
    const end = await tollgate.finished
    assert.equal(end.code, 0)
    assert.match(end.stdout, /Stopped\. Streams cut: 1\./)
    const calls = await readDatabase(tollgate, "SELECT state FROM call WHERE path = '/v1/messages'")
    assert.deepEqual(
      calls.map((call) => call['state']),
      ['settled'],
      'a call that was cut is settled before the end',
    )
  } finally {
    await tollgate.dispose()
    upstream.server.closeAllConnections()
    upstream.server.close()
  }
})

test('a second signal stops at once', async () => {
  const upstream = await startOpenEnded()
  const { tollgate, key } = await serveWith(upstream.url)
  try {
    const stream = await openStream(tollgate, key)
    tollgate.signal('SIGINT')
    await assert.rejects(async () => {
      for (;;) await (await fetch(`${tollgate.url}/healthz`)).body?.cancel()
    })
    tollgate.signal('SIGINT')
    assert.equal((await tollgate.finished).code, 1)
    await assert.rejects(stream.read())
  } finally {
    await tollgate.dispose()
    upstream.server.closeAllConnections()
    upstream.server.close()
  }
})

test('a gateway whose output is no longer read still serves, and exits with 0', async () => {
  await using tollgate = await serveTollgate({ TOLLGATE_LOG_LEVEL: 'debug' })
  tollgate.stopReading()
  for (let i = 0; i < 20; i++) {
    const response = await fetch(`${tollgate.url}/v1/models`)
    assert.equal(response.status, 401)
    await response.body?.cancel()
  }
  tollgate.signal('SIGTERM')
  assert.equal((await tollgate.finished).code, 0)
})
