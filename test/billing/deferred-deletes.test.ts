import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { readOpenMetrics } from '../support/open-metrics.ts'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'
import { startShownUpstream } from './shown-upstream.ts'

const upstream = await startShownUpstream()
const { shows, wasAsked } = upstream
let steppedMs = 0
const clock = { nowMs: () => Date.now() + steppedMs, monotonicMs: () => performance.now() + steppedMs }
const bench = await startBillingBench({ ...upstream.urls, clock })
after(async () => {
  await bench.close()
  await upstream.close()
})

const surface = 'chat'
const stateOf = async (id: string) =>
  (await bench.gateway.manage('GET', `/gateway/v1/requests/${id}`))['state']
let made = 0

/** A response that works in the background. */
async function makeResponse() {
  const id = `resp_${++made}`
  shows('POST /v1/responses', { id, object: 'response', status: 'queued', usage: null })
  const body = { model: 'gpt-6-luna', input: 'Hello', max_output_tokens: 64, background: true }
  const { requestId } = await bench.call('/v1/responses', body, { surface })
  return { id, requestId }
}

const usage = { input_tokens: 10, output_tokens: 10, total_tokens: 20 }
const complete = (id: string) =>
  shows(`GET /v1/responses/${id}`, { id, status: 'completed', model: 'gpt-6-luna', usage })

test('what is not paid is not deleted while upstream cannot say what it cost', async () => {
  const id = 'msgbatch_1'
  shows('POST /v1/messages/batches', { id, processing_status: 'in_progress' })
  const entry = { model: 'claude-haiku-5-5', max_tokens: 64, messages: [{ role: 'user', content: 'Hello' }] }
  const { requestId } = await bench.call('/v1/messages/batches', {
    requests: [{ custom_id: 'a', params: entry }],
  })
  const path = `/v1/messages/batches/${id}`
  shows(`GET ${path}`, { id, processing_status: 'ended' })
  shows(`GET ${path}/results`, {}, 500)
  shows(`DELETE ${path}`, { id, deleted: true })
  const refused = await bench.call(path, undefined, { method: 'DELETE' })
  assert.equal(refused.status, 503)
  assert.equal(refused.header('retry-after'), '1')
  assert.equal(await stateOf(refused.requestId), 'refused')
  assert.equal(wasAsked(`DELETE ${path}`), false)
  assert.equal(await stateOf(requestId), 'deferred')

  const message = { model: 'claude-haiku-5-5', usage: { input_tokens: 10, output_tokens: 10 } }
  shows(`GET ${path}/results`, { custom_id: 'a', result: { type: 'succeeded', message } })
  const gone = await bench.call(path, undefined, { method: 'DELETE' })
  assert.equal(gone.status, 200)
  assert.equal(await stateOf(requestId), 'settled')
})

test('a response is paid before it is deleted, however its path is spelled', async () => {
  for (const spell of [
    (id: string) => id.replace('_', '%5F'),
    (id: string) => id.replace('_', '%255f'),
    (id: string) => `${id}/`,
    (id: string) => `${id};a=b`,
  ]) {
    const { id, requestId } = await makeResponse()
    complete(id)
    await bench.call(`/v1/responses/${spell(id)}`, undefined, { method: 'DELETE', surface })
    assert.equal(await stateOf(requestId), 'settled', spell(id))
    assert.ok(Number((await bench.record(requestId))['cost_usd']) > 0)
  }
})

/** A response in the background whose stream has named it, and ends with `last` where it is told to. */
async function streamResponse(id: string, last: Parameters<typeof upstream.streams>[3] = null) {
  const { promise: rest, resolve } = Promise.withResolvers<void>()
  const response = { id, object: 'response', status: 'in_progress', model: 'gpt-6-luna', usage: null }
  upstream.streams('POST /v1/responses', { type: 'response.created', response }, rest, last)
  const body = { model: 'gpt-6-luna', input: 'Hello', max_output_tokens: 64, background: true, stream: true }
  const reply = await fetch(`${bench.gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bench.gateway.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const reader = reply.body?.getReader()
  assert.match(String(Buffer.from((await reader?.read())?.value ?? '')), new RegExp(id))
  const end = async () => {
    resolve()
    while (!(await reader?.read())?.done);
  }
  return { requestId: reply.headers.get('x-svc-request-id') ?? '', end }
}

test('a response is paid before it is deleted while its stream goes on', async () => {
  const id = 'resp_streamed'
  const { requestId, end } = await streamResponse(id)
  complete(id)
  shows(`DELETE /v1/responses/${id}`, { id, deleted: true })
  const gone = await bench.call(`/v1/responses/${id}`, undefined, { method: 'DELETE', surface })
  assert.equal(gone.status, 200)
  assert.equal(await stateOf(requestId), 'settled')
  assert.ok(Number((await bench.record(requestId))['cost_usd']) > 0)
  await end()
  await bench.assertBooksBalance()
})

test('a response that is paid before its stream has told its cost is counted once', async () => {
  const cost = async () => {
    const headers = { authorization: `Bearer ${bench.gateway.adminKey}` }
    const shown = await fetch(`${bench.gateway.url}/metrics`, { headers })
    const { samples = [] } = readOpenMetrics(await shown.text()).get('tollgate_cost_usd') ?? {}
    return samples.find(({ labels }) => labels['model'] === 'gpt-6-luna')?.value ?? 0
  }
  const id = 'resp_seen'
  const response = { id, object: 'response', status: 'completed', model: 'gpt-6-luna', usage }
  const { requestId, end } = await streamResponse(id, { type: 'response.completed', response })
  const before = await cost()
  complete(id)
  await bench.call(`/v1/responses/${id}`, undefined, { method: 'GET', surface })
  assert.equal(await stateOf(requestId), 'settled')
  const paid = await cost()
  assert.ok(paid > before)
  await end()
  assert.equal(await cost(), paid)
  await bench.assertBooksBalance()
})

test('a response that upstream shows only when it is done is not given up while its stream goes on', async () => {
  const id = 'resp_unshown'
  const response = { id, object: 'response', status: 'completed', model: 'gpt-6-luna', usage }
  const { requestId, end } = await streamResponse(id, { type: 'response.completed', response })
  for (const ms of [60_000, 15_000, 15_000]) {
    const other = await makeResponse()
    complete(other.id)
    steppedMs += ms
    await until('what is due is asked for', async () => (await stateOf(other.requestId)) === 'settled')
  }
  assert.equal(await stateOf(requestId), 'deferred')
  await end()
  assert.equal(await stateOf(requestId), 'settled')
  await bench.assertBooksBalance()
})

test('a path that names no object cancels nothing', async () => {
  const { id, requestId } = await makeResponse()
  shows(`GET /v1/responses/${id}`, { id, status: 'in_progress', usage: null })
  for (const path of ['/v1/responses', '/v1/responses/', '/v1'])
    await bench.call(path, undefined, { method: 'DELETE', surface })
  assert.equal(wasAsked(`POST /v1/responses/${id}/cancel`), false)
  complete(id)
  await bench.call(`/v1/responses/${id}`, undefined, { method: 'GET', surface })
  assert.equal(await stateOf(requestId), 'settled')
})

test('only the file with the results of a batch waits for them', async () => {
  const batch = { id: 'batch_1', status: 'validating', output_file_id: null as string | null }
  shows('POST /v1/batches', batch)
  const body = { input_file_id: 'file-in', endpoint: '/v1/chat/completions', completion_window: '24h' }
  const { requestId } = await bench.call('/v1/batches', body, { surface })
  const statusOfDelete = async (id: string, purpose: string) => {
    shows(`GET /v1/files/${id}`, { id, purpose })
    shows(`DELETE /v1/files/${id}`, { id, deleted: true })
    return (await bench.call(`/v1/files/${id}`, undefined, { method: 'DELETE', surface })).status
  }
  // While the batch cannot be read, which names the file of its results, a file can still tell another purpose.
  shows('GET /v1/batches/batch_1', {}, 500)
  assert.equal(await statusOfDelete('file-in', 'batch'), 200)
  assert.equal(await statusOfDelete('file-old', 'batch_output'), 503)
  shows('GET /v1/batches/batch_1', { ...batch, status: 'completed', output_file_id: 'file-out' })
  shows('GET /v1/files/file-out/content', {}, 500)
  assert.equal(await statusOfDelete('file-old', 'batch_output'), 200)
  assert.equal(await statusOfDelete('file-out', 'batch_output'), 503)
  const answer = {
    model: 'gpt-6-luna',
    usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
  }
  shows('GET /v1/files/file-out/content', { custom_id: 'a', response: { status_code: 200, body: answer } })
  const { status } = await bench.call('/v1/files/file-out', undefined, { method: 'DELETE', surface })
  assert.equal(status, 200)
  assert.equal(await stateOf(requestId), 'settled')
  await bench.assertBooksBalance()
})
