import assert from 'node:assert/strict'
import { connect } from '../support/raw-client.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'

const DISK_FULL = 13
const FSYNC_FAILED = 1034

const body = { model: 'claude-haiku-5-5', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }
const usage = 'usage={"input_tokens":1000,"output_tokens":200}'

test('on a full disk new calls get 503 unsent, streams finish, and everything settles when space returns', async () => {
  const diskFault = new SharedArrayBuffer(4)
  const bench = await startBillingBench({ diskFault })
  const setFault = (code: number) => Atomics.store(new Int32Array(diskFault), 0, code)
  try {
    const client = await connect(bench.gateway)
    const text = JSON.stringify({ ...body, stream: true })
    const head = [
      'POST /v1/messages HTTP/1.1',
      'Host: gateway',
      `x-api-key: ${bench.gateway.apiKey}`,
      'anthropic-version: 2023-06-01',
      `x-simulator: tokens=20;drip=30;${usage}`,
      `Content-Length: ${text.length}`,
    ]
    const streaming = client.request(Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`))
    await client.received('content_block_delta')

    setFault(DISK_FULL)
    const sent = bench.simulator.requests
    for (const surface of ['messages', 'chat'] as const) {
      const path = surface === 'messages' ? '/v1/messages' : '/v1/chat/completions'
      const refused = await bench.call(path, body, { surface })
      assert.equal(refused.status, 503)
      assert.equal(refused.header('retry-after'), '1')
      assert.match(refused.body.toString(), /"code":"store_unavailable"/)
    }
    assert.equal(bench.simulator.requests, sent, 'nothing reached upstream')
    const topUp = await fetch(`${bench.gateway.url}/gateway/v1/credits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bench.gateway.adminKey}` },
      body: '{"amount_usd":1,"reason":"invoice 17"}',
    })
    assert.equal(topUp.status, 503)
    assert.match(await topUp.text(), /may not have taken effect. Repeat it with the same Idempotency-Key/)

    const reply = await streaming
    assert.equal(reply.ended, 'complete', 'the stream finishes')
    assert.match(reply.body.toString(), /message_stop/)

    assert.equal((await fetch(`${bench.gateway.url}/readyz`)).status, 503)
    assert.equal((await fetch(`${bench.gateway.url}/healthz`)).status, 200)

    setFault(0)
    const id = reply.headerLines.find((line) => line.startsWith('x-svc-request-id'))?.split(': ')[1] ?? ''
    const record = await bench.record(id)
    assert.equal(record['state'], 'settled')
    assert.equal(String(record['cost_usd']), '0.0002')
    await until('it is ready', async () => (await fetch(`${bench.gateway.url}/readyz`)).status === 200)
    assert.equal((await bench.call('/v1/messages', body, { simulate: usage })).status, 200)
    await bench.assertBalanced()
  } finally {
    setFault(0)
    await bench.close()
  }
})

test('a failed fsync is fatal: it is not retried, and no call is admitted afterwards', async () => {
  const diskFault = new SharedArrayBuffer(4)
  const fatal: Error[] = []
  await using bench = await startBillingBench({ diskFault, onFatal: (error) => fatal.push(error) })
  const setFault = (code: number) => Atomics.store(new Int32Array(diskFault), 0, code)
  assert.equal((await bench.call('/v1/messages', body, { simulate: usage })).status, 200)
  setFault(FSYNC_FAILED)
  const sent = bench.simulator.requests
  assert.equal((await bench.call('/v1/messages', body)).status, 503)
  assert.equal(fatal.length, 1)
  assert.match(fatal[0]?.message ?? '', /disk failed/)
  // A disk that works again does not restore the pages it lost.
  setFault(0)
  assert.equal((await bench.call('/v1/messages', body)).status, 503)
  assert.equal(bench.simulator.requests, sent)
})
