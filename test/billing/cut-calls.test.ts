import assert from 'node:assert/strict'
import { connect } from '../support/raw-client.ts'
import { openDatabaseReader } from '../support/read-database.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'

const bench = await startBillingBench()
closeAfter(bench)
afterEach(() => bench.assertBalanced())

const messages = {
  model: 'claude-haiku-5-5',
  max_tokens: 4_000,
  messages: [{ role: 'user', content: 'x'.repeat(350) }],
}
const chat = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }] }

let begun = 0

async function begin(path: string, body: unknown, simulate: string) {
  const text = JSON.stringify(body)
  const name = `begun-${++begun}`
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: gateway',
    `x-api-key: ${bench.gateway.apiKey}`,
    ...(path === '/v1/messages' ? ['anthropic-version: 2023-06-01'] : []),
    `x-simulator: ${simulate}`,
    `User-Agent: ${name}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`,
  ]
  const client = await connect(bench.gateway)
  await client.send(Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`))
  return { client, requestId: idOf(name) }
}

/** The id of the call with this user agent, once it exists. */
async function idOf(name: string): Promise<string> {
  const database = openDatabaseReader(bench.gateway)
  try {
    let id: unknown
    await until('the call is in the ledger', async () => {
      const [row] = await database.read(`SELECT id FROM call WHERE user_agent = '${name}'`)
      id = row?.['id']
      return row !== undefined
    })
    return String(id)
  } finally {
    await database.close()
  }
}

test('a client that leaves mid-stream pays the stated input and estimated output', async () => {
  const { client, requestId } = await begin(
    '/v1/messages',
    { ...messages, stream: true },
    'tokens=2000;drip=5;usage={"input_tokens":777}',
  )
  const reading = client.read({ method: 'POST' })
  reading.catch(() => undefined)
  await client.reached(2_000)
  client.leave()
  const record = await bench.record(await requestId)
  assert.equal(record['state'], 'settled')
  assert.equal(record['estimated'], true)
  const usage = record['usage'] as Record<string, number>
  assert.equal(usage['input_tokens'], 777)
  assert.ok((usage['output_tokens'] ?? 0) > 0, 'delivered output is counted')
  assert.ok((usage['output_tokens'] ?? 0) < 1_500, 'output that was not delivered is not counted')
  assert.ok(Number(record['cost_usd']) > 0)
})

for (const [when, event, pace] of [
  // The terminal events come slowly; the client leaves when it has the text.
  ['after the last content but before the final usage', 'content_block_stop', 'drip=150;'],
  ['after the terminal event', 'message_stop', ''],
])
  test(`leaving ${when} is billed upstream’s usage`, async () => {
    const simulate = `tokens=4;${pace}usage={"input_tokens":1000,"output_tokens":200}`
    const { client, requestId } = await begin('/v1/messages', { ...messages, stream: true }, simulate)
    const reading = client.read({ method: 'POST' })
    reading.catch(() => undefined)
    await client.received(String(event))
    client.leave()
    const record = await bench.record(await requestId)
    assert.equal(record['estimated'], false)
    assert.equal(String(record['cost_usd']), '0.0002')
  })

test('a stream that upstream breaks is billed by estimate and breaks for the client', async () => {
  for (const [path, body] of [
    ['/v1/messages', { ...messages, stream: true }],
    ['/v1/chat/completions', { ...chat, stream: true }],
  ] as const) {
    const reply = await bench.call(path, body, {
      surface: path === '/v1/messages' ? 'messages' : 'chat',
      simulate: 'tokens=400;cut=event:12',
    })
    assert.equal(reply.ended, 'cut', path)
    const record = await bench.record(reply.requestId)
    assert.equal(record['estimated'], true, path)
    assert.ok(Number(record['cost_usd']) > 0, path)
  }
})

test('a JSON reply that upstream breaks is billed by estimate and breaks for the client', async () => {
  const reply = await bench.call('/v1/messages', messages, { simulate: 'tokens=400;cut=byte:200' })
  assert.equal(reply.ended, 'cut')
  const record = await bench.record(reply.requestId)
  assert.equal(record['estimated'], true)
})

test('a 2xx without usage is rated on estimated input and output', async () => {
  for (const stream of [false, true]) {
    const reply = await bench.call(
      '/v1/messages',
      { ...messages, stream },
      { simulate: 'no-usage;tokens=100' },
    )
    assert.equal(reply.status, 200)
    const record = await bench.record(reply.requestId)
    assert.equal(record['estimated'], true)
    const usage = record['usage'] as Record<string, number>
    const bytes = Buffer.byteLength(JSON.stringify({ ...messages, stream }))
    const input = usage['input_tokens'] ?? 0
    assert.ok(input >= bytes / 8 && input <= bytes, `${input} tokens for ${bytes} bytes`)
    assert.ok((usage['output_tokens'] ?? 0) > 50)
  }
})

test('stated usage of zero stays zero', async () => {
  const reply = await bench.call('/v1/messages', messages, {
    simulate: 'usage={"input_tokens":0,"output_tokens":0}',
  })
  assert.equal(reply.header('x-svc-cost-usd'), '0')
  assert.equal((await bench.record(reply.requestId))['estimated'], false)
})

test('a connection that upstream closes before it answers costs nothing and is interrupted', async () => {
  const reply = await bench.call('/v1/messages', messages, { simulate: 'reset' })
  assert.equal(reply.status, 502)
  assert.equal(reply.header('x-svc-cost-usd'), '0')
  const record = await bench.record(reply.requestId)
  assert.equal(record['state'], 'interrupted')
  assert.equal(record['cost_usd'], 0)
})
