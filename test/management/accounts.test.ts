import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'

const gateway = await startGateway()
closeAfter(gateway)

const ACCOUNTS = '/gateway/v1/accounts'

async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${gateway.adminKey}`, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const json = (await response.json()) as Record<string, unknown>
  const error = json['error'] as { code?: string; param?: string } | undefined
  return { status: response.status, json, code: error?.code, param: error?.param }
}

test('an account is created once per Idempotency-Key, updated, searched and listed with totals', async () => {
  const fields = { name: 'Acme', metadata: { crm: '7' }, monthly_budget_usd: 12.5, discount: 0.1 }
  const once = { 'idempotency-key': 'acme' }
  const created = await send('POST', ACCOUNTS, fields, once)
  assert.equal(created.status, 201)
  const id = String(created.json['id'])
  assert.match(id, /^acct_[0-9A-HJKMNP-TV-Z]{26}$/)
  const { monthly_budget_usd, discount, metadata } = created.json
  assert.deepEqual([monthly_budget_usd, discount, metadata], [12.5, 0.1, { crm: '7' }])
  assert.equal((await send('POST', ACCOUNTS, fields, once)).json['id'], id)
  assert.equal((await send('POST', ACCOUNTS, { name: 'Other' }, once)).code, 'conflict')

  const found = (await send('GET', `${ACCOUNTS}?search=metadata.crm:7`)).json['data']
  assert.deepEqual((found as { id: string }[])[0]?.id, id)
  const edit = { name: 'Acme Ltd', monthly_budget_usd: null, metadata: null }
  const edited = (await send('PATCH', `${ACCOUNTS}/${id}`, edit)).json
  assert.deepEqual([edited['name'], edited['monthly_budget_usd'], edited['metadata']], ['Acme Ltd', null, {}])
  assert.equal(edited['discount'], 0.1)
  await send('POST', `/gateway/v1/credits?account=${id}`, { amount_usd: 5, reason: 'paid' })
  await send('POST', ACCOUNTS, { name: 'Zeta' })

  const idsOf = (list: Record<string, unknown>) => (list['data'] as { id: string }[]).map((row) => row.id)
  const all = (await send('GET', ACCOUNTS)).json
  assert.deepEqual([idsOf(all).length, idsOf(all).at(-1)], [3, 'default'])
  assert.deepEqual(all['total'], { month_spend_usd: 0, month_held_usd: 0, balance_usd: 5 })
  const first = (await send('GET', `${ACCOUNTS}?limit=2`)).json
  assert.equal(first['has_more'], true)
  const rest = (await send('GET', `${ACCOUNTS}?limit=2&after=${first['next']}`)).json
  assert.deepEqual([...idsOf(first), ...idsOf(rest)], idsOf(all))
  for (const search of ['aCmE', id.slice(-9)])
    assert.deepEqual(idsOf((await send('GET', `${ACCOUNTS}?search=${search}`)).json), [id])
  assert.deepEqual(idsOf((await send('GET', `${ACCOUNTS}?status=suspended`)).json), [])
})

test('the default account is as old as the database', async () => {
  const { json } = await send('GET', `${ACCOUNTS}/default`)
  const ageMs = Date.now() - Date.parse(String(json['created_at']))
  assert.ok(ageMs > -60_000 && ageMs < 3_600_000, String(json['created_at']))
})

test('invalid account fields are refused by name', async () => {
  const wrong: [fields: object, param: string][] = [
    [{}, 'name'],
    [{ name: 'a', discount: 1.1 }, 'discount'],
    [{ name: 'a', discount: -0.1 }, 'discount'],
    [{ name: 'a', budget: 5 }, 'budget'],
    [{ name: 'a', metadata: { a: 1 } }, 'metadata'],
    [{ name: 'a', upstreams: { chat: { url: 'ftp://x' } } }, 'upstreams.chat.url'],
    [{ name: 'a', upstreams: { chat: { url: 'https://u:p@x' } } }, 'upstreams.chat.url'],
    [{ name: 'a', upstreams: { chat: { key: 'a b' } } }, 'upstreams.chat.key'],
  ]
  for (const [fields, param] of wrong) {
    const answer = await send('POST', ACCOUNTS, fields)
    assert.deepEqual([answer.status, answer.code, answer.param], [400, 'bad_request', param])
  }
  for (const [method, path] of [
    ['GET', `${ACCOUNTS}/acct_01JCN1ZV5M3T9Q8W7E6R5T4Y3X`],
    ['PATCH', `${ACCOUNTS}/acct_01JCN1ZV5M3T9Q8W7E6R5T4Y3X`],
    ['POST', `${ACCOUNTS}/acct_01JCN1ZV5M3T9Q8W7E6R5T4Y3X/suspend`],
    ['GET', '/v1/keys?account=acct_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'],
  ] as const)
    assert.equal((await send(method, path)).status, 404, path)
  assert.equal((await send('POST', '/v1/keys?account=*', { name: 'k' })).status, 400)
})

test('admins and viewers see the spend and budget of their own account, but no operator fields', async () => {
  const fields = { name: 'seen', monthly_budget_usd: 7, metadata: { crm: 'late payer' } }
  const { id } = (await send('POST', ACCOUNTS, fields)).json
  const SELF = `${ACCOUNTS}/self`
  for (const role of ['admin', 'viewer']) {
    const made = await send('POST', '/gateway/v1/admin-keys', { name: role, role, account_id: id })
    const { status, json } = await send('GET', SELF, undefined, {
      authorization: `Bearer ${made.json['key']}`,
    })
    assert.deepEqual([status, json['id'], json['monthly_budget_usd']], [200, id, 7])
    assert.deepEqual([json['month_spend_usd'], json['month_held_usd'], json['balance_usd']], [0, 0, 0])
    assert.ok(!('metadata' in json) && !('upstreams' in json))
  }
  assert.equal((await send('GET', SELF)).json['id'], 'default')
  assert.equal((await send('GET', `${SELF}?account=${id}`)).json['name'], 'seen')
  const key = { authorization: `Bearer ${gateway.apiKey}` }
  assert.equal((await send('GET', SELF, undefined, key)).code, 'admin_key_required')
})

test('an operator acts in the account named by the query, and an id finds its own account', async () => {
  const { id } = (await send('POST', ACCOUNTS, { name: 'named' })).json
  const made = await send('POST', `/v1/keys?account=${id}`, { name: 'k' })
  assert.equal(made.status, 201)
  const keys = async (query: string) =>
    ((await send('GET', `/v1/keys${query}`)).json['data'] as { name: string }[]).map(({ name }) => name)
  assert.deepEqual(await keys(`?account=${id}`), ['k'])
  assert.deepEqual(await keys(''), ['test'])
  assert.equal((await send('GET', `/v1/keys/${made.json['id']}`)).status, 200)
  assert.equal((await send('GET', `/v1/keys/${made.json['id']}?account=default`)).status, 404)
})
