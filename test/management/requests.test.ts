import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { clockAt } from '../limits/clock-at.ts'
import { closedPort } from '../support/closed-port.ts'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { type Answer, askOf, assertRefused, assertUnstored, NO_SUCH_KEY } from './own-client.ts'
import { readCsv } from './read-csv.ts'

const clock = clockAt('2026-11-28T00:00:00Z')
const simulator = await startSimulator({ chatKey: 'pc' })
const nobody = `http://127.0.0.1:${await closedPort()}`
const gateway = await startGateway({ chatUrl: simulator.chatUrl, chatKey: 'pc', messagesUrl: nobody, clock })
closeAfter(gateway, simulator)
const ask = askOf(gateway)
const alpha = await gateway.createKey('alpha')
const beta = await gateway.createKey('beta', { log_requests: true })

const named = new Map<string, string>()

async function call(name: string, key: string, at: string, model: string, simulate = '', stream = false) {
  clock.set(at)
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'x-simulator': simulate },
    body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  await response.arrayBuffer()
  named.set(String(response.headers.get('x-svc-request-id')), name)
}

const DEAR = 'usage={"prompt_tokens":1000000,"completion_tokens":0,"total_tokens":1000000}'
const CHEAP = 'usage={"prompt_tokens":1,"completion_tokens":0,"total_tokens":1}'
await call('first', alpha.key, '2026-11-28T10:00:00Z', 'gpt-6-luna', DEAR)
await call('last of the day', alpha.key, '2026-11-28T23:59:59.999Z', 'gpt-4o-mini', CHEAP)
await call('midnight', beta.key, '2026-11-29T00:00:00Z', 'gpt-6-luna', CHEAP)
await call('refused', alpha.key, '2026-11-29T12:00:00Z', 'gpt-6-luna', 'status=429')
await call('unknown model', beta.key, '2026-11-29T12:00:00Z', 'no-such-model')
await call('streamed', beta.key, '2026-11-30T08:00:00Z', 'gpt-6-luna', '', true)
clock.set('2026-12-01T00:00:00Z')

const EVERYTHING = ['streamed', 'unknown model', 'refused', 'midnight', 'last of the day', 'first']

const rowsOf = ({ status, body }: Answer) => {
  assert.equal(status, 200, JSON.stringify(body))
  return body['data'] as readonly Record<string, unknown>[]
}
const namesOf = (answer: Answer) => rowsOf(answer).map(({ id }) => named.get(String(id)) ?? String(id))

const account = (query = '') => ask('GET', `/gateway/v1/requests${query}`)
const ofKey = (id: string, query = '') => ask('GET', `/v1/keys/${id}/requests${query}`)

test('GET /gateway/v1/requests 200: all calls of the account, newest first, each as shown alone', async () => {
  const answer = await account()
  assertUnstored(answer)
  const { data: _, ...rest } = answer.body
  assert.deepEqual(rest, { object: 'list', has_more: false, next: null })
  assert.deepEqual(namesOf(answer), EVERYTHING)
  for (const row of rowsOf(answer)) {
    assert.deepEqual(row, (await ask('GET', `/gateway/v1/requests/${row['id']}`)).body)
  }
})

test('GET /v1/keys/{id}/requests 200: the calls of one key, whatever its log_requests is', async () => {
  assertUnstored(await ofKey(alpha.id))
  assert.deepEqual(namesOf(await ofKey(alpha.id)), ['refused', 'last of the day', 'first'])
  assert.deepEqual(namesOf(await ofKey(beta.id)), ['streamed', 'unknown model', 'midnight'])
  const unused = await gateway.createKey('unused')
  assert.deepEqual((await ofKey(unused.id)).body, { object: 'list', data: [], has_more: false, next: null })
})

test('GET /v1/keys/{id}/requests 404: unknown key, in any format', async () => {
  for (const query of ['', '?format=csv', '?format=ndjson'])
    assertRefused(await ofKey(NO_SUCH_KEY, query), 404, { code: 'not_found' })
})

const NOVEMBER = 'start=2026-11-01'
const filters: readonly [what: string, query: string, names: readonly string[]][] = [
  ['from a day on', 'start=2026-11-30', ['streamed']],
  ['until a day, all of it', `${NOVEMBER}&end=2026-11-28`, ['last of the day', 'first']],
  ['one day', 'start=2026-11-29&end=2026-11-29', ['unknown model', 'refused', 'midnight']],
  ['from an instant on', 'start=2026-11-29T12:00:00Z', ['streamed', 'unknown model', 'refused']],
  ['before an instant', `${NOVEMBER}&end=2026-11-29T00:00:00.000Z`, ['last of the day', 'first']],
  ['a day and an instant', 'start=2026-11-28&end=2026-11-28T12:00:00Z', ['first']],
  ['an instant and its day', 'start=2026-11-28T12:00:00Z&end=2026-11-28', ['last of the day']],
  ['a model', 'model=gpt-4o-mini', ['last of the day']],
  ['a model that was requested but not served', 'model=no-such-model', ['unknown model']],
  ['a status', 'status=429', ['refused']],
  ['a state', `${NOVEMBER}&state=settled`, EVERYTHING],
  ['a cost of at least', 'min_cost_usd=0.01', ['first']],
  ['a flag', 'flag=streamed', ['streamed']],
  ['several at once', `${NOVEMBER}&model=gpt-6-luna&status=200&end=2026-11-29`, ['midnight', 'first']],
]
test('GET /gateway/v1/requests and /v1/keys/{id}/requests 200: filters', async () => {
  const own = ['refused', 'last of the day', 'first']
  for (const [what, query, names] of filters) {
    assert.deepEqual(namesOf(await account(`?${query}`)), names, what)
    const ofAlpha = names.filter((name) => own.includes(name))
    assert.deepEqual(namesOf(await ofKey(alpha.id, `?${query}`)), ofAlpha, what)
  }
})

test('GET /gateway/v1/requests 200: an API key sees only its own calls, in every format', async () => {
  assert.deepEqual(namesOf(await ask('GET', '/gateway/v1/requests', { key: beta.key })), [
    'streamed',
    'unknown model',
    'midnight',
  ])
  const csv = await fetch(`${gateway.url}/gateway/v1/requests?format=csv`, {
    headers: { authorization: `Bearer ${alpha.key}` },
  })
  const [head = [], ...rows] = readCsv(await csv.text())
  const at = head.indexOf('key_name')
  assert.deepEqual([rows.length, new Set(rows.map((row) => row[at]))], [3, new Set(['alpha'])])
})
