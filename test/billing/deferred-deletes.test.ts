import assert from 'node:assert/strict'
import { readOpenMetrics } from '../support/open-metrics.ts'
import { changeDatabase } from '../support/read-database.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { type BilledReply, startBillingBench } from './bench-of-one.ts'
import { startShownUpstream } from './shown-upstream.ts'

const upstream = await startShownUpstream()
const { shows, wasAsked } = upstream
const bench = await startBillingBench(upstream.urls)
closeAfter(bench, upstream)

const surface = 'chat'
const seen = (id: string) => bench.gateway.manage('GET', `/gateway/v1/requests/${id}`)
const stateOf = async (id: string) => (await seen(id))['state']
const remove = (path: string, options: { surface?: 'chat' } = { surface }) =>
  bench.call(path, undefined, { method: 'DELETE', ...options })
const codeOf = ({ status, body }: BilledReply) =>
  `${status} ${status === 200 ? '' : JSON.parse(body.toString()).error.code}`
const isState = (state: string, requestId: string) =>
  until(`it is ${state}`, async () => (await stateOf(requestId)) === state)
const hurryPoller = () =>
  changeDatabase(bench.gateway, 'UPDATE hold SET due_at_ms = 0 WHERE due_at_ms IS NOT NULL')
let made = 0

async function makeResponse(id = `resp_${++made}`) {
  shows('POST /v1/responses', { id, object: 'response', status: 'queued', usage: null })
  shows(`GET /v1/responses/${id}`, { id, status: 'in_progress', usage: null })
  shows(`DELETE /v1/responses/${id}`, { id, deleted: true })
  const body = { model: 'gpt-6-luna', input: 'Hello', max_output_tokens: 64, background: true }
  const { requestId } = await bench.call('/v1/responses', body, { surface })
  return { id, requestId }
}

const usage = { input_tokens: 10, output_tokens: 10, total_tokens: 20 }
const complete = (id: string) =>
  shows(`GET /v1/responses/${id}`, { id, status: 'completed', model: 'gpt-6-luna', usage })

async function makeBatch(id: string) {
  const path = `/v1/messages/batches/${id}`
  shows('POST /v1/messages/batches', { id, processing_status: 'in_progress' })
  shows(`GET ${path}`, { id, processing_status: 'in_progress' })
  shows(`DELETE ${path}`, { id, deleted: true })
  const entry = { model: 'claude-haiku-5-5', max_tokens: 64, messages: [{ role: 'user', content: 'Hello' }] }
  const body = { requests: [{ custom_id: 'a', params: entry }] }
  const { requestId } = await bench.call('/v1/messages/batches', body)
  return { path, requestId, ended: () => shows(`GET ${path}`, { id, processing_status: 'ended' }) }
}

test('DELETE of an unsettled object is refused, and moves the object to the front of its polls', async () => {
  const response = await makeResponse()
  const path = `/v1/responses/${response.id}`
  const refused = await remove(path)
  assert.equal(codeOf(refused), '409 not_settled')
  assert.equal(refused.header('retry-after'), '1')
  assert.equal(refused.header('x-should-retry'), undefined)
  assert.equal(await stateOf(refused.requestId), 'refused')
  assert.equal(wasAsked(`DELETE ${path}`), false)
  complete(response.id)
  await remove(path)
  await isState('settled', response.requestId)
  assert.equal(codeOf(await remove(path)), '200 ')
  assert.ok(Number((await bench.record(response.requestId))['cost_usd']) > 0)

  const batch = await makeBatch('msgbatch_1')
  batch.ended()
  shows(`GET ${batch.path}/results`, {}, 500)
  const kept = await remove(batch.path, {})
  assert.equal(codeOf(kept), '409 not_settled')
  assert.equal(JSON.parse(kept.body.toString()).error.type, 'conflict_error')
  const message = { model: 'claude-haiku-5-5', usage: { input_tokens: 10, output_tokens: 10 } }
  shows(`GET ${batch.path}/results`, { custom_id: 'a', result: { type: 'succeeded', message } })
  // The first poll may have met the error, and the next is 30 s away: the refused DELETE brings it forward.
  await until('it is settled', async () => codeOf(await remove(batch.path, {})) === '200 ')
  assert.equal(await stateOf(batch.requestId), 'settled')
})

test('DELETE by another spelling of the path is refused too', async () => {
  const { id, requestId } = await makeResponse()
  const ids = [id.replace('_', '%5F'), id.replace('_', '%255f')]
  for (const suffix of [';a=b', '.json', '%20', '%3f', '+', '%2f', '%00']) ids.push(id + suffix)
  const collections = ['/v1/Responses', '/responses', '/v1/v1/responses', '/v1%2fresponses']
  const expected = new Map([
    ...ids.map((spelling) => [`/v1/responses/${spelling}`, '409 not_settled'] as const),
    ...[`/v1/responses/${id}/`, ...collections.map((collection) => `${collection}/${id}`)].map(
      (path) => [path, '404 endpoint_not_metered'] as const,
    ),
  ])
  const codes = new Map<string, string>()
  for (const path of expected.keys()) codes.set(path, codeOf(await remove(path)))
  assert.deepEqual(codes, expected)
  for (const path of ['/v1/responses', '/v1/responses/', '/v1']) await remove(path)
  assert.equal(await stateOf(requestId), 'deferred')
  complete(id)
  await isState('settled', requestId)
})

type Last = Parameters<typeof upstream.streams>[3]

/** A stream that has named its response; calling `end` ends it with `last`. */
async function openStream(id: string, line: string, last: Last = null, body?: object) {
  const { promise: rest, resolve } = Promise.withResolvers<void>()
  const response = { id, object: 'response', status: 'in_progress', model: 'gpt-6-luna', usage: null }
  upstream.streams(line, { type: 'response.created', response }, rest, last)
  const [method = '', path] = line.split(' ')
  const leaving = new AbortController()
  const reply = await fetch(`${bench.gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${bench.gateway.apiKey}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
    signal: leaving.signal,
  })
  const reader = reply.body?.getReader()
  assert.match(String(Buffer.from((await reader?.read())?.value ?? '')), new RegExp(id))
  const end = async () => {
    resolve()
    while (!(await reader?.read())?.done);
  }
  return { requestId: reply.headers.get('x-svc-request-id') ?? '', end, leave: () => leaving.abort() }
}

async function streamResponse(id: string, last: Last = null, background = false) {
  shows(`DELETE /v1/responses/${id}`, { id, deleted: true })
  const body = { model: 'gpt-6-luna', input: 'Hello', max_output_tokens: 64, background, stream: true }
  const stream = await openStream(id, 'POST /v1/responses', last, body)
  return { ...stream, remove: () => remove(`/v1/responses/${id}`) }
}

const resume = (id: string, last: Last) => openStream(id, `GET /v1/responses/${id}?stream=true`, last)

const completed = (id: string) => ({
  type: 'response.completed',
  response: { id, object: 'response', status: 'completed', model: 'gpt-6-luna', usage },
})

test('DELETE of a response is refused while it streams', async () => {
  for (const background of [false, true]) {
    const id = `resp_streams_${background}`
    const stream = await streamResponse(id, completed(id), background)
    assert.equal(codeOf(await stream.remove()), '409 not_settled')
    await stream.end()
    await isState('settled', stream.requestId)
    assert.equal(codeOf(await stream.remove()), '200 ')
    assert.ok(Number((await seen(stream.requestId))['cost_usd']) > 0)
  }
  await bench.assertBalanced()
})

test('a resumed stream (GET …?stream=true) does not stop DELETE of a settled response', async () => {
  const { id, requestId } = await makeResponse()
  complete(id)
  await bench.call(`/v1/responses/${id}`, undefined, { method: 'GET', surface })
  await isState('settled', requestId)
  const { end } = await resume(id, completed(id))
  assert.equal(codeOf(await remove(`/v1/responses/${id}`)), '200 ')
  await end()
  await bench.assertBalanced()
})

for (const stream of ['its', 'a resumed'])
  test(`a background response that is cancelled without usage costs the output that ${stream} stream delivered`, async () => {
    for (const isOver of [true, false]) {
      const id = `resp_cancelled_${stream.length}_${isOver}`
      const delta = {
        type: 'response.output_text.delta',
        delta: 'Hello there. '.repeat(100),
        output_index: 0,
      }
      const created = stream === 'its' ? null : await makeResponse(id)
      const opened = created === null ? streamResponse(id, delta, true) : resume(id, delta)
      const { requestId, end } = { ...(await opened), ...created }
      if (isOver) {
        await end()
        await isState('deferred', requestId)
      }
      const cancelled = { id, object: 'response', status: 'cancelled', output: [], usage: null }
      shows(`POST /v1/responses/${id}/cancel`, cancelled)
      shows(`GET /v1/responses/${id}`, cancelled)
      await bench.call(`/v1/responses/${id}/cancel`, {}, { surface })
      if (!isOver) {
        await end()
        await hurryPoller()
      }
      await isState('settled', requestId)
      const { cost_usd, estimated } = await seen(requestId)
      assert.deepEqual([Number(cost_usd) > 0, estimated], [true, true])
    }
    await bench.assertBalanced()
  })

test('a response that settles before its stream states the cost is counted once', async () => {
  const cost = async () => {
    const headers = { authorization: `Bearer ${bench.gateway.adminKey}` }
    const shown = await fetch(`${bench.gateway.url}/metrics`, { headers })
    const { samples = [] } = readOpenMetrics(await shown.text()).get('tollgate_cost_usd') ?? {}
    return samples.find(({ labels }) => labels['model'] === 'gpt-6-luna')?.value ?? 0
  }
  const id = 'resp_seen'
  const { requestId, end } = await streamResponse(id, completed(id), true)
  const before = await cost()
  complete(id)
  await bench.call(`/v1/responses/${id}`, undefined, { method: 'GET', surface })
  assert.equal(await stateOf(requestId), 'settled')
  const paid = await cost()
  assert.ok(paid > before)
  await end()
  assert.equal(await cost(), paid)
  await bench.assertBalanced()
})

test('a DELETE that succeeds while the object is open charges the hold', async () => {
  const id = 'resp_raced'
  const { promise: rest, resolve } = Promise.withResolvers<void>()
  const done = { type: 'response.deleted', response: {} }
  upstream.streams(`DELETE /v1/responses/${id}`, done, rest)
  const removing = remove(`/v1/responses/${id}`)
  await until('the DELETE has reached upstream', async () => wasAsked(`DELETE /v1/responses/${id}`))
  const { requestId } = await makeResponse(id)
  resolve()
  assert.equal((await removing).status, 200)
  const { state, cost_usd, estimated } = await seen(requestId)
  assert.deepEqual([state, estimated], ['settled', true])
  assert.ok(Number(cost_usd) > 0)
  await bench.assertBalanced()
})

/** A DELETE that upstream answered with 2xx, as through a node that does not know the object. */
async function removedElsewhere(path: string) {
  shows('DELETE /v1/responses/resp_other', { deleted: true })
  const { requestId } = await remove('/v1/responses/resp_other')
  await isState('settled', requestId)
  const objectId = decodeURIComponent(path.slice('/v1/responses/'.length))
  await changeDatabase(bench.gateway, `UPDATE call SET object_id = '${objectId}' WHERE id = '${requestId}'`)
}

test('an object deleted through another node charges the hold, both streaming and in the background', async () => {
  const stream = await streamResponse('resp_elsewhere')
  shows('GET /v1/responses/resp_elsewhere', {}, 404)
  const { held_usd: streamed } = await bench.balance()
  await removedElsewhere('/v1/responses/resp%5Felsewhere')
  stream.leave()
  await isState('settled', stream.requestId)

  const { id, requestId } = await makeResponse()
  shows(`GET /v1/responses/${id}`, {}, 404)
  const { held_usd: deferred } = await bench.balance()
  await removedElsewhere(`/v1/responses/${id}`)
  await changeDatabase(bench.gateway, 'UPDATE hold SET started_at_ms = started_at_ms - 60000')
  await hurryPoller()
  await isState('settled', requestId)

  for (const [call, heldUsd] of [
    [stream.requestId, streamed],
    [requestId, deferred],
  ] as const) {
    const { cost_usd, estimated } = await seen(call)
    assert.deepEqual([cost_usd, estimated], [heldUsd, true])
    assert.ok(Number(heldUsd) > 0)
  }
  await bench.assertBalanced()
})

test('results that are gone upstream charge the hold', async () => {
  const batch = await makeBatch('msgbatch_gone')
  batch.ended()
  await hurryPoller()
  await isState('settled', batch.requestId)
  const { cost_usd, estimated } = await seen(batch.requestId)
  assert.deepEqual([Number(cost_usd) > 0, estimated], [true, true])
  await bench.assertBalanced()
})

test('an object that upstream no longer knows costs nothing, and its hold is lost', async () => {
  const { id, requestId } = await makeResponse()
  shows(`GET /v1/responses/${id}`, {}, 404)
  await hurryPoller()
  await until('it is polled', async () => wasAsked(`GET /v1/responses/${id}`))
  assert.equal(await stateOf(requestId), 'deferred')
  await changeDatabase(bench.gateway, 'UPDATE hold SET started_at_ms = started_at_ms - 60000')
  await hurryPoller()
  await isState('interrupted', requestId)
  const { cost_usd, lost_list_cost_usd } = await seen(requestId)
  assert.deepEqual([cost_usd, Number(lost_list_cost_usd) > 0], [0, true])
  await bench.assertBalanced()
})

test('while a Chat batch is open, only files uploaded here can be deleted', async () => {
  const upload = async (id: string) => {
    shows('POST /v1/files', { id, object: 'file', purpose: 'user_data' })
    const form = new FormData()
    form.set('purpose', 'user_data')
    form.set('file', new Blob(['Hello']), 'hello.txt')
    const headers = { authorization: `Bearer ${bench.gateway.apiKey}` }
    await fetch(`${bench.gateway.url}/v1/files`, { method: 'POST', headers, body: form })
  }
  const removed = async (id: string) => {
    shows(`DELETE /v1/files/${id}`, { id, deleted: true })
    return codeOf(await remove(`/v1/files/${id}`))
  }
  await upload('file-mine')
  assert.equal(await removed('file-old'), '200 ')
  const batch = { id: 'batch_1', status: 'validating', output_file_id: null as string | null }
  shows('POST /v1/batches', batch)
  shows('GET /v1/batches/batch_1', batch)
  const body = { input_file_id: 'file-in', endpoint: '/v1/chat/completions', completion_window: '24h' }
  const { requestId } = await bench.call('/v1/batches', body, { surface })
  assert.equal(await removed('file-mine'), '200 ')
  assert.equal(await removed('file-out'), '409 not_settled')
  shows('GET /v1/batches/batch_1', { ...batch, status: 'completed', output_file_id: 'file-out' })
  const answer = {
    model: 'gpt-6-luna',
    usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
  }
  shows('GET /v1/files/file-out/content', { custom_id: 'a', response: { status_code: 200, body: answer } })
  await removed('file-out')
  await isState('settled', requestId)
  assert.equal(await removed('file-out'), '200 ')
  await bench.assertBalanced()
})
