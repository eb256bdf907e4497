import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'

const gateway = await startGateway()
closeAfter(gateway)

async function send(key: string, method: string, path: string, body?: unknown) {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const json = (await response.json()) as Record<string, unknown>
  return { status: response.status, code: (json['error'] as { code?: string } | undefined)?.code, json }
}

const ADMIN_KEYS = '/gateway/v1/admin-keys'

async function create(role: string, by = gateway.adminKey): Promise<{ id: string; key: string }> {
  const account = role === 'operator' ? {} : { account_id: 'default' }
  const { status, json } = await send(by, 'POST', ADMIN_KEYS, { name: `a ${role}`, role, ...account })
  assert.equal(status, 201)
  assert.match(String(json['key']), /^svc_admin_/)
  return { id: String(json['id']), key: String(json['key']) }
}

test('a viewer reads, an admin manages keys, and only an operator adds credit and reads metrics', async () => {
  const [operator, admin, viewer] = [await create('operator'), await create('admin'), await create('viewer')]
  const attempts: [method: string, path: string, body: unknown, allowed: string[]][] = [
    ['GET', '/v1/keys', undefined, ['viewer', 'admin', 'operator']],
    ['GET', '/gateway/v1/balance', undefined, ['viewer', 'admin', 'operator']],
    ['POST', '/v1/keys', { name: 'k' }, ['admin', 'operator']],
    ['POST', '/gateway/v1/credits', { amount_usd: 1, reason: 'r' }, ['operator']],
    ['PATCH', '/gateway/v1/accounts/default', { credit_enforced: false }, ['operator']],
  ]
  for (const [method, path, body, allowed] of attempts)
    for (const [role, { key }] of Object.entries({ operator, admin, viewer })) {
      const { status, code } = await send(key, method, path, body)
      if (allowed.includes(role)) assert.ok(status < 300, `${method} ${path} as ${role}: ${status}`)
      else assert.deepEqual([status, code], [403, 'insufficient_role'], `${method} ${path} as ${role}`)
    }
})

test('an admin creates admins and viewers of its own account, but no operators', async () => {
  const admin = await create('admin')
  await create('viewer', admin.key)
  const operator = await send(admin.key, 'POST', ADMIN_KEYS, { name: 'o', role: 'operator' })
  assert.deepEqual([operator.status, operator.code], [403, 'insufficient_role'])
  const foreign = { name: 'f', role: 'viewer', account_id: 'acct_01JCN1ZV5M3T9Q8W7E6R5T4Y3X' }
  assert.equal((await send(admin.key, 'POST', ADMIN_KEYS, foreign)).status, 404)
  const { json } = await send(admin.key, 'GET', ADMIN_KEYS)
  const roles = (json['data'] as { role: string }[]).map(({ role }) => role)
  assert.ok(!roles.includes('operator') && roles.includes('viewer'))
})

test('an operator names the account of a new admin or viewer, an admin creates them in its own', async () => {
  const viewer = { name: 'v', role: 'viewer' }
  const { status, json } = await send(gateway.adminKey, 'POST', ADMIN_KEYS, viewer)
  assert.equal(status, 400)
  assert.deepEqual(json['error'], {
    message: 'account_id is required for the role viewer. Send the id of an account, such as default.',
    type: 'invalid_request_error',
    ...{ param: 'account_id', code: 'bad_request' },
  })
  const { key } = await create('admin')
  for (const [by, query] of [
    [gateway.adminKey, '?account=default'],
    [key, ''],
  ] as const) {
    const created = await send(by, 'POST', `${ADMIN_KEYS}${query}`, viewer)
    assert.deepEqual([created.status, created.json['account_id']], [201, 'default'])
  }
})

test('admin keys show last use and revocation, and admins cannot find operator keys', async () => {
  const [operator, admin] = [await create('operator'), await create('admin')]
  assert.equal((await send(admin.key, 'POST', `${ADMIN_KEYS}/${operator.id}/revoke`)).status, 404)
  assert.equal((await send(operator.key, 'GET', '/v1/keys')).status, 200)
  const { status, json } = await send(gateway.adminKey, 'POST', `${ADMIN_KEYS}/${operator.id}/revoke`)
  assert.equal(status, 200)
  assert.deepEqual([json['status'], json['role'], json['account_id']], ['revoked', 'operator', null])
  assert.notEqual(json['last_used_at'], null)
  assert.equal((await send(operator.key, 'GET', '/v1/keys')).status, 401)
})

test('the last operator key and the current TOLLGATE_ADMIN_KEY cannot be revoked', async () => {
  const configured = 'k'.repeat(40)
  const own = await startGateway({ env: { TOLLGATE_ADMIN_KEY: configured } })
  try {
    const keysOf = async (url: string, key: string) => {
      const response = await fetch(url + ADMIN_KEYS, { headers: { authorization: `Bearer ${key}` } })
      return ((await response.json()) as { data: { id: string; role: string; status: string }[] }).data
    }
    const revoke = async (url: string, key: string, id: string) => {
      const headers = { authorization: `Bearer ${key}` }
      const response = await fetch(`${url}${ADMIN_KEYS}/${id}/revoke`, { method: 'POST', headers })
      return ((await response.json()) as { error?: { code: string } }).error?.code ?? response.status
    }
    const [bootstrap] = await keysOf(own.url, configured)
    assert.equal(await revoke(own.url, configured, bootstrap?.id ?? ''), 'conflict')
    const operators = (await keysOf(gateway.url, gateway.adminKey)).filter(
      ({ role, status }) => role === 'operator' && status === 'usable',
    )
    const [first = { id: '' }] = operators.splice(-1)
    for (const { id } of operators) assert.equal(await revoke(gateway.url, gateway.adminKey, id), 200)
    assert.equal(await revoke(gateway.url, gateway.adminKey, first.id), 'last_operator_key')
  } finally {
    await own.close()
  }
})

test('a session of an API key reads its own record, usage and calls, and nothing else', async () => {
  const { id, key } = await gateway.createKey('mine')
  const response = await fetch(`${gateway.url}/gateway/v1/session`, {
    method: 'POST',
    body: JSON.stringify({ key }),
  })
  assert.equal(response.status, 201)
  const session = (await response.json()) as Record<string, unknown>
  assert.deepEqual([session['role'], session['account_id']], ['api_key', 'default'])
  const cookie = (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  const read = (path: string) => fetch(gateway.url + path, { headers: { cookie } })
  assert.equal(((await (await read('/v1/keys/me')).json()) as { id: string }).id, id)
  for (const path of ['/v1/usage', '/gateway/v1/requests', '/gateway/v1/session'])
    assert.equal((await read(path)).status, 200, path)
  for (const path of ['/v1/keys', '/gateway/v1/balance', '/gateway/v1/webhooks'])
    assert.equal((await read(path)).status, 403, path)
  assert.equal(
    (await gateway.manage('GET', `/v1/keys/${id}`))['last_used_at'],
    null,
    'no part of it is a call',
  )
  await gateway.revokeKey(id)
  assert.equal((await read('/v1/keys/me')).status, 401)
})
