import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from '../support/suite.ts'
import { startBillingBench } from './bench-of-one.ts'

/** Speech comes as audio, without usage; a request that asks `as JSON` gets a document. */
const upstream = createServer(async (req, res) => {
  let asked = ''
  for await (const piece of req) asked += piece
  if (asked.includes('as JSON')) {
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ audio: 'A'.repeat(200_000) }))
  } else {
    res.writeHead(200, { 'content-type': 'audio/mpeg' })
    res.write(Buffer.alloc(1_000))
    res.end(Buffer.alloc(1_000))
  }
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
const chatUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`
const bench = await startBillingBench({ chatUrl })
after(async () => {
  await bench.close()
  upstream.closeAllConnections()
  upstream.close()
})

test('speech that is sold by the character is billed by the characters of the request', async () => {
  const body = { model: 'tts-1', voice: 'alloy', input: 'Žluťoučký 🐎' }
  const reply = await bench.call('/v1/audio/speech', body, { surface: 'chat' })
  assert.equal(reply.body.length, 2_000)
  // 11 characters × $15/M.
  assert.equal(reply.trailer('x-svc-cost-usd'), '0.000165')
  const record = await bench.record(reply.requestId)
  assert.equal(record['estimated'], false)
  assert.equal(record['unpriced'], false)
  await bench.assertBooksBalance()
})

test('other speech is counted by the tokens of its input, estimated', async () => {
  const body = { model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'Hello, tokenizer' }
  const reply = await bench.call('/v1/audio/speech', body, { surface: 'chat' })
  const record = await bench.record(reply.requestId)
  assert.equal(record['estimated'], true)
  assert.ok(Number(record['cost_usd']) > 0)
  await bench.assertBooksBalance()
})

test('an answer that is no sound is not billed as sound, however long it is', async () => {
  const body = { model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'as JSON, please' }
  const reply = await bench.call('/v1/audio/speech', body, { surface: 'chat' })
  const record = await bench.record(reply.requestId)
  assert.equal((record['usage'] as Record<string, number>)['output_tokens'], 0)
  assert.equal(record['bytes_out'], reply.body.length)
  await bench.assertBooksBalance()
})
