import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'
import { readConfig } from '../../src/config/read-config.ts'
import { probeUpstreams } from '../../src/doctor/upstream-checks.ts'
import { otherPair } from '../support/certificates.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { startGateway } from '../support/gateway.ts'
import { after, closeAfter, test } from '../support/suite.ts'

tls.setDefaultCACertificates([otherPair.cert])
const heads: string[] = []
const sockets = new Set<tls.TLSSocket>()
const server = tls.createServer({ ...otherPair, ALPNProtocols: ['http/1.1'] }, (socket) => {
  sockets.add(socket)
  let text = ''
  socket
    .on('error', () => {})
    .on('data', (bytes) => {
      text += bytes.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      heads.push(text)
      text = ''
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
    })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo
const proxy = await startConnectProxy(port)
const url = `https://other.test:${port}`
const env = {
  HTTPS_PROXY: proxy.url.replace('//', '//user:pass@'),
  TOLLGATE_CHAT_URL: `${url}/v1`,
  TOLLGATE_CHAT_KEY: 'provider-key',
}
const settings = { chatHeaders: ['openai-project', 'proj_fixed', 'X-Team', 'ours'] }
const config = readConfig(env, '/nowhere')
const gateway = await startGateway({
  env,
  settings: { chat: config.chat && { ...config.chat, fixedHeaders: settings.chatHeaders } },
})
closeAfter(gateway)
after(async () => {
  for (const socket of sockets) socket.destroy()
  server.close()
  await proxy.close()
})

const call = (headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.apiKey}`, ...headers } })

test('calls go through the proxy, and fixed headers replace those of the client', async () => {
  assert.equal((await call({ 'x-team': 'theirs', 'openai-project': 'theirs' })).status, 200)
  assert.match(
    proxy.heads[0] ?? '',
    /^CONNECT other\.test:\d+ HTTP\/1\.1\r\n.*proxy-authorization: Basic dXNlcjpwYXNz\r\n/s,
  )
  const head = heads.at(-1) ?? ''
  assert.match(head, /\r\nopenai-project: proj_fixed\r\nX-Team: ours\r\n/)
  assert.match(head, /authorization: Bearer provider-key/i)
  assert.ok(!/theirs|proxy-authorization/.test(head), head)
})

test("accounts' own upstreams are called through the proxy too, without the fixed headers", async () => {
  const account = await gateway.manage('POST', '/gateway/v1/accounts', {
    name: 'own',
    upstreams: { chat: { url: `${url}/v1`, key: 'own-provider-key' } },
  })
  const { key } = await gateway.manage('POST', `/v1/keys?account=${account['id']}`, { name: 'own' })
  const before = proxy.heads.length
  assert.equal((await call({ authorization: `Bearer ${key}` })).status, 200)
  assert.equal(proxy.heads.length, before + 1)
  assert.match(heads.at(-1) ?? '', /Bearer own-provider-key/)
  assert.ok(!/proj_fixed|ours/.test(heads.at(-1) ?? ''))
})

test('a proxy that refuses or closes gives 502, and the client may retry', async () => {
  for (const answer of ['HTTP/1.1 407 No\r\n\r\n', '']) {
    proxy.cut()
    proxy.answer = answer
    const reply = await call()
    assert.equal(reply.status, 502)
    assert.match(await reply.text(), /Nothing was sent to it, so you can retry/)
  }
  proxy.answer = undefined
})

test('doctor connects as calls do, once, and names the proxy that refuses', async () => {
  const check = async () => {
    const before = proxy.heads.length
    const [probe] = await probeUpstreams(config)
    assert.equal(proxy.heads.length, before + 1)
    return probe?.result
  }
  assert.equal((await check())?.state, 'ok')
  proxy.answer = 'HTTP/1.1 403 Forbidden\r\n\r\n'
  const refused = await check()
  assert.deepEqual(
    [refused?.state, refused?.found],
    ['problem', `other.test:${port} cannot be reached: the proxy answered 403 to CONNECT`],
  )
  proxy.answer = undefined
})
