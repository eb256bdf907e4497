import assert from 'node:assert/strict'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { exchange } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const upstream = await ScriptedUpstream.start()
closeAfter(upstream)

async function recorded(gateway: TestGateway, ...lines: string[]): Promise<unknown> {
  const head = ['Host: h', `Authorization: Bearer ${gateway.apiKey}`, ...lines]
  const reply = await exchange(gateway, message('GET /v1/models HTTP/1.1', head))
  const [id] = headerValues(reply.headerLines, 'x-svc-request-id')
  return (await gateway.manage('GET', `/gateway/v1/requests/${id}`))['client_ip']
}

test('without trusted_proxies, forwarding headers do not change the client IP', async () => {
  const gateway = await startGateway({ chatUrl: `${upstream.url}/v1` })
  assert.equal(await recorded(gateway, 'X-Forwarded-For: 203.0.113.9'), '127.0.0.1')
  await gateway.close()
})

test('a trusted proxy sets the client IP, and upstream does not see its headers', async () => {
  const settings = { trustedProxies: ['127.0.0.1/32', '10.0.0.0/8'] }
  const gateway = await startGateway({ chatUrl: `${upstream.url}/v1`, settings })
  assert.equal(await recorded(gateway, 'X-Forwarded-For: 6.6.6.6, 203.0.113.9, 10.0.0.3'), '203.0.113.9')
  assert.equal(
    await recorded(gateway, 'X-Forwarded-For: 6.6.6.6', 'x-forwarded-for: 2001:db8::7'),
    '2001:db8::7',
  )
  assert.equal(await recorded(gateway, `X-Forwarded-For: ${'9'.repeat(5_000)}`), '127.0.0.1')
  assert.equal(await recorded(gateway), '127.0.0.1')
  const lines = upstream.requests.flatMap(({ headerLines }) => headerLines)
  assert.deepEqual(headerValues(lines, 'x-forwarded-for'), [])
  await gateway.close()
})

test('if client_details is off, neither address nor user agent is recorded', async () => {
  const gateway = await startGateway({ chatUrl: `${upstream.url}/v1`, settings: { clientDetails: false } })
  assert.equal(await recorded(gateway, 'User-Agent: sdk/1'), null)
  await gateway.close()
})
