import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { constants, gzipSync } from 'node:zlib'
import { OBSERVER_BACKLOG_BYTES_MAX } from '../../src/http-calls/reply.ts'
import { exchange } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { chunked, sized } from '../support/wire-bytes.ts'
import { asBilled, type BilledReply, startBillingBench } from './bench-of-one.ts'

const MiB = 1024 * 1024
const upstream = await ScriptedUpstream.start()
const bench = await startBillingBench({ chatUrl: `${upstream.url}/v1`, messagesUrl: upstream.url })
closeAfter(bench, upstream)

const OK = 'HTTP/1.1 200 OK'
const JSON_IN = (coding: string) => ['Content-Type: application/json', `Content-Encoding: ${coding}`]
const EVENTS_IN = (coding: string) => ['Content-Type: text/event-stream', `Content-Encoding: ${coding}`]

function requestTo(path: string, body: object): Buffer {
  const line = `Authorization: Bearer ${bench.gateway.apiKey}`
  const lines = ['Host: gateway', line, 'Content-Type: application/json']
  return sized(`POST ${path} HTTP/1.1`, lines, JSON.stringify(body))
}

const EMBED = requestTo('/v1/embeddings', { model: 'text-embedding-3-large', input: 'x' })
const usage = { prompt_tokens: 290_000, total_tokens: 290_000 }
/** 290,000 tokens × $0.13 per million. */
const EMBED_COST = '0.0377'

/** Compresses without searching for repetitions, which noise lacks: that takes a third of the time. */
const pack = (plain: Buffer) => gzipSync(plain, { level: 1, strategy: constants.Z_HUFFMAN_ONLY })

/** Base64 of noise compresses to three quarters, so the reply arrives faster than it can be decoded. */
function embeddings(bytes: number): Buffer {
  const embedding = randomBytes((bytes * 3) / 4).toString('base64')
  return Buffer.from(
    JSON.stringify({ object: 'list', data: [{ object: 'embedding', index: 0, embedding }], usage }),
  )
}

const largeReply = pack(embeddings(32 * MiB))

async function call(request: Buffer): Promise<BilledReply> {
  return asBilled(await exchange(bench.gateway, request, { deadlineMs: 120_000 }))
}

test('several large compressed JSON replies at once are billed by their usage and pass unchanged', async () => {
  const encoded = largeReply
  assert.ok(encoded.length > 1.4 * OBSERVER_BACKLOG_BYTES_MAX)
  upstream.answer(() => [{ send: sized(OK, JSON_IN('gzip'), encoded) }])
  const replies = await Promise.all([call(EMBED), call(EMBED), call(EMBED), call(EMBED)])
  for (const reply of replies) {
    assert.equal(reply.header('x-svc-cost-usd'), EMBED_COST)
    assert.ok(reply.body.equals(encoded))
    assert.equal((await bench.record(reply.requestId))['estimated'], false)
  }
  await bench.assertBalanced()
})

function chatStream(bytes: number): Buffer {
  const events: string[] = []
  for (let written = 0; written < bytes; written += 60_000) {
    const content = randomBytes(45_000).toString('base64')
    events.push(`data: {"model":"gpt-5.5","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`)
  }
  events.push('data: {"model":"gpt-5.5","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
  const spent = { prompt_tokens: 1_000, completion_tokens: 2_000, total_tokens: 3_000 }
  events.push(`data: ${JSON.stringify({ model: 'gpt-5.5', choices: [], usage: spent })}\n\n`)
  return Buffer.from(`${events.join('')}data: [DONE]\n\n`)
}

const messages = [{ role: 'user', content: 'Hi' }]
const ASKING = { model: 'gpt-5.5', stream: true, stream_options: { include_usage: true }, messages }
const STREAM = requestTo('/v1/chat/completions', ASKING)

const longStream = chatStream(1.6 * OBSERVER_BACKLOG_BYTES_MAX)
const longPacked = pack(longStream)

test('a compressed stream larger than the backlog is billed by its usage', async () => {
  const encoded = longPacked
  assert.ok(encoded.length > OBSERVER_BACKLOG_BYTES_MAX)
  upstream.answer(() => [{ send: chunked(OK, EVENTS_IN('gzip'), [encoded]) }])
  const reply = await call(STREAM)
  assert.equal(reply.ended, 'complete')
  assert.ok(reply.body.equals(encoded))
  const record = await bench.record(reply.requestId)
  assert.equal(record['estimated'], false)
  assert.deepEqual(tokensOf(record), [1_000, 2_000])
  await bench.assertBalanced()
})

test('a reply that is compressed despite usage injection passes unchanged', async () => {
  upstream.answer(() => [{ send: chunked(OK, EVENTS_IN('gzip'), [longPacked]) }])
  const reply = await call(requestTo('/v1/chat/completions', { model: 'gpt-5.5', stream: true, messages }))
  assert.ok(reply.body.equals(longPacked))
  assert.deepEqual(tokensOf(await bench.record(reply.requestId)), [1_000, 2_000])
})

test('a reply in an unknown coding passes unchanged and is billed the output part of its hold', async () => {
  const encoded = randomBytes(500)
  upstream.answer(() => [{ send: sized(OK, JSON_IN('secret'), encoded) }])
  const body = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1_000 }
  const reply = await call(requestTo('/v1/chat/completions', body))
  assert.ok(reply.body.equals(encoded))
  const { usage, estimated } = await bench.record(reply.requestId)
  assert.deepEqual([(usage as Record<string, number>)['output_tokens'], estimated], [1_000, true])
})

test('a corrupt gzip reply passes unchanged and is estimated', async () => {
  const encoded = pack(chatStream(4 * MiB))
  encoded.fill(0xff, encoded.length >> 1, (encoded.length >> 1) + 1_000)
  upstream.answer(() => [{ send: chunked(OK, EVENTS_IN('gzip'), [encoded]) }])
  const reply = await call(STREAM)
  assert.equal(reply.ended, 'complete')
  assert.ok(reply.body.equals(encoded))
  const record = await bench.record(reply.requestId)
  assert.equal(record['estimated'], true)
  const [input = 0, output = 0] = tokensOf(record)
  assert.ok(input > 0 && output > 100_000, `${output} tokens of the half that could be read`)
  // A reply that is buffered before it is read also passes unchanged and is estimated.
  const held = pack(embeddings(2 * MiB))
  held.fill(0xff, held.length >> 1, (held.length >> 1) + 1_000)
  upstream.answer(() => [{ send: sized(OK, JSON_IN('gzip'), held) }])
  const embedded = await call(EMBED)
  assert.ok(embedded.body.equals(held))
  assert.equal((await bench.record(embedded.requestId))['estimated'], true)
  await bench.assertBalanced()
})

function tokensOf(record: Record<string, unknown>): number[] {
  const { input_tokens, output_tokens } = record['usage'] as Record<string, number>
  return [input_tokens ?? 0, output_tokens ?? 0]
}
