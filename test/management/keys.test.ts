import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { exchange } from '../support/raw-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { chunked, message } from '../support/wire-bytes.ts'
import { movableClock } from './movable-clock.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const clock = movableClock()
const bench = await startBillingBench({ clock })
const { gateway } = bench
closeAfter(bench)
const ask = askOf(gateway)
const create = (json: unknown, headers: Record<string, string> = {}) =>
  ask('POST', '/v1/keys', { json, headers })
const show = async (id: string) => (await ask('GET', `/v1/keys/${id}`)).body
const inSeconds = (seconds: number) => new Date(clock.nowMs() + seconds * 1_000).toISOString()

const LIMITS = {
  monthly_budget_usd: 12.5,
  daily_budget_usd: 0.000000001,
  requests_per_minute: 60,
  budget_mode: 'settled',
  metadata: { cost_center: '4711', team: 'web' },
  allowed_models: ['claude-haiku-5-5', 'gpt-6*'],
  log_requests: true,
  expires_at: '2100-02-28T23:59:59.123Z',
}

/** The first instant of the next month, by the machine's clock. */
function nextMonth(): string {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString()
}

test('POST /v1/keys 201: answers the record with the secret, once', async () => {
  const resets = [nextMonth()]
  const answer = await create({ name: 'billing service' })
  resets.push(nextMonth())
  assert.equal(answer.status, 201)
  assertUnstored(answer)
  assert.equal(answer.headers.get('idempotent-replayed'), null)
  const { key, id, budget_id, created_at, budget_resets_at, ...rest } = answer.body
  assert.match(String(id), /^key_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.equal(budget_id, String(id).replace('key_', 'bud_'))
  assert.match(String(key), /^svc_live_[0-9A-Za-z]{49}$/)
  assert.match(String(created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.ok(resets.includes(String(budget_resets_at)))
  assert.deepEqual(rest, {
    object: 'key',
    account_id: 'default',
    person_id: null,
    name: 'billing service',
    prefix: String(key).slice(0, 16),
    last4: String(key).slice(-4),
    status: 'usable',
    monthly_budget_usd: null,
    daily_budget_usd: null,
    requests_per_minute: null,
    budget_mode: null,
    metadata: {},
    day_spend_usd: 0,
    month_spend_usd: 0,
    month_held_usd: 0,
    month_lost_usd: 0,
    month_waiting: 0,
    allowed_models: null,
    log_requests: false,
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
    rotated_from: null,
  })
})

test('POST /v1/keys 201: stores every limit, and budgets to the nanodollar', async () => {
  const { status, body } = await create({ name: 'all of it', ...LIMITS })
  assert.equal(status, 201)
  const stored = await show(String(body['id']))
  for (const [field, value] of Object.entries(LIMITS)) assert.deepEqual(stored[field], value)
  const response = await fetch(`${gateway.url}/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.adminKey}` },
    body: '{"name":"exact","monthly_budget_usd":999999999.123456789}',
  })
  assert.match(await response.text(), /"monthly_budget_usd":999999999\.123456789,/)
})

test('an allowlist entry must match an id or alias of the price book, and its refusal names the closest', async () => {
  const good = ['claude-haiku-5-5', 'claude-*', 'gpt-6-lun*', 'ft:gpt-4o:acme::id', 'ft:gpt-4o:acme*', 'ft:*']
  for (const entry of good)
    assert.equal((await create({ name: 'x', allowed_models: [entry] })).status, 201, entry)
  const bad: readonly [entry: string, closest: RegExp][] = [
    ['claude-haiku-5.5', /claude-haiku-5-5/],
    ['gpt-6-lunaa', /gpt-6-luna\b/],
    ['cluade-*', /Did you mean claude-\*\?/],
    ['GPT-6-luna', /gpt-6-luna/],
    ['ft:gpt-0:acme', /Did you mean ft:gpt-/],
    ['llama-4-maverick', /Did you mean [a-z]/],
    ['mistral-*', /Did you mean [a-z]/],
    ['x'.repeat(256), /Did you mean [a-z]/],
  ]
  const { id } = await gateway.createKey('edited')
  for (const [entry, closest] of bad) {
    const wanted = { code: 'unknown_model', param: 'allowed_models', message: closest }
    const json = { name: 'never', allowed_models: ['gpt-6-luna', entry] }
    assertRefused(await ask('POST', '/v1/keys', { json }), 400, wanted)
    assertRefused(await ask('PATCH', `/v1/keys/${id}`, { json }), 400, wanted)
  }
  assert.equal((await show(id))['allowed_models'], null)
})

test('POST /v1/keys 201: a replay by Idempotency-Key answers the current record without the secret', async () => {
  const headers = { 'idempotency-key': 'create once' }
  const body = { name: 'once', expires_at: inSeconds(60) }
  const first = await create(body, headers)
  await gateway.manage('PATCH', `/v1/keys/${first.body['id']}`, { name: 'renamed' })
  clock.advance(60_000)
  const second = await create(body, headers)
  assert.equal(second.status, 201, JSON.stringify(second.body))
  assert.equal(second.headers.get('idempotent-replayed'), 'true')
  assertUnstored(second)
  const { key, ...record } = first.body
  assert.equal(typeof key, 'string')
  assert.deepEqual(second.body, { ...record, name: 'renamed', status: 'expired' })
})

const head = (lines: readonly string[]) => ['Host: h', `Authorization: Bearer ${gateway.adminKey}`, ...lines]

test('POST /v1/keys 400: an invalid Idempotency-Key, or two different ones', async () => {
  for (const name of ['', 'x'.repeat(256), 'caf\xe9', 'a\tb']) {
    const answer = await create({ name: 'x' }, { 'idempotency-key': name })
    assertRefused(answer, 400, { code: 'bad_request', param: 'Idempotency-Key', message: /1 to 255/ })
  }
  const send = (names: readonly string[]) => {
    const lines = head(names.map((name) => `Idempotency-Key: ${name}`))
    return exchange(gateway, chunked('POST /v1/keys HTTP/1.1', lines, ['{"name":"x"}']))
  }
  assert.equal((await send(['same', 'same'])).status, 201)
  assert.match((await send(['one', 'other'])).body.toString(), /"param":"Idempotency-Key"/)
})

test('POST /v1/keys 413: a body above 64 KiB, with or without a length, and without 100 Continue', async () => {
  assertRefused(await create({ name: 'x'.repeat(70_000) }), 413, { code: 'body_too_large' })
  const chunks = Array.from({ length: 70 }, () => ' '.repeat(1_000))
  const reply = await exchange(gateway, chunked('POST /v1/keys HTTP/1.1', head([]), chunks))
  assert.equal(reply.status, 413)
  const expecting = (length: number, body: string) => {
    const lines = head([`Content-Length: ${length}`, 'Expect: 100-continue'])
    return exchange(gateway, message('POST /v1/keys HTTP/1.1', lines, body))
  }
  const refused = await expecting(70_000, '')
  assert.deepEqual([refused.status, refused.interim], [413, []])
  const invited = await expecting(12, '{"name":"x"}')
  assert.deepEqual([invited.status, invited.interim.length], [201, 1])
})

test('GET /v1/keys/{id} 200: the record with spend and last use, without the secret, as /me shows it', async () => {
  const { key, ...created } = await gateway.createKey('spender', { monthly_budget_usd: 5 })
  const first = await ask('GET', `/v1/keys/${created.id}`)
  assertUnstored(first)
  assert.deepEqual(first.body, created)
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'anthropic-version': '2023-06-01' },
    body: '{"model":"claude-opus-4-8","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}',
  })
  assert.equal(response.status, 200, await response.text())
  const spent = await show(created.id)
  assert.ok(Number(spent['month_spend_usd']) > 0)
  assert.equal(spent['month_held_usd'], 0)
  assert.notEqual(spent['last_used_at'], null)
  const own = await ask('GET', '/v1/keys/me', { key })
  assert.equal(own.body['id'], created.id)
  assert.equal(own.body['month_spend_usd'], spent['month_spend_usd'])
})

test('GET /v1/keys/me 404 and 405: an admin key has no record there, and "me" is not an id', async () => {
  assertRefused(await ask('GET', '/v1/keys/me'), 404, {
    code: 'not_found',
    message: /This endpoint shows the API key that sends the request/,
  })
  for (const method of ['PATCH', 'DELETE', 'POST']) {
    const answer = await ask(method, '/v1/keys/me')
    assertRefused(answer, 405, {
      code: 'method_not_allowed',
      message: /^Use GET or HEAD for this endpoint, not/,
    })
    assert.equal(answer.headers.get('allow'), 'GET, HEAD')
  }
})

test('PATCH /v1/keys/{id} 200: changes only the fields sent', async () => {
  const edits: readonly Readonly<Record<string, unknown>>[] = [
    { name: 'after' },
    { monthly_budget_usd: 0.000000001 },
    { monthly_budget_usd: null },
    { monthly_budget_usd: 0 },
    { allowed_models: ['gpt-6-luna'] },
    { allowed_models: null },
    { log_requests: false },
    { expires_at: '2090-12-31T23:59:59.999Z' },
    { expires_at: null },
    { name: 'a', monthly_budget_usd: null, allowed_models: null, log_requests: false, expires_at: null },
    {},
  ]
  for (const fields of edits) {
    const { key, ...before } = await gateway.createKey('before', LIMITS)
    const answer = await ask('PATCH', `/v1/keys/${before.id}`, { json: fields })
    assert.equal(answer.status, 200)
    assertUnstored(answer)
    assert.deepEqual(answer.body, { ...before, ...fields })
    assert.deepEqual(await show(before.id), answer.body)
  }
})

test('409: a revoked or expired key cannot be changed or rotated', async () => {
  const revoked = await gateway.createKey('revoked')
  await gateway.revokeKey(revoked.id)
  const expired = await gateway.createKey('short', { expires_at: inSeconds(60) })
  clock.advance(60_000)
  for (const [{ id }, how] of [
    [revoked, /is revoked/],
    [expired, /has expired/],
  ] as const) {
    const before = await show(id)
    for (const json of [{ expires_at: null }, { expires_at: '2100-01-01T00:00:00Z' }, {}])
      assertRefused(await ask('PATCH', `/v1/keys/${id}`, { json }), 409, { code: 'conflict', message: how })
    assertRefused(await ask('POST', `/v1/keys/${id}/rotate`), 409, { code: 'conflict', message: how })
    assert.deepEqual(await show(id), before)
  }
})

for (const [method, template] of [
  ['POST', '/v1/keys/{id}/revoke'],
  ['DELETE', '/v1/keys/{id}'],
] as const) {
  const path = (id: string) => template.replace('{id}', id)

  test(`${method} ${template} 200: revokes at once, and a repetition answers the same`, async () => {
    const { key, ...before } = await gateway.createKey('to be revoked', { monthly_budget_usd: 5 })
    const startedMs = clock.nowMs()
    const answer = await ask(method, path(before.id))
    assert.equal(answer.status, 200)
    assertUnstored(answer)
    const revokedMs = Date.parse(String(answer.body['revoked_at']))
    assert.ok(revokedMs >= startedMs && revokedMs <= clock.nowMs())
    assert.deepEqual(answer.body, { ...before, status: 'revoked', revoked_at: answer.body['revoked_at'] })
    const refused = await fetch(`${gateway.url}/v1/models`, { headers: { 'x-api-key': key } })
    assert.equal(refused.status, 401)
    assert.match(await refused.text(), /was revoked/)
    clock.advance(1_000)
    assert.deepEqual((await ask(method, path(before.id))).body, answer.body)
  })
}

const ROTATED_LIMITS = {
  ...{
    monthly_budget_usd: 12.5,
    daily_budget_usd: 0.000000001,
    requests_per_minute: 60,
    budget_mode: 'settled',
  },
  ...{ allowed_models: ['claude-haiku-5-5', 'gpt-6*'], log_requests: true, metadata: { team: 'web' } },
  expires_at: '2100-02-28T23:59:59.123Z',
}

const rotate = (id: string, json?: unknown, headers: Record<string, string> = {}) =>
  ask('POST', `/v1/keys/${id}/rotate`, { headers, ...(json === undefined ? {} : { json }) })

test('POST /v1/keys/{id}/rotate 201: a new key with the same limits, and the old one stays usable', async () => {
  const old = await gateway.createKey('service', ROTATED_LIMITS)
  const answer = await rotate(old.id)
  assert.equal(answer.status, 201)
  assertUnstored(answer)
  const { id, key, name, rotated_from, status, last_used_at } = answer.body
  assert.notEqual(id, old.id)
  assert.notEqual(key, old.key)
  assert.deepEqual([name, rotated_from, status, last_used_at], ['service', old.id, 'usable', null])
  for (const [field, value] of Object.entries(ROTATED_LIMITS)) assert.deepEqual(answer.body[field], value)
  assert.equal(answer.body['last4'], String(key).slice(-4))
  for (const each of [old.key, String(key)])
    assert.equal((await ask('GET', '/v1/keys/me', { key: each })).status, 200)
})

test('POST /v1/keys/{id}/rotate 409: an Idempotency-Key that another key was rotated with', async () => {
  const once = { 'idempotency-key': 'rotate once' }
  const [one, other] = [await gateway.createKey('one'), await gateway.createKey('other')]
  const { id } = (await rotate(one.id, undefined, once)).body
  assert.equal((await rotate(one.id, {}, once)).body['id'], id, 'an absent body is {}')
  assert.equal((await rotate(other.id, undefined, once)).status, 409)
})

test('POST /v1/keys/{id}/rotate 201: the old key expires as requested', async () => {
  const old = await gateway.createKey('service')
  const { body } = await rotate(old.id, { old_expires_in_seconds: 3_600 })
  assert.equal(body['expires_at'], null)
  assert.equal((await show(old.id))['status'], 'usable')
  clock.advance(3_600_000)
  assert.equal((await show(old.id))['status'], 'expired')
  assert.equal((await show(String(body['id'])))['status'], 'usable')
  const now = await gateway.createKey('now')
  await rotate(now.id, { old_expires_in_seconds: 0 })
  assert.equal((await ask('GET', '/v1/keys/me', { key: now.key })).status, 401)
})
