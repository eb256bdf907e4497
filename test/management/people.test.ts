import assert from 'node:assert/strict'
import { routes } from '../../src/management/endpoints.ts'
import { startGateway } from '../support/gateway.ts'
import { signInPerson } from '../support/sign-in-person.ts'
import { closeAfter, test } from '../support/suite.ts'

/** What people may do, and that a member reaches nothing of others. */

const gateway = await startGateway()
closeAfter(gateway)

interface Sender {
  readonly headers: Readonly<Record<string, string>>
}

async function send({ headers }: Sender, method: string, path: string, body: object = {}) {
  const response = await fetch(gateway.url + path, {
    ...{ method, headers },
    ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const requestId = response.headers.get('x-svc-request-id') ?? assert.fail(path)
  const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {}
  return { status: response.status, text: text.replaceAll(requestId, 'REQUEST'), json }
}

const codeOf = ({ json }: { json: Record<string, unknown> }) =>
  (json['error'] as { code: string; param: string | null } | undefined)?.code

const [ada, bob] = [await signInPerson(gateway, 'ada'), await signInPerson(gateway, 'bob')]
const viewer = await signInPerson(gateway, 'vic', 'viewer')
const admin = await signInPerson(gateway, 'ann', 'admin')
const ofAda = await send(ada, 'POST', '/v1/keys', { name: 'laptop' })
const ofBob = await send(bob, 'POST', '/v1/keys', { name: 'bob laptop' })
const service = await gateway.createKey('service')
const foreign = [bob.id, ofBob.json['id'], service.id].map(String)
const ULID = '01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

test('a session shows the person', async () => {
  const { json } = await send(ada, 'GET', '/gateway/v1/session')
  assert.partialDeepStrictEqual(json, { role: 'member', account_id: 'default' })
  assert.partialDeepStrictEqual(json['person'], {
    ...{ id: ada.id, object: 'person', email: 'ada@example.com', role: 'member', status: 'active', keys: 1 },
  })
})

test('a member creates, renames, rotates and revokes own keys', async () => {
  assert.equal(ofAda.status, 201)
  assert.equal(ofAda.json['person_id'], ada.id)
  const days = (Date.parse(String(ofAda.json['expires_at'])) - Date.now()) / 86_400_000
  assert.ok(days > 89.9 && days <= 90)
  const path = `/v1/keys/${ofAda.json['id']}`
  assert.equal((await send(ada, 'PATCH', path, { name: 'desktop' })).json['name'], 'desktop')
  const rotated = await send(ada, 'POST', `${path}/rotate`, { old_expires_in_seconds: 0 })
  assert.equal(rotated.json['person_id'], ada.id)
  const revoked = await send(ada, 'POST', `/v1/keys/${rotated.json['id']}/revoke`)
  assert.equal(revoked.json['status'], 'revoked')
})

test('a member sets no limits', async () => {
  const created = await send(ada, 'POST', '/v1/keys', { name: 'x', monthly_budget_usd: 5 })
  assert.deepEqual([created.status, codeOf(created)], [400, 'bad_request'])
  const { json } = await send(ada, 'POST', '/v1/keys', { name: 'mine' })
  const changed = await send(ada, 'PATCH', `/v1/keys/${json['id']}`, { expires_at: null })
  assert.deepEqual([changed.status, codeOf(changed)], [403, 'insufficient_role'])
})

test('beyond keys_max a key is refused, and key_days_max bounds the expiry', async () => {
  const carl = await signInPerson(gateway, 'carl')
  for (const name of ['1', '2', '3', '4', '5'])
    assert.equal((await send(carl, 'POST', '/v1/keys', { name })).status, 201)
  const more = await send(carl, 'POST', '/v1/keys', { name: '6' })
  assert.deepEqual([more.status, codeOf(more)], [409, 'conflict'])
  const late = new Date(Date.now() + 91 * 86_400_000).toISOString()
  const long = await send(bob, 'POST', '/v1/keys', { name: 'long', expires_at: late })
  assert.deepEqual([long.status, (long.json['error'] as { param: string }).param], [400, 'expires_at'])
})

for (const { method, template, requiredRole, isForOwn } of routes) {
  const isOpen = isForOwn || ['api_key', 'member', 'session', 'anyone'].includes(requiredRole)
  if (!isOpen)
    test(`${method} ${template}: a member gets 403, whatever the id`, async () => {
      for (const id of [...foreign, ada.id, `key_${ULID}`]) {
        const refused = await send(ada, method, template.replace(/\{\w+\}/g, id))
        assert.deepEqual([refused.status, codeOf(refused)], [403, 'insufficient_role'])
      }
    })
  else if (template.includes('{'))
    test(`${method} ${template}: an id of another person is answered like an unknown one`, async () => {
      for (const id of foreign) {
        const unknown = id.replace(/[^_]+$/, ULID)
        const [one, other] = await Promise.all(
          [id, unknown].map((each) => send(ada, method, template.replace(/\{\w+\}/, each))),
        )
        assert.equal(one?.status, 404)
        assert.equal(one.text, other?.text)
      }
    })
}

test('the lists of a member have own records only', async () => {
  for (const path of ['/v1/keys', '/v1/usage?group_by=key,person', '/gateway/v1/requests']) {
    const { status, text } = await send(ada, 'GET', path)
    assert.equal(status, 200)
    for (const id of foreign) assert.ok(!text.includes(id), path)
  }
  for (const path of ['/v1/keys', '/v1/usage', '/gateway/v1/requests'])
    assert.equal((await send(ada, 'GET', `${path}?person=${bob.id}`)).status, 400)
  const { data } = (await gateway.manage('GET', `/v1/keys?person=${bob.id}`)) as { data: { id: string }[] }
  assert.deepEqual(
    data.map(({ id }) => id),
    [ofBob.json['id']],
  )
})

test('two people may use the same idempotency key', async () => {
  const [dan, eve] = [await signInPerson(gateway, 'dan'), await signInPerson(gateway, 'eve')]
  const answers = []
  for (const { headers } of [dan, eve, eve]) {
    const once = { headers: { ...headers, 'idempotency-key': 'first key' } }
    answers.push((await send(once, 'POST', '/v1/keys', { name: 'laptop' })).json)
  }
  const [first, second, again] = answers
  assert.deepEqual([first?.['person_id'], second?.['person_id']], [dan.id, eve.id])
  assert.equal(again?.['id'], second?.['id'])
})

test('a viewer and an admin who signed in create own keys with "person": "me"', async () => {
  const mine = { name: 'mine', person: 'me' }
  for (const sender of [viewer, admin]) {
    const { status, json } = await send(sender, 'POST', '/v1/keys', mine)
    assert.deepEqual([status, json['person_id']], [201, sender.id])
    assert.equal((await send(sender, 'DELETE', `/v1/keys/${json['id']}`)).status, 200)
  }
  const notMine = await send(viewer, 'POST', '/v1/keys', { name: 'x' })
  assert.deepEqual([notMine.status, codeOf(notMine)], [403, 'insufficient_role'])
  assert.equal((await send(viewer, 'POST', `/v1/keys/${service.id}/revoke`)).status, 403)
  const byAdmin = await send(admin, 'POST', '/v1/keys', { name: 'service 2' })
  assert.deepEqual([byAdmin.status, byAdmin.json['person_id']], [201, null])
  const withKey = { headers: { authorization: `Bearer ${gateway.adminKey}` } }
  assert.equal((await send(withKey, 'POST', '/v1/keys', mine)).status, 400)
})

test('an admin changes, blocks and unblocks people, and operators move them', async () => {
  const fay = await signInPerson(gateway, 'fay')
  const { json: key } = await send(fay, 'POST', '/v1/keys', { name: 'laptop' })
  const path = `/gateway/v1/people/${fay.id}`
  const changed = await send(admin, 'PATCH', path, { monthly_budget_usd: 7.5 })
  assert.equal(changed.json['monthly_budget_usd'], 7.5)
  assert.equal((await send(fay, 'GET', `/v1/keys/${key['id']}`)).json['monthly_budget_usd'], 7.5)
  assert.equal((await send(admin, 'POST', `${path}/move`, { account: 'default' })).status, 403)
  const blocked = await send(admin, 'POST', `${path}/block`)
  assert.partialDeepStrictEqual(blocked.json, { status: 'blocked', keys: 0 })
  assert.equal((await send(fay, 'GET', '/v1/keys')).status, 401)
  assert.equal((await send(admin, 'POST', `${path}/unblock`)).json['status'], 'active')
  const { id: account } = await gateway.manage('POST', '/gateway/v1/accounts', { name: 'other' })
  assert.equal((await gateway.manage('POST', `${path}/move`, { account }))['account_id'], account)
  assert.equal((await send(admin, 'GET', path)).status, 404)
})

test('members limits are merged, and applied to everybody', async () => {
  const merged = await send(admin, 'PATCH', '/gateway/v1/members', { key_days_max: 30 })
  assert.deepEqual(merged.json, {
    ...{ object: 'members', keys_max: 5, key_days_max: 30, monthly_budget_usd: null },
    ...{ daily_budget_usd: null, requests_per_minute: null, allowed_models: null, log_requests: false },
  })
  await send(admin, 'PATCH', '/gateway/v1/members', { monthly_budget_usd: 20, apply: 'all' })
  const { json } = await send(ada, 'GET', `/gateway/v1/people/${ada.id}`)
  assert.equal(json['monthly_budget_usd'], 20)
})

test('a person makes 60 changes a minute, which do not count for the account', async () => {
  const gil = await signInPerson(gateway, 'gil')
  const path = `/v1/keys/key_${ULID}`
  const statuses = await Promise.all(
    Array.from({ length: 121 }, async () => (await send(gil, 'PATCH', path, { name: 'x' })).status),
  )
  // The minute may change once meanwhile.
  assert.ok(statuses.includes(429))
  assert.ok(statuses.filter((status) => status === 404).length >= 60)
  assert.equal((await send(bob, 'PATCH', path, { name: 'x' })).status, 404)
})
