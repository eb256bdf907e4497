import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const HOSTS: Readonly<Record<string, readonly string[]>> = {
  'inside.example': ['10.0.0.7', '192.168.0.1'],
  'outside.example': ['93.184.216.34'],
}

const gateway = await startGateway({
  async resolveHost(host) {
    const addresses = HOSTS[host]
    if (addresses === undefined) throw new Error(`queryA ENOTFOUND ${host}`)
    return addresses.map((address) => ({ address, family: 4 }))
  },
})
closeAfter(gateway)
const ask = askOf(gateway)

const PATH = '/gateway/v1/webhooks'
const url = 'https://outside.example/hook'

async function create(fields: object = {}): Promise<{ id: string; secret: string; path: string }> {
  const { status, body } = await ask('POST', PATH, { json: { url, events: ['*'], ...fields } })
  assert.equal(status, 201, JSON.stringify(body))
  const { id, secret } = body as { id: string; secret: string }
  return { id, secret, path: `${PATH}/${id}` }
}

const remove = async ({ path }: { readonly path: string }) =>
  assert.equal((await ask('DELETE', path)).status, 204)

test('a webhook is created with every field, and only that response has its secret', async () => {
  const created = await ask('POST', PATH, { json: { url, events: ['key.revoked'], description: 'ours' } })
  assertUnstored(created)
  const { id, secret, created_at, ...rest } = created.body
  assert.match(String(id), /^wh_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.match(String(secret), /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.ok(Math.abs(Date.parse(String(created_at)) - Date.now()) < 600_000)
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

test('a creation repeated with its Idempotency-Key creates no second webhook and shows no secret', async () => {
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

test('an unsafe webhook url is refused by name, with the fix', async () => {
  const wrong: readonly [url: string, message: RegExp][] = [
    ['outside.example', /^url must be an absolute https:\/\/ URL\.$/],
    ['http://outside.example/', /^url must begin with https:.*allow_private/],
    ['https://inside.example/', /inside\.example has only private/],
  ]
  for (const [each, message] of wrong) {
    const answer = await ask('POST', PATH, { json: { url: each, events: ['*'] } })
    assertRefused(answer, 400, { code: 'bad_request', param: 'url', message })
  }
})

test('an update changes only its fields, checks a new url, and clears disabled_reason on enabling', async () => {
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
  const again = await ask('PATCH', path, { json: { enabled: true, description: '' } })
  assert.deepEqual(
    [again.body['enabled'], again.body['disabled_reason'], again.body['description']],
    [true, null, ''],
  )
  await remove(webhook)
})
