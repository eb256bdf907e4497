import assert from 'node:assert/strict'
import { type GatewayOptions, startGateway } from '../support/gateway.ts'
import { readOpenMetrics } from '../support/open-metrics.ts'
import { after, test } from '../support/suite.ts'

async function gatewayWith(settings: NonNullable<GatewayOptions['settings']>) {
  const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', settings })
  after(() => gateway.close())
  const ask = (method: string, path: string, key: string | null = null) =>
    fetch(gateway.url + path, { method, headers: key === null ? {} : { authorization: `Bearer ${key}` } })
  return { ...gateway, ask }
}

test('metrics.public makes only the metrics public', async () => {
  const { ask, apiKey, adminKey } = await gatewayWith({ metricsPublic: true })
  for (const key of [null, apiKey, adminKey, 'nonsense']) {
    const shown = await ask('GET', '/metrics', key)
    assert.equal(shown.status, 200, String(key))
    readOpenMetrics(await shown.text())
    const head = await ask('HEAD', '/metrics', key)
    assert.deepEqual([head.status, await head.text()], [200, ''])
  }
  assert.equal((await ask('POST', '/metrics')).status, 405)
  assert.equal((await ask('GET', '/v1/keys')).status, 401)
  assert.equal((await ask('GET', '/metrics?')).status, 200)
  // This path goes upstream, and only with a key.
  assert.equal((await ask('GET', '/metrics/')).status, 401)
})

test('metrics.port serves metrics and health without a key, and nothing else', async () => {
  const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', settings: { metricsPort: 0 } })
  after(() => gateway.close())
  assert.equal((await fetch(`${gateway.url}/metrics`)).status, 401)
  const ask = async (path: string, method = 'GET') => {
    const answer = await fetch(`http://127.0.0.1:${gateway.metricsPort}${path}`, { method })
    return { status: answer.status, text: await answer.text() }
  }
  const shown = await ask('/metrics')
  assert.equal(shown.status, 200)
  readOpenMetrics(shown.text)
  const others = ['/healthz', '/readyz', '/v1/keys', '/v1/models', '/dashboard', '/gateway/v1/overview']
  assert.deepEqual(
    await Promise.all(others.map(async (path) => (await ask(path)).status)),
    [200, 404, 404, 404, 404, 404],
  )
  assert.equal((await ask('/metrics', 'POST')).status, 405)
})
