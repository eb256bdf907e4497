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
