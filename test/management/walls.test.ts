import assert from 'node:assert/strict'
import { permissionOf } from '../../src/management/permissions.ts'
import { routes } from '../../src/management/router.ts'
import { startGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { after, test } from '../support/suite.ts'

/** Account A looks for what account B has: each answer must be that of an id which nobody has. */

const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({
  chatUrl: `${upstream.url}/v1`,
  settings: { webhooksAllowPrivate: true },
})
after(async () => {
  await gateway.close()
  await upstream.close()
})

const ULID = '01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

async function send(key: string, method: string, path: string, body: unknown = {}) {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const id = response.headers.get('x-svc-request-id') ?? ''
  return { status: response.status, text: id === '' ? text : text.replaceAll(id, 'REQUEST') }
}

async function furnish(name: string) {
  const { id: accountId } = await gateway.manage('POST', '/gateway/v1/accounts', { name })
  const account = `account=${accountId}`
  const { id: keyId, key } = await gateway.manage('POST', `/v1/keys?${account}`, { name: `${name} key` })
  const adminKey = async (role: string) =>
    await gateway.manage('POST', '/gateway/v1/admin-keys', {
      name: `${name} ${role}`,
      role,
      account_id: accountId,
    })
  const [admin, viewer] = [await adminKey('admin'), await adminKey('viewer')]
  const webhook = await gateway.manage('POST', `/gateway/v1/webhooks?${account}`, {
    url: `${upstream.url}/${name}`,
    events: ['*'],
  })
  await gateway.manage('POST', `/gateway/v1/credits?${account}`, { amount_usd: 3, reason: `${name} paid` })
  const called = await send(String(key), 'GET', '/v1/models')
  assert.equal(called.status, 200)
  const [request] = (await gateway.manage('GET', `/gateway/v1/requests?${account}`))['data'] as {
    id: string
  }[]
  const ids = [accountId, keyId, admin['id'], webhook['id'], request?.id].map(String)
  return {
    name,
    ids,
    keys: { admin: String(admin['key']), viewer: String(viewer['key']), api_key: String(key) },
  }
}

const [a, b] = [await furnish('alpha'), await furnish('bravo')]

const withId = routes.filter(({ template }) => template.includes('{id}'))

for (const { method, template } of withId) {
  test(`${method} ${template}: an id of another account is answered like one that nobody has`, async () => {
    for (const [role, key] of Object.entries(a.keys))
      for (const id of b.ids) {
        const nobodys = id.replace(/[^_]+$/, ULID)
        const [foreign, unknown] = await Promise.all(
          [id, nobodys].map((each) =>
            send(key, method, template.replace('{id}', each).replace(/\{\w+\}/, 'x')),
          ),
        )
        assert.ok(foreign !== undefined && foreign.status >= 400, `${role} ${id}: ${foreign?.status}`)
        assert.deepEqual(foreign, unknown, `${role} ${id}`)
      }
  })
}

for (const { method, template, operationId } of routes.filter(({ template }) => !template.includes('{'))) {
  if (permissionOf(operationId).account === 'installation') continue
  test(`${method} ${template}: another account cannot be named, and * is refused`, async () => {
    for (const key of [a.keys.admin, a.keys.viewer]) {
      const [foreign, unknown] = await Promise.all(
        [b.ids[0], `acct_${ULID}`].map((id) => send(key, method, `${template}?account=${id}`)),
      )
      assert.ok(foreign !== undefined && (foreign.status === 404 || foreign.status === 403))
      assert.deepEqual(foreign, unknown)
      const { status } = await send(key, method, `${template}?account=*`)
      assert.ok(status === 400 || status === 403, String(status))
    }
  })
}

test('no list, export or sum of an account shows anything of another', async () => {
  const own = routes.filter(({ method, template }) => method === 'GET' && !template.includes('{'))
  for (const { template, operationId } of own) {
    if (permissionOf(operationId).least === 'session') continue
    for (const query of ['', '?format=csv', '?format=ndjson', '?group_by=key,model,day'])
      for (const key of Object.values(a.keys)) {
        const { text } = await send(key, 'GET', template + query)
        for (const trace of [...b.ids, b.name])
          assert.ok(!text.includes(trace), `${template}${query}: ${trace}`)
      }
  }
  const seen = await send(a.keys.viewer, 'GET', '/gateway/v1/balance')
  assert.equal((JSON.parse(seen.text) as { balance_usd: number }).balance_usd, 3)
})

test('an operator sees both accounts with *', async () => {
  for (const path of [
    '/v1/keys',
    '/gateway/v1/requests',
    '/gateway/v1/webhooks',
    '/gateway/v1/events',
    '/gateway/v1/credits',
  ]) {
    const { data } = (await gateway.manage('GET', `${path}?account=*`)) as { data: { account_id?: string }[] }
    const text = JSON.stringify(data)
    for (const { ids } of [a, b])
      assert.ok(
        ids.some((id) => text.includes(id)),
        path,
      )
  }
  const { data } = (await gateway.manage('GET', '/v1/usage?account=*&group_by=account')) as {
    data: { account: string; account_name: string }[]
  }
  assert.deepEqual(data.map(({ account_name }) => account_name).sort(), [a.name, b.name])
  const csv = await send(gateway.adminKey, 'GET', '/v1/usage?account=*&group_by=account&format=csv')
  assert.match(csv.text, /^account,account_name,requests/)
  assert.equal((await send(a.keys.admin, 'GET', '/v1/usage?group_by=account')).status, 400)
})
