import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { startGateway } from '../support/gateway.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const HOSTS: Readonly<Record<string, string>> = {
  'inside.example': '10.0.0.7',
  'outside.example': '93.184.216.34',
}

const gateway = await startGateway({
  async resolveHost(host) {
    const address = HOSTS[host]
    if (address === undefined) throw new Error(`queryA ENOTFOUND ${host}`)
    return [{ address, family: 4 }]
  },
})
after(() => gateway.close())
const ask = askOf(gateway)

const PATH = '/gateway/v1/webhooks'
const NO_SUCH = `${PATH}/wh_01ARZ3NDEKTSV4RRFFQ69G5FAV`
const url = 'https://outside.example/hook'

async function create(fields: object = {}): Promise<{ id: string; secret: string; path: string }> {
  const { status, body } = await ask('POST', PATH, { json: { url, events: ['*'], ...fields } })
  assert.equal(status, 201, JSON.stringify(body))
  const { id, secret } = body as { id: string; secret: string }
  return { id, secret, path: `${PATH}/${id}` }
}

const remove = async ({ path }: { readonly path: string }) =>
  assert.equal((await ask('DELETE', path)).status, 204)

test('a webhook is created with all its members, and its secret is in that answer alone', async () => {
  const created = await ask('POST', PATH, { json: { url, events: ['key.revoked'], description: 'ours' } })
  assertUnstored(created)
  const { id, secret, created_at, ...rest } = created.body
  assert.match(String(id), /^wh_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.match(String(secret), /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.ok(Math.abs(Date.parse(String(created_at)) - Date.now()) < 60_000)
  assert.deepEqual(rest, {
    object: 'webhook',
    url,
    events: ['key.revoked'],
    description: 'ours',
    format: 'standard',
    enabled: true,
    disabled_reason: null,
    last_delivery_at: null,
    last_status: null,
  })
  const path = `${PATH}/${id}`
  const shown = await ask('GET', path)
  assert.deepEqual(shown.body, { id, created_at, ...rest })
  const list = await ask('GET', PATH)
  assert.deepEqual(list.body['data'], [shown.body])
  await remove({ path })
})

test('a creation that is repeated under its Idempotency-Key makes no second one and tells no secret', async () => {
  const once = { json: { url, events: ['*'] }, headers: { 'idempotency-key': 'once' } }
  const first = await ask('POST', PATH, once)
  const again = await ask('POST', PATH, once)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  const { secret, ...record } = first.body
  assert.equal(typeof secret, 'string')
  assert.deepEqual(again.body, record)
  const other = await ask('POST', PATH, { ...once, json: { url, events: ['key.revoked'] } })
  assertRefused(other, 409, { code: 'conflict', param: 'Idempotency-Key' })
  await remove({ path: `${PATH}/${record['id']}` })
})

const wrong: readonly [what: string, fields: object, param: string, message: RegExp][] = [
  ['no url', { url: undefined }, 'url', /^url is required\.$/],
  ['a url that is none', { url: 'outside.example' }, 'url', /^url must be an absolute https:\/\/ URL\.$/],
  ['http', { url: 'http://outside.example/' }, 'url', /^url must be https; .*allow_private/],
  ['credentials', { url: 'https://a:b@outside.example/' }, 'url', /no user and no password/],
  ['a private address', { url: 'https://[::ffff:10.0.0.1]/' }, 'url', /is a private or reserved address/],
  ['a name that leads to one', { url: 'https://inside.example/' }, 'url', /inside\.example \(10\.0\.0\.7\)/],
  ['a url that is too long', { url: `https://outside.example/${'x'.repeat(2_048)}` }, 'url', /at most 2048/],
  ['no events', { events: undefined }, 'events', /^events is required\.$/],
  ['an empty list of events', { events: [] }, 'events', /^events must not be an empty list/],
  [
    'an event that does not exist',
    { events: ['key.budget'] },
    'events.0',
    /^events must be \["\*"\] or a list of /,
  ],
  ['all events and one more', { events: ['*', 'key.revoked'] }, 'events', /alone/],
  ['an event twice', { events: ['key.revoked', 'key.revoked'] }, 'events', /twice/],
  ['the event of tests', { events: ['webhook.test'] }, 'events.0', /^events must be/],
  [
    'a format that does not exist',
    { format: 'teams' },
    'format',
    /^format must be one of standard, slack\.$/,
  ],
  ['a description that is too long', { description: 'x'.repeat(501) }, 'description', /at most 500/],
  ['a secret of its own', { secret: 'whsec_x' }, 'secret', /^secret is not a field of this request\.$/],
]

for (const [what, fields, param, message] of wrong) {
  test(`${what} is refused, by name and with the fix`, async () => {
    const answer = await ask('POST', PATH, { json: { url, events: ['*'], ...fields } })
    assertRefused(answer, 400, { code: 'bad_request', param, message })
  })
}

test('a host name that does not resolve is accepted', async () => {
  await remove(await create({ url: 'https://not-yet.example/' }))
})

test('an edit changes what it names; a url is checked again; enabling clears the reason', async () => {
  const webhook = await create()
  const { path } = webhook
  const edit = { description: 'new', format: 'slack', events: ['balance.low'], enabled: false }
  const disabled = await ask('PATCH', path, { json: edit })
  assert.equal(disabled.status, 200)
  const { url: unchanged, description, format, events, enabled, disabled_reason } = disabled.body
  assert.deepEqual({ description, format, events, enabled }, edit)
  assert.deepEqual([unchanged, disabled_reason], [url, 'manual'])
  assertRefused(await ask('PATCH', path, { json: { url: 'https://127.1/' } }), 400, {
    code: 'bad_request',
    param: 'url',
  })
  assertRefused(await ask('PATCH', path, { json: { enabled: 'yes' } }), 400, {
    code: 'bad_request',
    param: 'enabled',
  })
  const again = await ask('PATCH', path, { json: { enabled: true, description: '' } })
  assert.deepEqual(
    [again.body['enabled'], again.body['disabled_reason'], again.body['description']],
    [true, null, ''],
  )
  await remove(webhook)
})

test('what is not there is 404, on every path', async () => {
  const webhook = await create()
  const delivery = `${webhook.path}/deliveries/whd_01ARZ3NDEKTSV4RRFFQ69G5FAV/redeliver`
  for (const [method, path] of [
    ['GET', NO_SUCH],
    ['PATCH', NO_SUCH],
    ['DELETE', NO_SUCH],
    ['POST', `${NO_SUCH}/test`],
    ['POST', `${NO_SUCH}/rotate-secret`],
    ['GET', `${NO_SUCH}/deliveries`],
    ['POST', `${NO_SUCH}/deliveries/whd_01ARZ3NDEKTSV4RRFFQ69G5FAV/redeliver`],
    ['POST', delivery],
  ] as const)
    assertRefused(await ask(method, path), 404, { code: 'not_found' })
  await remove(webhook)
  assertRefused(await ask('GET', webhook.path), 404, { code: 'not_found' })
  assertRefused(await ask('DELETE', webhook.path), 404, { code: 'not_found' })
})

test('a rotation tells a new secret, once', async () => {
  const webhook = await create()
  const rotated = await ask('POST', `${webhook.path}/rotate-secret`)
  assert.equal(rotated.status, 200)
  assertUnstored(rotated)
  const { secret } = rotated.body
  assert.match(String(secret), /^whsec_/)
  assert.notEqual(secret, webhook.secret)
  assert.equal((await ask('GET', webhook.path)).body['secret'], undefined)
  await remove(webhook)
})

test('a rotation, a test and a redelivery are done once under one Idempotency-Key', async () => {
  const webhook = await create({ url: 'https://not-yet.example/' })
  const askOnce = async (path: string, name: string) =>
    await ask('POST', webhook.path + path, { headers: { 'idempotency-key': name } })
  const rotated = await askOnce('/rotate-secret', 'rotate 1')
  assert.match(String(rotated.body['secret']), /^whsec_/)
  const repeated = await askOnce('/rotate-secret', 'rotate 1')
  assert.deepEqual([repeated.status, repeated.headers.get('idempotent-replayed')], [200, 'true'])
  assert.deepEqual([repeated.body['id'], repeated.body['secret']], [webhook.id, undefined])
  const sent = await askOnce('/test', 'test 1')
  const redelivery = `/deliveries/${sent.body['id']}/redeliver`
  for (const [path, name] of [
    ['/test', 'test 1'],
    [redelivery, 'again 1'],
    [redelivery, 'again 1'],
  ] as const) {
    const { status, body } = await askOnce(path, name)
    assert.deepEqual([status, body['id']], [202, sent.body['id']])
  }
  assertRefused(await askOnce('/test', 'rotate 1'), 409, { code: 'conflict', param: 'Idempotency-Key' })
  assertRefused(await askOnce('/test', 'é'), 400, { code: 'bad_request', param: 'Idempotency-Key' })
  const { body } = await ask('GET', `${webhook.path}/deliveries`)
  assert.equal((body['data'] as unknown[]).length, 1)

  assert.equal((await ask('POST', `${webhook.path}/rotate-secret`)).status, 200)
  const tooSoon = await ask('POST', `${webhook.path}/rotate-secret`)
  assertRefused(tooSoon, 409, { code: 'conflict', message: /Rotate it after 2\d{3}-.*Z\.$/ })
  await remove(webhook)
})

test('deliveries are listed in pages, newest first, and by their state', async () => {
  const webhook = await create({ url: 'https://not-yet.example/' })
  const ids: unknown[] = []
  for (let i = 0; i < 5; i++) {
    const queued = await ask('POST', `${webhook.path}/test`)
    assert.equal(queued.status, 202)
    assert.deepEqual([queued.body['status'], queued.body['event_type']], ['pending', 'webhook.test'])
    ids.unshift(queued.body['id'])
  }
  const seen: unknown[] = []
  for (let after = ''; ; ) {
    const page = await ask('GET', `${webhook.path}/deliveries?limit=2${after}`)
    seen.push(...(page.body['data'] as { id: string }[]).map(({ id }) => id))
    if (page.body['has_more'] !== true) break
    after = `&after=${page.body['next']}`
  }
  assert.deepEqual(seen, ids)
  const none = await ask('GET', `${webhook.path}/deliveries?status=succeeded`)
  assert.deepEqual([none.body['data'], none.body['has_more'], none.body['next']], [[], false, null])
  const bad = await ask('GET', `${webhook.path}/deliveries?after=whd_1`)
  assertRefused(bad, 400, { code: 'bad_request', param: 'after', message: /`next` of an earlier page/ })
  assertRefused(await ask('GET', `${webhook.path}/deliveries?status=late`), 400, {
    code: 'bad_request',
    param: 'status',
  })
  await remove(webhook)
})

test('there are so many webhooks and no more', async () => {
  const made: { readonly path: string }[] = []
  for (let i = 0; i < limits.webhooksMax; i++) made.push(await create())
  const answer = await ask('POST', PATH, { json: { url, events: ['*'] } })
  assertRefused(answer, 409, { code: 'conflict', message: /^There are 50 webhooks already/ })
  const page = await ask('GET', `${PATH}?limit=20`)
  assert.equal((page.body['data'] as unknown[]).length, 20)
  assert.equal(page.body['next'], (page.body['data'] as { id: string }[]).at(-1)?.id)
  for (const webhook of made) await remove(webhook)
})
