import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'

/** Upstream works by this clock; the gateway polls by its own. */
let workMs = 0
const bench = await startBillingBench({}, { clock: () => workMs })
after(() => bench.close())

const surface = 'chat'
const PROMPT = { prompt: 'A gate that opens' }
const admin = (path: string) => bench.gateway.manage('GET', path)
const recordOf = (id: string) => admin(`/gateway/v1/requests/${id}`)
const look = (id: string) => bench.call(`/v1/videos/${id}`, undefined, { method: 'GET', surface })
const heldBy = async (keyId: string) => (await admin(`/v1/keys/${keyId}`))['month_held_usd']

interface Made {
  readonly id: string
  readonly requestId: string
}

/** A video that was begun, and its call, which is open. */
async function made(
  more: object = {},
  options: { key?: string; simulate?: string } = {},
  path = '/v1/videos',
) {
  const reply = await bench.call(path, { ...PROMPT, ...more }, { surface, ...options })
  assert.equal(reply.status, 200, reply.body.toString())
  assert.equal(reply.header('x-svc-cost-usd'), '0')
  const { state, object_id } = await recordOf(reply.requestId)
  assert.equal(state, 'deferred')
  return { id: String(object_id), requestId: reply.requestId }
}

/** The cost of a video, once a client has seen it completed. */
async function costOf({ id, requestId }: Made): Promise<unknown> {
  workMs += 3_600_000
  await look(id)
  const { state, cost_usd } = await recordOf(requestId)
  assert.equal(state, 'settled')
  return cost_usd
}

test('a video stays open with its price as its hold, and is settled when the gateway finds it done', async () => {
  const { id: keyId, key } = await bench.gateway.createKey('capped', { monthly_budget_usd: 5 })
  const { requestId } = await made({ seconds: '8' }, { key })
  assert.equal(await heldBy(keyId), 0.8)
  workMs += 3_600_000
  await until('it is settled', async () => (await recordOf(requestId))['state'] === 'settled')
  const { cost_usd, model_served, stop_reason } = await recordOf(requestId)
  assert.deepEqual([cost_usd, model_served, stop_reason], [0.8, 'sora-2', 'completed'])
  const { month_held_usd, month_spend_usd } = await admin(`/v1/keys/${keyId}`)
  assert.deepEqual([month_held_usd, month_spend_usd], [0, 0.8])
  const { bill } = await admin(`/gateway/v1/requests/${requestId}?expand=bill`)
  const [line] = (bill as { lines: Record<string, unknown>[] }).lines
  assert.deepEqual([line?.['quantity'], line?.['rate_usd'], line?.['amount_usd']], [8_000, 0.1, 0.8])
  await bench.assertBooksBalance()
})

test("a client's own look at the finished video settles its call, once and at the price of its size", async () => {
  const video = await made({ model: 'sora-2-pro-2025-10-06', size: '1792x1024', seconds: '12' })
  await look(video.id)
  assert.equal((await recordOf(video.requestId))['state'], 'deferred')
  assert.equal(await costOf(video), 6)
  assert.equal((await look(video.id)).header('x-svc-cost-usd'), '0')
  const { unpriced, cost_usd } = await recordOf(video.requestId)
  assert.deepEqual([unpriced, cost_usd], [false, 6])
  await bench.assertBooksBalance()
})

test('a video in a form costs what the same costs in JSON', async () => {
  const body = new FormData()
  for (const [name, value] of Object.entries({ ...PROMPT, seconds: '8', size: '1280x720' }))
    body.set(name, value)
  const headers = { authorization: `Bearer ${bench.gateway.apiKey}` }
  const reply = await fetch(`${bench.gateway.url}/v1/videos`, { method: 'POST', headers, body })
  const { id } = (await reply.json()) as { id: string }
  const requestId = reply.headers.get('x-svc-request-id') ?? ''
  assert.equal(await costOf({ id, requestId }), 0.8)
})

test('a video that fails costs nothing', async () => {
  const video = await made({}, { simulate: 'refusal' })
  assert.equal(await costOf(video), 0)
  const { stop_reason, unpriced } = await recordOf(video.requestId)
  assert.deepEqual([stop_reason, unpriced], ['failed', false])
})

test('remixes and edits hold and cost what their source does, and an extension what it adds', async () => {
  const { id: keyId, key } = await bench.gateway.createKey('remixing', { monthly_budget_usd: 50 })
  const source = await made({ model: 'sora-2-pro', seconds: '8' })
  await costOf(source)
  const video = { id: source.id }
  const cases = [
    [`/v1/videos/${source.id}/remix`, {}, 2.4],
    ['/v1/videos/edits', { video }, 2.4],
    ['/v1/videos/extensions', { video, seconds: '20' }, 6],
  ] as const
  for (const [path, body, usd] of cases) {
    const call = await made(body, { key }, path)
    assert.equal(await heldBy(keyId), usd, path)
    assert.equal(await costOf(call), usd, path)
    assert.equal(await heldBy(keyId), 0, path)
  }
  await bench.assertBooksBalance()
})

test('what is made from a video that upstream does not know is refused there, and a stranger has nothing asked', async () => {
  const before = bench.simulator.requests
  const body = { ...PROMPT, video: { id: 'video_of_nobody' } }
  const stranger = { surface, key: 'svc_live_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG' } as const
  assert.equal((await bench.call('/v1/videos/edits', body, stranger)).status, 401)
  assert.equal(bench.simulator.requests, before)
  const { key } = await bench.gateway.createKey('capped', { monthly_budget_usd: 5 })
  const refused = await bench.call('/v1/videos/edits', body, { surface, key })
  assert.equal(refused.status, 404)
  assert.equal((await bench.record(refused.requestId))['cost_usd'], 0)
})

test('a video that is deleted before it was asked for is paid all the same', async () => {
  const video = await made({ seconds: '8' })
  const remove = () => bench.call(`/v1/videos/${video.id}`, undefined, { method: 'DELETE', surface })
  // Upstream does not delete a video that is not completed.
  assert.equal((await remove()).status, 409)
  assert.equal((await recordOf(video.requestId))['state'], 'deferred')
  workMs += 3_600_000
  assert.equal((await remove()).status, 200)
  const { state, cost_usd } = await recordOf(video.requestId)
  assert.deepEqual([state, cost_usd], ['settled', 0.8])
  await bench.assertBooksBalance()
})

test('a model without a price for videos is refused to a key with a cap', async () => {
  const { key } = await bench.gateway.createKey('capped', { monthly_budget_usd: 5 })
  for (const model of ['sora-9', 'gpt-6-luna']) {
    const { status, body } = await bench.call('/v1/videos', { ...PROMPT, model }, { surface, key })
    assert.equal(status, 404)
    assert.equal(JSON.parse(body.toString()).error.code, 'model_not_priced')
  }
})

test('a client that leaves before its answer has made its video all the same, and pays for it', async () => {
  const leaving = new AbortController()
  const { id: keyId, key } = await bench.gateway.createKey('leaving', { monthly_budget_usd: 5 })
  const before = bench.simulator.requests
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'x-simulator': 'delay=200',
  }
  const body = JSON.stringify({ ...PROMPT, seconds: '12' })
  const { signal } = leaving
  const call = fetch(`${bench.gateway.url}/v1/videos`, { method: 'POST', headers, body, signal })
  await until('upstream has it', async () => bench.simulator.requests > before)
  leaving.abort()
  await assert.rejects(call)
  const deferred = async () => {
    const { data } = await admin(`/v1/keys/${keyId}/requests?state=deferred`)
    return data as { id: string; object_id: string }[]
  }
  await until('it is known by its name', async () => (await deferred()).length === 1)
  const [left] = await deferred()
  assert.equal(await costOf({ id: left?.object_id ?? '', requestId: left?.id ?? '' }), 1.2)
  await bench.assertBooksBalance()
})
