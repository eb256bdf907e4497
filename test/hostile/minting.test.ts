import assert from 'node:assert/strict'
import type { Surface } from '../../src/kernel/vocabulary.ts'
import type { Endpoint } from '../../src/providers/endpoint.ts'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { after, test } from '../support/suite.ts'

/** A credential that upstream mints would survive the revocation of our key. */

const upstream = await ScriptedUpstream.start()
const start = (settings: object) => startGateway({ ...upstream.urls, settings })
const gateways = {
  auto: await start({}),
  refuse: await start({ unpriced: 'refuse' }),
  pass: await start({ unpriced: 'pass' }),
}
const minting = await start({ minting: 'pass' })
after(async () => {
  for (const gateway of [...Object.values(gateways), minting]) await gateway.close()
  await upstream.close()
})

const endpoints = allEndpoints().filter(({ billing }) => billing === 'mints_credential')

async function call(gateway: TestGateway, { method, template, surface }: Endpoint, key = gateway.apiKey) {
  const response = await fetch(gateway.url + template.replaceAll(/\{\w+\}/g, 'x1'), {
    method,
    headers: { authorization: `Bearer ${key}`, ...versionFor(surface), 'content-type': 'application/json' },
    ...(method === 'GET' ? {} : { body: '{}' }),
  })
  const text = await response.text()
  return { status: response.status, text, error: text === '{}' ? null : JSON.parse(text).error }
}

function versionFor(surface: Surface): Record<string, string> {
  return surface === 'messages' ? { 'anthropic-version': '2023-06-01' } : {}
}

for (const [unpriced, gateway] of Object.entries(gateways)) {
  test(`pricing.unpriced "${unpriced}" does not open minting endpoints to any key`, async () => {
    const before = upstream.requestCount
    const keys = [
      gateway.apiKey,
      (await gateway.createKey('capped', { monthly_budget_usd: 5 })).key,
      (await gateway.createKey('listed', { allowed_models: ['gpt-6-luna'] })).key,
    ]
    assert.ok(endpoints.length > 15)
    for (const endpoint of endpoints) {
      for (const key of keys) {
        const { status, error } = await call(gateway, endpoint, key)
        assert.equal(status, 404, endpoint.template)
        assert.equal(error.code, 'minting_refused', endpoint.template)
        assert.equal(
          error.type,
          endpoint.surface === 'messages' ? 'not_found_error' : 'invalid_request_error',
          endpoint.template,
        )
        assert.match(error.message, /still work after your key is revoked/)
      }
    }
    assert.equal(upstream.requestCount, before)
  })
}

test('minting "pass" opens them, and flags calls that cannot be rated', async () => {
  for (const endpoint of endpoints) {
    const before = upstream.requestCount
    assert.equal((await call(minting, endpoint)).status, 200, endpoint.template)
    assert.equal(upstream.requestCount, before + 1)
  }
  const listed = await fetch(`${minting.url}/gateway/v1/requests?flag=unpriced&limit=1000`, {
    headers: { authorization: `Bearer ${minting.adminKey}` },
  })
  const { data } = (await listed.json()) as { data: unknown[] }
  assert.equal(data.length, endpoints.length)
})

test('minting "pass" still enforces limits that minting would bypass', async () => {
  const before = upstream.requestCount
  const { key: capped } = await minting.createKey('capped', { monthly_budget_usd: 5 })
  const { key: listed } = await minting.createKey('listed', { allowed_models: ['gpt-6-luna'] })
  for (const endpoint of endpoints) {
    const overCap = await call(minting, endpoint, capped)
    assert.deepEqual([overCap.status, overCap.error.code], [404, 'endpoint_not_metered'])
    const offList = await call(minting, endpoint, listed)
    assert.deepEqual([offList.status, offList.error.code], [404, 'endpoint_not_metered'])
  }
  assert.equal(upstream.requestCount, before)
})

test('a revoked key is refused as revoked', async () => {
  const { id, key } = await gateways.auto.createKey('gone')
  await gateways.auto.revokeKey(id)
  for (const endpoint of endpoints) assert.equal((await call(gateways.auto, endpoint, key)).status, 401)
})
