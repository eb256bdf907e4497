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
