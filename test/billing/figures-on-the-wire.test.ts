import assert from 'node:assert/strict'
import { openDatabaseReader } from '../support/read-database.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { startBillingBench } from './bench-of-one.ts'

const bench = await startBillingBench({ env: { TOLLGATE_DISCOUNT: '0.2' } })
closeAfter(bench)
afterEach(() => bench.assertBalanced())

const hello = { model: 'claude-haiku-5-5', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }
const usage = 'usage={"input_tokens":1000,"output_tokens":200}'
// 1,000 × $0.10/M + 200 × $0.50/M = $0.0002 list; 20 % off = $0.00016.
const LIST = '0.0002'
const COST = '0.00016'

const upstreamMsIn = (lines: readonly string[]) =>
  lines.filter((line) => /^x-svc-upstream-ms:/i.test(line)).length

test('a JSON reply carries cost, list cost, upstream time and balance as headers', async () => {
  const before = Number((await bench.balance())['balance_usd'])
  const reply = await bench.call('/v1/messages', hello, { simulate: usage })
  assert.equal(reply.status, 200)
  assert.equal(reply.header('x-svc-cost-usd'), COST)
  assert.equal(reply.header('x-svc-list-cost-usd'), LIST)
  assert.match(reply.header('x-svc-upstream-ms') ?? '', /^\d+$/)
  assert.equal(Number(reply.header('x-svc-balance-usd')).toFixed(9), (before - 0.00016).toFixed(9))
  assert.deepEqual(reply.trailerLines, [])
  assert.equal(reply.header('trailer'), undefined)
  assert.equal(upstreamMsIn(reply.headerLines), 1)
})

test('a stream declares its figures and sends them as trailers', async () => {
  const reply = await bench.call('/v1/messages', { ...hello, stream: true }, { simulate: usage })
  assert.equal(reply.status, 200)
  assert.equal(reply.header('x-svc-cost-usd'), undefined)
  assert.match(reply.header('x-svc-upstream-ms') ?? '', /^\d+$/)
  assert.match(reply.header('trailer') ?? '', /x-svc-cost-usd/)
  assert.equal(reply.trailer('x-svc-cost-usd'), COST)
  assert.equal(reply.trailer('x-svc-list-cost-usd'), LIST)
  assert.match(reply.trailer('x-svc-upstream-ms') ?? '', /^\d+$/)
  assert.deepEqual([reply.headerLines, reply.trailerLines].map(upstreamMsIn), [1, 1])
  assert.match(reply.trailer('x-svc-balance-usd') ?? '', /^-?\d+(\.\d+)?$/)
})

test('headers.balance: false omits only the balance from headers and trailers', async () => {
  await using quiet = await startBillingBench({ settings: { showBalance: false } })
  const reply = await quiet.call('/v1/messages', hello, { simulate: usage })
  assert.deepEqual([reply.header('x-svc-cost-usd'), reply.header('x-svc-balance-usd')], [LIST, undefined])
  const stream = await quiet.call('/v1/messages', { ...hello, stream: true }, { simulate: usage })
  assert.doesNotMatch(stream.header('trailer') ?? '', /balance/)
  assert.deepEqual([stream.trailer('x-svc-cost-usd'), stream.trailer('x-svc-balance-usd')], [LIST, undefined])
})

test('the record of a request shows the figures of its response', async () => {
  for (const stream of [false, true]) {
    const reply = await bench.call('/v1/messages', { ...hello, stream }, { simulate: usage })
    const record = await bench.record(reply.requestId)
    const said = stream ? reply.trailer : reply.header
    assert.equal(String(record['cost_usd']), said('x-svc-cost-usd'))
    assert.equal(String(record['list_cost_usd']), said('x-svc-list-cost-usd'))
    assert.equal(String(record['balance_usd']), said('x-svc-balance-usd'))
    assert.equal(record['state'], 'settled')
    assert.equal(record['streamed'], stream)
    assert.equal(record['estimated'], false)
    assert.equal(record['model'], 'claude-haiku-5-5')
    assert.equal(record['model_served'], 'claude-haiku-5-5')
    assert.equal(record['status'], 200)
    assert.equal(record['upstream_request_id'], reply.header('request-id'))
    const { input_tokens, output_tokens } = record['usage'] as Record<string, number>
    assert.deepEqual([input_tokens, output_tokens], [1000, 200])
  }
})

test('the record of a request has the body bytes of both directions, buffered or streamed', async () => {
  for (const stream of [false, true]) {
    const body = { ...hello, stream }
    const reply = await bench.call('/v1/messages', body, { simulate: usage })
    const record = await bench.record(reply.requestId)
    assert.equal(record['bytes_in'], JSON.stringify(body).length)
    assert.equal(record['bytes_out'], reply.body.length)
  }
  const refused = await bench.call('/v1/messages', hello, { simulate: 'status=529' })
  assert.equal(refused.status, 529)
  assert.equal((await bench.record(refused.requestId))['bytes_out'], refused.body.length)
})

test('a lookup of a request in flight answers once it has settled', async () => {
  const database = openDatabaseReader(bench.gateway)
  const inFlight = () => database.read("SELECT id FROM hold WHERE state = 'in_flight'")
  assert.deepEqual(await inFlight(), [])
  const seen = Promise.withResolvers<string>()
  const streaming = bench.call('/v1/messages', { ...hello, stream: true }, { simulate: `${usage};delay=300` })
  // The client learns the id only with the head, so the test reads it from the database.
  const look = async (): Promise<void> => {
    const [row] = await inFlight()
    if (row === undefined) setImmediate(look)
    else seen.resolve(String(row['id']))
  }
  await look()
  const record = await bench.record(await seen.promise)
  assert.equal(record['state'], 'settled')
  assert.equal(String(record['cost_usd']), COST)
  assert.equal((await streaming).requestId, record['id'])
  await database.close()
})

test('upstream errors cost nothing, and the headers say so', async () => {
  for (const status of [400, 429, 529]) {
    const reply = await bench.call(
      '/v1/messages',
      { ...hello, stream: true },
      { simulate: `status=${status}` },
    )
    assert.equal(reply.status, status)
    assert.equal(reply.header('x-svc-cost-usd'), '0')
    assert.equal(reply.header('x-svc-list-cost-usd'), '0')
    assert.match(reply.header('x-svc-balance-usd') ?? '', /^-?\d/)
    assert.equal((await bench.record(reply.requestId))['status'], status)
  }
})

test('reading a stored response again repeats its usage and is not billed again', async () => {
  const chat = { surface: 'chat' } as const
  const created = await bench.call('/v1/responses', { model: 'gpt-4o', input: 'Hello', store: true }, chat)
  assert.ok(Number(created.header('x-svc-cost-usd')) > 0)
  const { id } = JSON.parse(created.body.toString()) as { id: string }
  const again = await bench.call(`/v1/responses/${id}`, undefined, { ...chat, method: 'GET' })
  assert.equal(again.status, 200)
  assert.match(again.body.toString(), /"usage":\s*\{/)
  assert.equal(again.header('x-svc-cost-usd'), '0')
})
