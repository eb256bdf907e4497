import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { askOf, assertRefused } from './own-client.ts'

const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({ chatUrl: `${upstream.url}/v1`, chatKey: 'pc' })
after(async () => {
  await gateway.close()
  await upstream.close()
})
const ask = askOf(gateway)

test('a sorted list goes on behind its last key, in its own order only', async () => {
  for (const name of ['delta', 'Alpha', 'charlie', 'Bravo']) await gateway.createKey(name)
  const seen: string[] = []
  let next = ''
  do {
    const { status, body } = await ask(
      'GET',
      `/v1/keys?sort=name&limit=2${next === '' ? '' : `&after=${next}`}`,
    )
    assert.equal(status, 200)
    seen.push(...(body['data'] as { name: string }[]).map(({ name }) => name))
    if (next === '') {
      const other = await ask('GET', `/v1/keys?sort=spent&after=${body['next']}`)
      assertRefused(other, 400, { code: 'bad_request', param: 'after' })
      assertRefused(await ask('GET', `/v1/keys?after=${body['next']}`), 400, {
        code: 'bad_request',
        param: 'after',
      })
    }
    next = String(body['next'] ?? '')
  } while (next !== '')
  assert.deepEqual(seen, ['Alpha', 'Bravo', 'charlie', 'delta', 'test'])
  for (const sort of ['created', 'spent', 'last_used', 'attention']) {
    assert.equal(((await ask('GET', `/v1/keys?sort=${sort}`)).body['data'] as unknown[]).length, 5, sort)
  }
})

test('a place that we did not make is refused', async () => {
  const made = (parts: unknown) => Buffer.from(JSON.stringify(parts)).toString('base64url')
  const id = 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV'
  const places = [
    'x',
    made([]),
    made({}),
    made(['spent', 1, id]),
    made(['spent', '1e3', id]),
    made(['spent', '1', 'x']),
  ]
  for (const place of places) {
    const refused = await ask('GET', `/v1/keys?sort=spent&after=${place}`)
    assertRefused(refused, 400, { code: 'bad_request', param: 'after' })
  }
  assertRefused(await ask('GET', '/v1/keys?sort=size'), 400, { code: 'bad_request', param: 'sort' })
})

test('one key says what used it last, also where that was refused', async () => {
  const { id, key } = await gateway.createKey('used', { allowed_models: ['gpt-6-luna'] })
  const by = async () =>
    (await ask('GET', `/v1/keys/${id}?expand=last_used_by`)).body['last_used_by'] as Record<
      string,
      unknown
    > | null
  assert.equal(await by(), null)
  const use = async (agent: string, path: string, body?: unknown) => {
    const response = await fetch(gateway.url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${key}`, 'user-agent': agent },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    await response.text()
    return response.headers.get('x-svc-request-id')
  }
  const first = await use('python-openai/7', '/v1/models')
  assert.deepEqual([(await by())?.['request_id'], (await by())?.['user_agent']], [first, 'python-openai/7'])
  const refused = await use('curl/8', '/v1/chat/completions', { model: 'gpt-6-astra', messages: [] })
  const last = await by()
  assert.deepEqual(
    [last?.['request_id'], last?.['user_agent'], last?.['address']],
    [refused, 'curl/8', '127.0.0.1'],
  )
})
