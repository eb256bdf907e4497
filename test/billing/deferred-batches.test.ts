import assert from 'node:assert/strict'
import { changeDatabase, readDatabase } from '../support/read-database.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { type BilledReply, startBillingBench } from './bench-of-one.ts'
import { startShownUpstream } from './shown-upstream.ts'

/** Upstream uses this clock; the gateway polls by its own. */
let workMs = 0
const bench = await startBillingBench({ settings: { budgetWaitMs: 0 } }, { clock: () => workMs })
closeAfter(bench)

const DAY_MS = 86_400_000
/** The list price for a million tokens. */
const HAIKU = { input: 0.1, output: 0.5 }
const admin = (path: string) => bench.gateway.manage('GET', path)
const stateOf = async (id: string) => await admin(`/gateway/v1/requests/${id}`)
const capped = (monthly_budget_usd = 1) => bench.gateway.createKey('capped', { monthly_budget_usd })

const QUESTION = [{ role: 'user', content: 'Write a word' }]
const entry = (customId: string, model = 'claude-haiku-5-5', more: object = {}) => ({
  custom_id: customId,
  params: { model, max_tokens: 64, messages: QUESTION, ...more },
})
const makeMessages = (requests: readonly object[], key: string) =>
  bench.call('/v1/messages/batches', { requests }, { key })
const objectIn = (reply: BilledReply) => JSON.parse(reply.body.toString()) as Record<string, string>

const line = (customId: string, model = 'gpt-6-luna', more: object = {}) =>
  JSON.stringify({
    ...{ custom_id: customId, method: 'POST', url: '/v1/chat/completions' },
    body: { model, max_completion_tokens: 64, messages: QUESTION, ...more },
  })

async function upload(key: string, lines: readonly string[]): Promise<string> {
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([lines.join('\n')], { type: 'application/jsonl' }), 'batch.jsonl')
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${bench.gateway.url}/v1/files`, { method: 'POST', headers, body: form })
  assert.equal(response.status, 200)
  return ((await response.json()) as { id: string }).id
}

const makeChat = (fileId: string, key: string) =>
  bench.call(
    '/v1/batches',
    { input_file_id: fileId, endpoint: '/v1/chat/completions', completion_window: '24h' },
    { key, surface: 'chat' },
  )

const hurryPoller = () =>
  changeDatabase(bench.gateway, 'UPDATE hold SET due_at_ms = 0 WHERE due_at_ms IS NOT NULL')

async function settledByPoller(requestId: string) {
  await hurryPoller()
  await until('it is settled', async () => (await stateOf(requestId))['state'] === 'settled')
}

async function everyObjectPolled() {
  const { key } = await capped()
  await hurryPoller()
  // A new object wakes the poller, which rarely runs while no call waits for its object.
  const waking = await makeMessages([entry('wakes')], key)
  const due = 'SELECT object_id FROM hold WHERE due_at_ms = 0'
  await until('no deferred object is due', async () => (await readDatabase(bench.gateway, due)).length === 0)
  workMs += DAY_MS
  await bench.call(`/v1/messages/batches/${objectIn(waking)['id']}`, undefined, { method: 'GET', key })
  assert.equal((await stateOf(waking.requestId))['state'], 'settled')
}

async function childrenOf(keyId: string, requestId: string) {
  const path = `/v1/keys/${keyId}/requests?parent_id=${requestId}`
  const { data } = (await admin(path)) as { data: Record<string, unknown>[] }
  return data.sort((a, b) => (String(a['model']) < String(b['model']) ? -1 : 1))
}

const sum = (calls: readonly Record<string, unknown>[], name: string) =>
  calls.reduce((total, call) => total + Math.round(Number(call[name]) * 1e9), 0) / 1e9

test('a Messages batch holds, polls, and settles at half price with one record per model', async () => {
  const { id: keyId, key } = await capped()
  const reply = await makeMessages(
    [entry('a'), entry('b'), entry('c', 'claude-opus-5'), entry('d', 'no-such-model')],
    key,
  )
  // A model without a price cannot be held against a cap.
  assert.equal(reply.status, 400)
  assert.equal(
    (JSON.parse(reply.body.toString()) as { error: { code: string } }).error.code,
    'model_not_priced',
  )

  const made = await makeMessages([entry('a'), entry('b'), entry('c', 'claude-opus-5')], key)
  assert.equal(made.status, 200)
  assert.equal(made.header('x-svc-cost-usd'), '0')
  const open = await stateOf(made.requestId)
  assert.deepEqual([open['state'], open['object_id']], ['deferred', objectIn(made)['id']])
  assert.deepEqual([open['children'], open['children_cost_usd']], [0, 0])
  const held = Number((await admin(`/v1/keys/${keyId}`))['month_held_usd'])

  workMs += DAY_MS
  await settledByPoller(made.requestId)
  const parent = await stateOf(made.requestId)
  const children = await childrenOf(keyId, made.requestId)
  assert.equal(parent['cost_usd'], 0)
  assert.deepEqual([parent['children'], parent['children_cost_usd']], [2, sum(children, 'cost_usd')])
  assert.equal('children' in (children[0] ?? {}), false)
  assert.deepEqual(
    children.map(({ model, state, overrun }) => [model, state, overrun]),
    [
      ['claude-haiku-5-5', 'settled', false],
      ['claude-opus-5', 'settled', false],
    ],
  )
  const key1 = await admin(`/v1/keys/${keyId}`)
  assert.equal(key1['month_spend_usd'], sum(children, 'cost_usd'))
  assert.equal(key1['month_held_usd'], 0)
  assert.ok(held >= sum(children, 'cost_usd'), `${held} is held for ${sum(children, 'cost_usd')}`)

  // A batch costs half the price of the usage that the simulator reports.
  const [haiku = {}] = children
  const { input_tokens = 0, output_tokens = 0 } = haiku['usage'] as Record<string, number>
  const listed = (input_tokens * HAIKU.input + output_tokens * HAIKU.output) / 1e6
  assert.ok(
    Math.abs(Number(haiku['list_cost_usd']) - listed / 2) < 1e-9,
    `${haiku['list_cost_usd']} of ${listed}`,
  )
  await bench.assertBalanced()
})

async function requestsByModel(key: string): Promise<(readonly [model: string, requests: number])[]> {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${bench.gateway.url}/v1/usage?group_by=model`, { headers })
  const { data } = (await response.json()) as { data: { model: string; requests: number }[] }
  return data.filter(({ requests }) => requests > 0).map(({ model, requests }) => [model, requests])
}

test('usage counts the requests of a batch, not its records', async () => {
  const { key } = await capped()
  const made = await makeMessages([entry('a'), entry('b'), entry('c')], key)
  workMs += DAY_MS
  await settledByPoller(made.requestId)
  assert.deepEqual(await requestsByModel(key), [['claude-haiku-5-5', 3]])
})

test('reading an ended batch or its results settles it', async () => {
  const looks: readonly ((id: string, key: string) => Promise<BilledReply>)[] = [
    (id, key) => bench.call(`/v1/messages/batches/${id}`, undefined, { method: 'GET', key }),
    (id, key) => bench.call(`/v1/messages/batches/${id}/results`, undefined, { method: 'GET', key }),
  ]
  for (const look of looks) {
    const { id: keyId, key } = await capped()
    const made = await makeMessages([entry('a')], key)
    const id = String(objectIn(made)['id'])
    await look(id, key)
    assert.equal((await stateOf(made.requestId))['state'], 'deferred')
    workMs += DAY_MS
    assert.equal((await look(id, key)).status, 200)
    // A reply that is not JSON is streamed, so the client has it before the gateway has read it.
    await until('it is settled', async () => (await stateOf(made.requestId))['state'] === 'settled')
    const before = await admin(`/v1/keys/${keyId}`)
    assert.ok(Number(before['month_spend_usd']) > 0)
    // An object settles once, however often it is read.
    await look(id, key)
    await everyObjectPolled()
    assert.equal((await admin(`/v1/keys/${keyId}`))['month_spend_usd'], before['month_spend_usd'])
    assert.equal((await childrenOf(keyId, made.requestId)).length, 1)
  }
  await bench.assertBalanced()
})

test('a cancelled batch costs its finished requests', async () => {
  const { key } = await capped(100)
  const made = await makeMessages(
    Array.from({ length: 100 }, (_, n) => entry(`r${n}`)),
    key,
  )
  const id = objectIn(made)['id']
  workMs += 4_000
  await bench.call(`/v1/messages/batches/${id}/cancel`, undefined, { key })
  workMs += DAY_MS
  await settledByPoller(made.requestId)
  const [[, requests = 0] = []] = await requestsByModel(key)
  assert.ok(requests > 0 && requests < 100, String(requests))
  await bench.assertBalanced()
})

test('a Chat batch holds the bound found at the upload and is billed by its lines', async () => {
  const { id: keyId, key } = await capped()
  const fileId = await upload(key, [line('a'), line('b'), line('c', 'gpt-6-sol')])
  const made = await makeChat(fileId, key)
  assert.equal(made.status, 200, made.body.toString())
  const open = await stateOf(made.requestId)
  assert.deepEqual([open['state'], open['object_id']], ['deferred', objectIn(made)['id']])
  assert.deepEqual([open['children'], open['children_cost_usd']], [0, 0])
  const held = Number((await admin(`/v1/keys/${keyId}`))['month_held_usd'])
  workMs += DAY_MS
  await settledByPoller(made.requestId)
  const children = await childrenOf(keyId, made.requestId)
  assert.deepEqual(
    children.map(({ model }) => model),
    ['gpt-6-luna', 'gpt-6-sol'],
  )
  const spent = Number((await admin(`/v1/keys/${keyId}`))['month_spend_usd'])
  assert.ok(spent > 0 && spent === sum(children, 'cost_usd') && spent <= held, `${spent} of ${held}`)
  await bench.assertBalanced()
})

test('a limited key cannot create a batch from a file that it did not upload here', async () => {
  const { key } = await capped()
  const { key: other } = await capped()
  const open = (await bench.gateway.createKey('without limits')).key
  const fileId = await upload(other, [line('a')])
  const { key: listed } = await bench.gateway.createKey('listed', { allowed_models: ['gpt-6-luna'] })
  for (const limited of [key, listed]) {
    const refused = await makeChat(fileId, limited)
    assert.equal(refused.status, 404)
    const { error } = JSON.parse(refused.body.toString()) as { error: { code: string; param: string } }
    assert.deepEqual([error.code, error.param], ['batch_file_unknown', 'input_file_id'])
  }
  // A key without limits needs no hold, and its batch is billed like any other.
  const made = await makeChat(fileId, open)
  assert.equal(made.status, 200)
  workMs += DAY_MS
  await settledByPoller(made.requestId)
})

test('a batch whose body can be read in two ways is refused to every key', async () => {
  const twice = '"input_file_id":"file-1","input_file_id":"file-2"'
  assert.equal((await bench.call('/v1/batches', `{${twice}}`, { surface: 'chat' })).status, 400)
  const line = '{"params":{"model":"claude-haiku-5-5","model":"claude-opus-5"}}'
  assert.equal((await bench.call('/v1/messages/batches', `{"requests":[${line}]}`)).status, 400)
})

/** A batch that had ended when it was created, with one line of results. */
async function endedBatch(result: object, changed = (line: string) => line) {
  const upstream = await startShownUpstream()
  const quick = await startBillingBench(upstream.urls)
  const ended = { id: 'msgbatch_1', processing_status: 'ended' }
  const path = `/v1/messages/batches/${ended.id}`
  upstream.shows('POST /v1/messages/batches', ended)
  upstream.shows(`GET ${path}`, ended)
  upstream.showsText(`GET ${path}/results`, changed(JSON.stringify({ custom_id: 'a', result })))
  const { requestId } = await quick.call('/v1/messages/batches', { requests: [entry('a')] })
  const closing = new AsyncDisposableStack()
  closing.use(upstream)
  closing.use(quick)
  const look = () => quick.call(path, undefined, { method: 'GET' })
  return { quick, requestId, look, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}
const MESSAGE = { model: 'claude-haiku-5-5', usage: { input_tokens: 1000, output_tokens: 1000 } }
const ENDED_USD = (1000 * (HAIKU.input + HAIKU.output)) / 2e6

test('a batch that has already ended when created is billed by its results', async () => {
  await using batch = await endedBatch({ type: 'succeeded', message: MESSAGE })
  await changeDatabase(batch.quick.gateway, 'UPDATE hold SET due_at_ms = 0 WHERE due_at_ms IS NOT NULL')
  const path = `/gateway/v1/requests/${batch.requestId}`
  const state = async () => (await batch.quick.gateway.manage('GET', path))['state']
  await until('it is settled', async () => (await state()) === 'settled')
  assert.equal((await batch.quick.balance())['balance_usd'], -ENDED_USD)
  await batch.quick.assertBalanced()
})

test('a tool input nested deeper than the stack does not make the results unreadable', async () => {
  const content = [{ type: 'tool_use', input: { a: 'nested' } }]
  const nested = '['.repeat(8_000) + ']'.repeat(8_000)
  const result = { type: 'succeeded', message: { ...MESSAGE, content } }
  await using batch = await endedBatch(result, (line) => line.replace('"nested"', nested))
  await batch.look()
  assert.equal((await batch.quick.record(batch.requestId))['state'], 'settled')
  assert.equal((await batch.quick.balance())['balance_usd'], -ENDED_USD)
})

test('a succeeded line without usage is estimated from its text', async () => {
  const content = [{ type: 'text', text: 'x'.repeat(4_000) }]
  await using batch = await endedBatch({ type: 'succeeded', message: { model: MESSAGE.model, content } })
  await batch.look()
  const { state, children_cost_usd } = await batch.quick.record(batch.requestId)
  assert.deepEqual([state, children_cost_usd], ['settled', (1_000 * HAIKU.output) / 2e6])
  const usage = await batch.quick.gateway.manage('GET', '/v1/usage')
  assert.equal((usage['total'] as Record<string, number>)['estimated_requests'], 1)
  await batch.quick.assertBalanced()
})

test('unreadable results cost nothing, and are given up after 30 days', async () => {
  const upstream = await startShownUpstream()
  const odd = await startBillingBench(upstream.urls)
  try {
    const batch = { id: 'batch_1', status: 'completed', output_file_id: '../../elsewhere' }
    upstream.shows('POST /v1/batches', { ...batch, status: 'validating', output_file_id: null })
    upstream.shows('GET /v1/batches/batch_1', batch)
    const body = { input_file_id: 'file-1', endpoint: '/v1/chat/completions', completion_window: '24h' }
    const { requestId } = await odd.call('/v1/batches', body, { surface: 'chat' })
    const looked = async () => {
      await odd.call('/v1/batches/batch_1', undefined, { method: 'GET', surface: 'chat' })
      return (await odd.gateway.manage('GET', `/gateway/v1/requests/${requestId}`))['state']
    }
    assert.equal(await looked(), 'deferred')
    await changeDatabase(odd.gateway, `UPDATE hold SET started_at_ms = started_at_ms - ${31 * DAY_MS}`)
    assert.equal(await looked(), 'interrupted')
  } finally {
    await odd.close()
    await upstream.close()
  }
})
