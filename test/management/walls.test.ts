import assert from 'node:assert/strict'
import { routes } from '../../src/management/endpoints.ts'
import { startGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { Documented } from './documented.ts'

/** Account A requests what belongs to account B: each response must equal that for an unknown id. */

const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({
  chatUrl: `${upstream.url}/v1`,
  settings: { webhooksAllowPrivate: true },
})
closeAfter(gateway, upstream)

const ULID = '01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

async function send(key: string, method: string, path: string, body: unknown = {}) {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const id = response.headers.get('x-svc-request-id') ?? assert.fail(path)
  const headers = [...response.headers]
    .filter(([name]) => name !== 'date' && name !== 'content-disposition')
    .map(([name, value]) => `${name}: ${value.replaceAll(id, 'REQUEST')}`)
  return { status: response.status, headers, text: text.replaceAll(id, 'REQUEST') }
}

async function furnish(name: string) {
  const { id: accountId } = await gateway.manage('POST', '/gateway/v1/accounts', { name })
  const account = `account=${accountId}`
  const created = await gateway.manage('POST', `/v1/keys?${account}`, { name: `${name} key` })
  const { id: keyId, budget_id: budgetId, key } = created
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
  const delivery = await gateway.manage('POST', `/gateway/v1/webhooks/${webhook['id']}/test`)
  const paid = { amount_usd: 3, reason: `${name} paid` }
  const credit = await gateway.manage('POST', `/gateway/v1/credits?${account}`, paid)
  const called = await send(String(key), 'GET', '/v1/models')
  assert.equal(called.status, 200)
  const [request] = (await gateway.manage('GET', `/gateway/v1/requests?${account}`))['data'] as {
    id: string
  }[]
  const [event] = (await gateway.manage('GET', `/gateway/v1/events?${account}`))['data'] as { id: string }[]
  const ids = [
    ...[accountId, keyId, budgetId, admin['id'], viewer['id'], webhook['id'], delivery['id']],
    ...[credit['id'], request?.id, event?.id],
  ].map(String)
  return {
    name,
    ids,
    keys: { admin: String(admin['key']), viewer: String(viewer['key']), api_key: String(key) },
  }
}

const [a, b] = [await furnish('alpha'), await furnish('bravo')]

interface Operation {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly operationId: string
  readonly query: readonly string[]
}

/** The documented operations, so that an operation without isolation is noticed. */
async function readOperations(): Promise<Operation[]> {
  const document = new Documented(await gateway.manage('GET', '/gateway/openapi.json'))
  return [...document.operations()].map(([name, { operationId, parameters = [] }]) => {
    const [method = '', path = ''] = name.split(' ')
    const all = parameters.map((each) => document.resolve(each) as { name: string; in: string })
    const query = all.filter((each) => each.in === 'query').map((each) => each.name)
    return { name, method, path, operationId, query }
  })
}

const operations = await readOperations()
const routeOf = (name: string) => routes.find(({ operationId }) => operationId === name) ?? assert.fail(name)

/** Compares the responses for an id of the other account and an unknown one, byte for byte. */
async function assertAlike(key: string, method: string, pathOf: (id: string) => string, id: string) {
  const nobodys = id.replace(/[^_]+$/, ULID)
  const [foreign, unknown] = await Promise.all([id, nobodys].map((each) => send(key, method, pathOf(each))))
  assert.ok(foreign !== undefined && unknown !== undefined)
  const text = unknown.text.replaceAll(nobodys, id)
  assert.deepEqual(foreign, { ...unknown, text }, `${method} ${pathOf(id)}`)
  return foreign.status
}

for (const { name, method, path } of operations.filter(({ path }) => path.includes('{'))) {
  test(`${name}: an id of another account is answered like an unknown id`, async () => {
    for (const key of Object.values(a.keys))
      for (const id of b.ids) {
        const deliveries = b.ids.filter((each) => each.startsWith('whd_'))
        for (const second of ['x', ...deliveries])
          for (const query of ['', `?account=${b.ids[0]}`]) {
            const first = (each: string) => path.replace('{id}', each).replace(/\{\w+\}/, second) + query
            assert.ok((await assertAlike(key, method, first, id)) >= 400)
          }
        // The id of the other account after the own webhook's.
        if (path.split('{').length > 2)
          for (const own of a.ids.filter((each) => each.startsWith('wh_')))
            await assertAlike(key, method, (each) => path.replace('{id}', own).replace(/\{\w+\}/, each), id)
      }
  })
}

for (const { name, method, path, operationId, query } of operations.filter(
  ({ path }) => !path.includes('{'),
)) {
  if (routeOf(operationId).account !== 'none')
    test(`${name}: another account cannot be named, and * is refused`, async () => {
      for (const key of [a.keys.admin, a.keys.viewer]) {
        const named = (id: string) => `${path}?account=${id}`
        const status = await assertAlike(key, method, named, b.ids[0] ?? '')
        assert.ok(status === 404 || status === 403)
        const all = await send(key, method, named('*'))
        assert.ok(all.status === 400 || all.status === 403, String(all.status))
      }
    })
  // A cursor is a position and need not match a record.
  const filters = query.filter((each) => each !== 'account' && each !== 'after')
  if (method === 'GET' && filters.length > 0)
    test(`${name}: a filter by an id of another account matches what an unknown id matches`, async () => {
      for (const key of Object.values(a.keys))
        for (const filter of filters)
          for (const id of b.ids) await assertAlike(key, method, (each) => `${path}?${filter}=${each}`, id)
    })
}

test('an admin key cannot be created in another account', async () => {
  for (const key of [a.keys.admin, a.keys.viewer]) {
    const [foreign, unknown] = await Promise.all(
      [b.ids[0], `acct_${ULID}`].map((account_id) =>
        send(key, 'POST', '/gateway/v1/admin-keys', { name: 'x', role: 'viewer', account_id }),
      ),
    )
    assert.ok(foreign !== undefined && foreign.status >= 400)
    assert.deepEqual(foreign, unknown)
  }
})

test('no list, export or sum of an account contains data of another', async () => {
  for (const { method, path, operationId } of operations) {
    if (method !== 'GET' || path.includes('{') || routeOf(operationId).requiredRole === 'session') continue
    for (const query of ['', '?format=csv', '?format=ndjson', '?group_by=key,model,day'])
      for (const key of Object.values(a.keys)) {
        const { text } = await send(key, 'GET', path + query)
        for (const trace of [...b.ids, b.name]) assert.ok(!text.includes(trace), `${path}${query}: ${trace}`)
      }
  }
  const seen = await send(a.keys.viewer, 'GET', '/gateway/v1/balance')
  assert.equal((JSON.parse(seen.text) as { balance_usd: number }).balance_usd, 3)
})

test('an operator sees both accounts with account=*', async () => {
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
