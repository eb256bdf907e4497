import assert from 'node:assert/strict'
import { OwnUpstreams } from '../../src/http-calls/own-upstreams.ts'
import { createLog } from '../../src/kernel/log.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { createSecretSealer } from '../../src/keys/secrets.ts'
import { startGateway } from '../support/gateway.ts'
import { exchange } from '../support/raw-client.ts'
import { changeDatabase } from '../support/read-database.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { after, test } from '../support/suite.ts'
import { message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'
import { words } from '../support/words.ts'

const [shared, own] = [await ScriptedUpstream.start(), await ScriptedUpstream.start()]
const gateway = await startGateway({ chatUrl: `${shared.url}/v1`, chatKey: 'installation-secret' })
after(async () => {
  await gateway.close()
  await Promise.all([shared.close(), own.close()])
})

const REPLY = JSON.stringify({
  ...{ id: 'chatcmpl_1', object: 'chat.completion', model: 'gpt-4o-mini' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1_000, completion_tokens: 1_000, total_tokens: 2_000 },
})
const CHAT_REPLY = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${REPLY.length}\r\n\r\n${REPLY}`
for (const upstream of [shared, own]) upstream.answer(() => [{ send: CHAT_REPLY }])

async function createAccount(name: string, fields: object = {}) {
  const { id } = await gateway.manage('POST', '/gateway/v1/accounts', { name, ...fields })
  const { key } = await gateway.manage('POST', `/v1/keys?account=${id}`, { name: `key of ${name}` })
  return { id: String(id), key: String(key) }
}

async function call(key: string, path = '/v1/chat/completions', headers: Record<string, string> = {}) {
  const isChat = path === '/v1/chat/completions'
  const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hi' }] })
  const response = await fetch(gateway.url + path, {
    method: isChat ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(isChat ? { body } : {}),
  })
  const json = (await response.json()) as { error?: { code?: string } }
  return { status: response.status, code: json.error?.code, headers: response.headers }
}

test('a suspended account is refused at once, and its keys can still read their own record', async () => {
  const { id, key } = await createAccount('suspended')
  assert.equal((await call(key)).status, 200)
  const before = shared.requestCount
  const record = await gateway.manage('POST', `/gateway/v1/accounts/${id}/suspend`)
  assert.equal(record['status'], 'suspended')
  assert.equal((await gateway.manage('POST', `/gateway/v1/accounts/${id}/suspend`))['status'], 'suspended')
  for (const path of ['/v1/chat/completions', '/v1/models']) {
    const { status, code } = await call(key, path)
    assert.deepEqual([status, code], [403, 'account_suspended'])
  }
  const others = [
    ['GET', '/v1/files'],
    ['POST', '/v1/realtime/client_secrets', '{}'],
    ['POST', '/v1/Chat/completions', '{}'],
    ['POST', '/v1/nothing/known', '{}'],
    ['POST', '/v1/chat/completions', '{"model":"gpt-6-luna","model":"gpt-6"}'],
    ['POST', '/v1/batches', '{"input_file_id":"file-1"}'],
    ['DELETE', '/v1/responses/resp_1'],
  ]
  for (const [method = '', path = '', body] of others) {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(gateway.url + path, { method, headers, ...(body && { body }) })
    const { error } = (await response.json()) as { error: { code: string } }
    assert.equal(error.code, 'account_suspended', `${method} ${path}`)
  }
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', `Authorization: Bearer ${key}`]
  const handshake = message('GET /v1/chat/completions HTTP/1.1', ['Host: h', ...upgrade])
  const { body: refused } = await exchange(gateway, handshake)
  assert.match(
    refused.toString(),
    /"account_suspended"/,
    'an upgrade on a path that does not support sockets',
  )
  assert.equal(shared.requestCount, before)
  assert.equal((await call(key, '/v1/keys/me')).status, 200)
  assert.equal((await call(gateway.apiKey)).status, 200)
  await gateway.manage('POST', `/gateway/v1/accounts/${id}/resume`)
  assert.equal((await call(key)).status, 200)
})

test("an account's discount applies to calls admitted after the change, and is recorded with them", async () => {
  const { id, key } = await createAccount('discounted', { discount: 0.25 })
  const costs = async () => {
    const { headers } = await call(key)
    return ['x-svc-cost-usd', 'x-svc-list-cost-usd'].map((name) =>
      Math.round(Number(headers.get(name)) * 1e9),
    )
  }
  const [cost = 0, list = 0] = await costs()
  assert.ok(list > 0)
  assert.equal(cost, list * 0.75)
  await gateway.manage('PATCH', `/gateway/v1/accounts/${id}`, { discount: 1 })
  assert.deepEqual(await costs(), [0, list])
  await gateway.manage('PATCH', `/gateway/v1/accounts/${id}`, { discount: null })
  assert.deepEqual(await costs(), [list, list])
  const account = await gateway.manage('GET', `/gateway/v1/accounts/${id}`)
  assert.equal(account['month_spend_usd'], (cost + list) / 1e9)
  assert.equal(account['balance_usd'], -(cost + list) / 1e9)
})

test('accounts on a shared credential cannot list stored objects, and have separate idempotency keys', async () => {
  const { id, key } = await createAccount('sharing')
  const before = shared.requestCount
  for (const path of words(`
    /v1/files /v1/files/ /v1/FILES /v1/%66iles /v1/files;a=b /v1/files/%20 /v1/v1/files /files
    /v1/batches?limit=1 /v1/chat/completions/ /v1/organization/users /v1/unheard_of
  `)) {
    const { status, code } = await call(key, path)
    assert.deepEqual([status, code], [403, 'shared_upstream'], path)
  }
  assert.equal((await call(gateway.apiKey, '/v1/files')).code, 'shared_upstream', 'the first account')
  assert.equal(shared.requestCount, before)
  for (const path of ['/v1/models', '/v1/models/gpt-4o-mini', '/v1/files/file-1', '/v1/responses/resp_1'])
    assert.equal((await call(key, path)).status, 200, path)
  const arrived = shared.nextRequest()
  await call(key, '/v1/chat/completions', { 'idempotency-key': 'mine' })
  assert.deepEqual(headerValues((await arrived).headerLines, 'idempotency-key'), [`${id}-mine`])
})

test("an account with its own upstream uses it with its own key, never the installation's", async () => {
  const url = `${own.url}/v1`
  const account = await createAccount('own', { upstreams: { chat: { url, key: 'own-secret' } } })
  const sent = async (headers: Record<string, string> = {}) => {
    const arrived = own.nextRequest()
    assert.equal((await call(account.key, '/v1/chat/completions', headers)).status, 200)
    const { headerLines } = await arrived
    return ['authorization', 'idempotency-key'].map((name) => headerValues(headerLines, name).join())
  }
  assert.deepEqual(await sent({ 'idempotency-key': 'mine' }), ['Bearer own-secret', 'mine'])
  assert.equal((await call(account.key, '/v1/files')).status, 200)

  const path = `/gateway/v1/accounts/${account.id}`
  const shown = await gateway.manage('GET', path)
  assert.deepEqual(shown['upstreams'], { messages: null, chat: { url, has_key: true } })
  await gateway.manage('PATCH', path, { upstreams: { chat: { url, key: 'rotated-secret' } } })
  assert.deepEqual(await sent(), ['Bearer rotated-secret', ''])
  await gateway.manage('PATCH', path, { upstreams: { chat: { url } } })
  assert.deepEqual(await sent(), ['Bearer rotated-secret', ''])
  for (const chat of [{ url: `${url}/other` }, {}])
    await assert.rejects(
      gateway.manage('PATCH', path, { name: 'x', upstreams: { chat } }),
      /400.*"param":"upstreams"/,
    )
  assert.deepEqual(
    [(await gateway.manage('GET', path))['name'], ...(await sent())],
    ['own', 'Bearer rotated-secret', ''],
  )
  await gateway.manage('PATCH', path, { upstreams: { chat: { url: `${url}/other`, key: null } } })
  assert.deepEqual(await sent(), ['', ''])
  const arrived = shared.nextRequest()
  await gateway.manage('PATCH', path, { upstreams: { chat: null } })
  await call(account.key)
  const [authorization] = headerValues((await arrived).headerLines, 'authorization')
  assert.equal(authorization, 'Bearer installation-secret')
  assert.ok(!own.requests.some(({ headerLines }) => headerLines.join().includes('installation-secret')))
})

test('a call whose upstream key cannot be opened is refused, and leaves nothing reserved', async () => {
  const chat = { url: `${own.url}/v1`, key: 'own-secret' }
  const { id, key } = await createAccount('unreadable', { upstreams: { chat } })
  const asked = own.requests.length
  await changeDatabase(gateway, `UPDATE account SET chat_key = 'AAAA' WHERE id = '${id}'`)
  assert.equal((await call(key)).status, 500)
  assert.equal(own.requests.length, asked)
  const account = await gateway.manage('GET', `/gateway/v1/accounts/${id}`)
  assert.equal(account['month_held_usd'], 0)
})

test('an object belongs to the credential that created it: another account can neither read nor settle it', async () => {
  const background = (upstream: ScriptedUpstream, usage: object | null) =>
    upstream.answer(({ method }) => {
      const status = usage === null || method === 'POST' ? 'queued' : 'completed'
      const body = JSON.stringify({
        id: 'resp_same',
        object: 'response',
        model: 'gpt-4o-mini',
        status,
        usage,
      })
      return [
        {
          send: `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        },
      ]
    })
  background(shared, null)
  background(own, { input_tokens: 1e6, output_tokens: 1e6, total_tokens: 2e6 })
  const victim = await createAccount('of the shared credential')
  const attacker = await createAccount('of its own', {
    upstreams: { chat: { url: `${own.url}/v1`, key: 'theirs' } },
  })
  const send = (key: string, method: string, path: string) =>
    fetch(gateway.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(method === 'POST'
        ? { body: JSON.stringify({ model: 'gpt-4o-mini', input: 'hi', background: true }) }
        : {}),
    })
  const made = await send(victim.key, 'POST', '/v1/responses')
  await made.text()
  const record = () => gateway.manage('GET', `/gateway/v1/requests/${made.headers.get('x-svc-request-id')}`)
  assert.deepEqual([(await record())['state'], (await record())['object_id']], ['deferred', 'resp_same'])
  // The attacker's upstream says that the object of this id is complete, expensive and deleted.
  for (const method of ['GET', 'DELETE']) {
    const arrived = own.nextRequest()
    assert.equal((await send(attacker.key, method, '/v1/responses/resp_same')).status, 200)
    assert.deepEqual(headerValues((await arrived).headerLines, 'authorization'), ['Bearer theirs'])
  }
  assert.deepEqual([(await record())['state'], (await record())['cost_usd']], ['deferred', null])
  shared.answer(() => [{ send: 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n' }])
  assert.equal((await send(victim.key, 'GET', '/v1/responses/resp_of_the_other')).status, 404)
})

test("an account's upstream has connections of its own, and is forgotten when it has none", () => {
  const sealer = createSecretSealer(new Secret('a pepper'), 'tests')
  const upstreams = new OwnUpstreams(sealer, createLog('silent'))
  const poolOf = (account: string) =>
    upstreams.open(account, 'chat', { url: 'http://own.test', sealedKey: null }).pool
  const first = poolOf('a')
  assert.equal(poolOf('a'), first)
  Object.defineProperty(first, 'connections', { value: { busy: 1, idle: 0 } })
  const second = poolOf('b')
  assert.notEqual(second, first)
  poolOf('c')
  assert.deepEqual([poolOf('a') === first, poolOf('b') === second], [true, false])
  upstreams.destroy()
})
