import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { exchange } from '../support/raw-client.ts'
import { chunked, message } from '../support/wire-bytes.ts'
import { badKeyBodies } from './bad-key-fields.ts'
import { movableClock } from './movable-clock.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const clock = movableClock()
const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', clock })
after(() => gateway.close())
const ask = askOf(gateway)
const create = (json: unknown, headers: Record<string, string> = {}) =>
  ask('POST', '/v1/keys', { json, headers })

/** The first instant of the next month, by the machine's clock. */
function nextMonth(): string {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString()
}

test('POST /v1/keys 201: answers the record and, once, the secret', async () => {
  const resets = [nextMonth()]
  const answer = await create({ name: 'billing service' })
  resets.push(nextMonth())
  assert.equal(answer.status, 201)
  assertUnstored(answer)
  assert.equal(answer.headers.get('idempotent-replayed'), null)
  const { key, id, created_at, budget_resets_at, ...rest } = answer.body
  assert.match(String(id), /^key_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.match(String(key), /^svc_live_[0-9A-Za-z]{49}$/)
  assert.match(String(created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.ok(resets.includes(String(budget_resets_at)))
  assert.deepEqual(rest, {
    object: 'key',
    name: 'billing service',
    prefix: String(key).slice(0, 16),
    last4: String(key).slice(-4),
    status: 'usable',
    monthly_budget_usd: null,
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

test('POST /v1/keys 201: with every limit, and each is kept', async () => {
  const limits = {
    name: 'all of it',
    monthly_budget_usd: 12.5,
    allowed_models: ['claude-sonnet-5', 'gpt-6'],
    log_requests: true,
    expires_at: '2100-02-28T23:59:59.123Z',
  }
  const { status, body } = await create(limits)
  assert.equal(status, 201)
  const kept = await ask('GET', `/v1/keys/${body['id']}`)
  for (const [field, value] of Object.entries(limits)) {
    assert.deepEqual(body[field], value)
    assert.deepEqual(kept.body[field], value)
  }
})

test('POST /v1/keys 201: null is no limit', async () => {
  const none = { monthly_budget_usd: null, allowed_models: null, expires_at: null }
  const { status, body } = await create({ name: 'free', ...none })
  assert.equal(status, 201)
  for (const field of Object.keys(none)) assert.equal(body[field], null)
})

const edges: readonly [what: string, text: string, field: string, value: unknown][] = [
  ['a name of 120 emoji', JSON.stringify({ name: '🔑'.repeat(120) }), 'name', '🔑'.repeat(120)],
  ['a name of one character', '{"name":"x"}', 'name', 'x'],
  ['a budget of 0', '{"name":"x","monthly_budget_usd":0}', 'monthly_budget_usd', 0],
  ['a budget of -0', '{"name":"x","monthly_budget_usd":-0}', 'monthly_budget_usd', 0],
  [
    'a budget of a nanodollar',
    '{"name":"x","monthly_budget_usd":0.000000001}',
    'monthly_budget_usd',
    0.000000001,
  ],
  ['a budget of a billion', '{"name":"x","monthly_budget_usd":1e9}', 'monthly_budget_usd', 1_000_000_000],
  [
    '200 models of 256 characters',
    JSON.stringify({
      name: 'x',
      allowed_models: Array.from({ length: 200 }, (_, i) => `${i}`.padStart(256, 'm')),
    }),
    'allowed_models',
    Array.from({ length: 200 }, (_, i) => `${i}`.padStart(256, 'm')),
  ],
  [
    'an expiry with whole seconds',
    '{"name":"x","expires_at":"2096-02-29T00:00:00Z"}',
    'expires_at',
    '2096-02-29T00:00:00.000Z',
  ],
  [
    'an expiry with nanoseconds, cut to milliseconds',
    '{"name":"x","expires_at":"2100-01-01T00:00:00.123999999Z"}',
    'expires_at',
    '2100-01-01T00:00:00.123Z',
  ],
  [
    'an expiry in +00:00',
    '{"name":"x","expires_at":"2100-01-01T00:00:00.5+00:00"}',
    'expires_at',
    '2100-01-01T00:00:00.500Z',
  ],
  [
    'an expiry in -00:00',
    '{"name":"x","expires_at":"2100-01-01T00:00:00-00:00"}',
    'expires_at',
    '2100-01-01T00:00:00.000Z',
  ],
  ['a name that begins with a blank', '{"name":" x"}', 'name', ' x'],
  [
    'a model of 128 emoji',
    JSON.stringify({ name: 'x', allowed_models: ['🔑'.repeat(128)] }),
    'allowed_models',
    ['🔑'.repeat(128)],
  ],
  ['a body with a byte order mark', '\ufeff{"name":"marked"}', 'name', 'marked'],
]
for (const [what, text, field, value] of edges) {
  test(`POST /v1/keys 201: ${what}`, async () => {
    const { status, body } = await ask('POST', '/v1/keys', { text })
    assert.equal(status, 201, JSON.stringify(body))
    assert.deepEqual(body[field], value)
  })
}

test('POST /v1/keys 201: a budget comes back to the nanodollar, beyond what a double holds', async () => {
  const response = await fetch(`${gateway.url}/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.adminKey}` },
    body: '{"name":"exact","monthly_budget_usd":999999999.123456789}',
  })
  assert.match(await response.text(), /"monthly_budget_usd":999999999\.123456789,/)
})

for (const { what, text, param, message } of badKeyBodies('"name":"x"')) {
  test(`POST /v1/keys 400: ${what}`, async () => {
    assertRefused(await ask('POST', '/v1/keys', { text }), 400, { code: 'bad_request', param, message })
  })
}

for (const [what, text] of [
  ['no name', '{}'],
  ['an empty body', ''],
] as const) {
  test(`POST /v1/keys 400: ${what}`, async () => {
    const answer = await ask('POST', '/v1/keys', { text })
    assertRefused(answer, 400, { code: 'bad_request', param: 'name', message: /name is required/ })
  })
}

test('POST /v1/keys 400: a name that is not UTF-8', async () => {
  const answer = await ask('POST', '/v1/keys', { text: Buffer.from('{"name":"caf\xe9"}', 'latin1') })
  assertRefused(answer, 400, { code: 'bad_request', param: null, message: /UTF-8/ })
})

test('POST /v1/keys 400: a query parameter', async () => {
  const answer = await ask('POST', '/v1/keys?name=x', { json: { name: 'x' } })
  assertRefused(answer, 400, { code: 'bad_request', param: 'name', message: /not a parameter/ })
})

test('POST /v1/keys 400: what is refused creates nothing', async () => {
  const name = 'never to be seen'
  await create({ name, monthly_budget: 5 })
  await create({ name, expires_at: '2020-01-01T00:00:00Z' })
  await create({ name }, { 'idempotency-key': '' })
  const { body } = await ask('GET', `/v1/keys?search=${encodeURIComponent(name)}`)
  assert.deepEqual(body['data'], [])
})

test('POST /v1/keys 201: repeated with its Idempotency-Key, it answers the key without the secret', async () => {
  const headers = { 'idempotency-key': 'create once' }
  const first = await create({ name: 'once', monthly_budget_usd: 3 }, headers)
  assert.equal(first.status, 201)
  await gateway.manage('PATCH', `/v1/keys/${first.body['id']}`, { name: 'renamed' })
  const second = await create({ name: 'once', monthly_budget_usd: 3 }, headers)
  assert.equal(second.status, 201)
  assert.equal(second.headers.get('idempotent-replayed'), 'true')
  assertUnstored(second)
  const { key, ...record } = first.body
  assert.equal(typeof key, 'string')
  assert.deepEqual(second.body, { ...record, name: 'renamed' })
})

test('POST /v1/keys 201: repeated with its Idempotency-Key after its own expiry, it is still a repetition', async () => {
  const headers = { 'idempotency-key': 'create for a minute' }
  const body = { name: 'for a minute', expires_at: new Date(clock.nowMs() + 60_000).toISOString() }
  const first = await create(body, headers)
  assert.equal(first.status, 201)
  clock.advance(60_000)
  const second = await create(body, headers)
  assert.equal(second.status, 201, JSON.stringify(second.body))
  assert.equal(second.headers.get('idempotent-replayed'), 'true')
  assert.deepEqual([second.body['id'], second.body['status']], [first.body['id'], 'expired'])
})

test('POST /v1/keys 400: an expiry in the past, with a new Idempotency-Key and without', async () => {
  for (const headers of [{}, { 'idempotency-key': 'never used' }]) {
    const answer = await create({ name: 'x', expires_at: new Date(clock.nowMs()).toISOString() }, headers)
    assertRefused(answer, 400, { code: 'bad_request', param: 'expires_at' })
  }
  const used = await create({ name: 'x' }, { 'idempotency-key': 'never used' })
  assert.equal(used.status, 201, 'what made nothing did not use the name up')
})

test('POST /v1/keys 201: many at once with one Idempotency-Key make one key', async () => {
  const headers = { 'idempotency-key': 'x'.repeat(255) }
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => create({ name: 'only one of these' }, headers)),
  )
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
  assert.equal(new Set(answers.map(({ body }) => body['id'])).size, 1)
  assert.equal(answers.filter(({ body }) => 'key' in body).length, 1)
})

test('POST /v1/keys 201: another Idempotency-Key is another key', async () => {
  const one = await create({ name: 'twin' }, { 'idempotency-key': 'twin 1' })
  const other = await create({ name: 'twin' }, { 'idempotency-key': 'twin 2' })
  assert.notEqual(one.body['id'], other.body['id'])
  assert.notEqual(one.body['key'], other.body['key'])
})

test('POST /v1/keys 409: an Idempotency-Key that was used for something else', async () => {
  const headers = { 'idempotency-key': 'for one thing' }
  const first = await create({ name: 'one thing' }, headers)
  const answer = await create({ name: 'another thing' }, headers)
  assertRefused(answer, 409, { code: 'conflict', param: 'Idempotency-Key' })
  const rotation = await ask('POST', `/v1/keys/${first.body['id']}/rotate`, { headers })
  assertRefused(rotation, 409, { code: 'conflict', param: 'Idempotency-Key' })
})

for (const [what, name] of [
  ['an empty Idempotency-Key', ''],
  ['an Idempotency-Key of 256 characters', 'x'.repeat(256)],
  ['an Idempotency-Key that is not ASCII', 'caf\xe9'],
  ['an Idempotency-Key with a tab', 'a\tb'],
] as const) {
  test(`POST /v1/keys 400: ${what}`, async () => {
    const answer = await create({ name: 'x' }, { 'idempotency-key': name })
    assertRefused(answer, 400, { code: 'bad_request', param: 'Idempotency-Key', message: /1 to 255/ })
  })
}

const head = (lines: readonly string[]) => ['Host: h', `Authorization: Bearer ${gateway.adminKey}`, ...lines]

test('POST /v1/keys 400: two Idempotency-Keys; the same one twice is one', async () => {
  const send = (names: readonly string[]) => {
    const lines = head(names.map((name) => `Idempotency-Key: ${name}`))
    return exchange(gateway, chunked('POST /v1/keys HTTP/1.1', lines, ['{"name":"x"}']))
  }
  assert.equal((await send(['same', 'same'])).status, 201)
  const two = await send(['one', 'other'])
  assert.equal(two.status, 400)
  assert.match(two.body.toString(), /"param":"Idempotency-Key"/)
})

test('POST /v1/keys 413: a body beyond 64 KiB, announced or not', async () => {
  assertRefused(await create({ name: 'x'.repeat(70_000) }), 413, { code: 'body_too_large' })
  const chunks = Array.from({ length: 70 }, () => ' '.repeat(1_000))
  const reply = await exchange(gateway, chunked('POST /v1/keys HTTP/1.1', head([]), chunks))
  assert.equal(reply.status, 413)
})

test('POST /v1/keys 413: one that asks first is not invited to send it', async () => {
  const lines = head(['Content-Length: 70000', 'Expect: 100-continue'])
  const reply = await exchange(gateway, message('POST /v1/keys HTTP/1.1', lines))
  assert.equal(reply.status, 413)
  assert.deepEqual(reply.interim, [])
})

test('POST /v1/keys 201: one that asks first is invited', async () => {
  const lines = head(['Content-Length: 12', 'Expect: 100-continue'])
  const reply = await exchange(gateway, message('POST /v1/keys HTTP/1.1', lines, '{"name":"x"}'))
  assert.equal(reply.status, 201)
  assert.equal(reply.interim.length, 1)
})

test('POST /v1/keys 408: a body that stops arriving', async () => {
  const impatient = await startGateway({ settings: { bodyIdleTimeoutMs: 100 } })
  try {
    const lines = ['Host: h', `Authorization: Bearer ${impatient.adminKey}`, 'Content-Length: 12']
    const reply = await exchange(impatient, message('POST /v1/keys HTTP/1.1', lines, '{"name"'))
    assert.equal(reply.status, 408)
    assert.match(reply.body.toString(), /"code":"request_timeout"/)
    assert.ok(reply.headerLines.some((line) => /^connection: close$/i.test(line)))
  } finally {
    await impatient.close()
  }
})
