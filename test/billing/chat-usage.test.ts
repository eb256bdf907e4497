import assert from 'node:assert/strict'
import { exchange } from '../support/raw-client.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { startBillingBench } from './bench-of-one.ts'

const received: string[] = []
const codings: (string | undefined)[] = []
const bench = await startBillingBench(
  {},
  {
    deterministic: true,
    onRequest({ bodyBytes, headersRaw }) {
      received.push(bodyBytes.toString())
      codings.push(headersRaw[headersRaw.findIndex((name) => /^accept-encoding$/i.test(name)) + 1])
    },
  },
)
closeAfter(bench)
afterEach(() => bench.assertBalanced())

const body = {
  model: 'gpt-4o',
  stream: true,
  messages: [{ role: 'user', content: 'Tell me of "usage":null, please' }],
}
const chat = { surface: 'chat' } as const
const reported = 'usage={"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}'
// 1,000 × $2.50/M + 100 × $10/M.
const COST = '0.0035'

async function directly(request: unknown, simulate: string): Promise<Buffer> {
  const text = JSON.stringify(request)
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: simulator',
    'Authorization: Bearer pc',
    `x-simulator: ${simulate}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`,
  ]
  const reply = await exchange(bench.simulator, Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`))
  return reply.body
}

test('a chat stream that did not request usage is billed by it and shows none of it', async () => {
  const reply = await bench.call('/v1/chat/completions', body, { ...chat, simulate: reported })
  assert.equal(reply.trailer('x-svc-cost-usd'), COST)
  assert.deepEqual(JSON.parse(received.at(-1) ?? ''), { ...body, stream_options: { include_usage: true } })
  assert.equal(reply.body.toString(), (await directly(body, reported)).toString())
  assert.equal((await bench.record(reply.requestId))['estimated'], false)
})

test('an injected call sends accept-encoding: identity instead of the client’s value', async () => {
  const lines = ['Accept-Encoding: gzip, br']
  const reply = await bench.call('/v1/chat/completions', body, { ...chat, simulate: reported, lines })
  assert.equal(reply.trailer('x-svc-cost-usd'), COST)
  assert.equal(codings.at(-1), 'identity')
  const asking = { ...body, stream_options: { include_usage: true } }
  await bench.call('/v1/chat/completions', asking, { ...chat, simulate: reported, lines })
  assert.equal(codings.at(-1), 'gzip, br')
})

test('with inject_usage off, the body is unchanged and usage is estimated', async () => {
  const own: string[] = []
  await using off = await startBillingBench(
    { settings: { injectUsage: false } },
    { onRequest: ({ bodyBytes }) => own.push(bodyBytes.toString()) },
  )
  const reply = await off.call('/v1/chat/completions', body, { ...chat, simulate: 'tokens=50' })
  assert.equal(own.at(-1), JSON.stringify(body))
  const record = await off.record(reply.requestId)
  assert.equal(record['estimated'], true)
  assert.ok(Number(record['cost_usd']) > 0)
  await off.assertBalanced()
})
