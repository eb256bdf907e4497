import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MP3_FRAME_MS, mp3 } from '../support/audio-bytes.ts'
import { connect } from '../support/raw-client.ts'
import { readDatabase } from '../support/read-database.ts'
import { test } from '../support/suite.ts'
import { type BillingBench, startBillingBench } from './bench-of-one.ts'

async function withUpstream(
  answer: RequestListener,
  prove: (bench: BillingBench) => Promise<void>,
): Promise<void> {
  const upstream = createServer(answer)
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const bench = await startBillingBench({ messagesUrl: url, chatUrl: `${url}/v1` })
  try {
    await prove(bench)
    await bench.assertBalanced()
  } finally {
    await bench.close()
    upstream.closeAllConnections()
    upstream.close()
  }
}

test('a stream that says nothing but an error costs nothing', async () => {
  const answer: RequestListener = (req, res) => {
    req.resume().on('end', () => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.end(
        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
      )
    })
  }
  await withUpstream(answer, async (bench) => {
    const body = {
      model: 'claude-haiku-5-5',
      max_tokens: 9,
      stream: true,
      messages: [{ role: 'user', content: 'Hi' }],
    }
    const reply = await bench.call('/v1/messages', body)
    assert.equal(reply.trailer('x-svc-cost-usd'), '0')
  })
})

test('an upload that is left before its answer is not billed as if its bytes were tokens', async () => {
  const arrived = Promise.withResolvers<void>()
  const silent: RequestListener = (req) => void req.resume().on('end', arrived.resolve)
  await withUpstream(silent, async (bench) => {
    const boundary = 'xxxxxxxx'
    const part = (name: string, more: string, value: string | Buffer) =>
      Buffer.concat([
        Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`),
        Buffer.from(value),
        Buffer.from('\r\n'),
      ])
    const body = Buffer.concat([
      part('model', '', 'gpt-4o-transcribe'),
      part('file', '; filename="a.mp3"', mp3(new Array(12_000).fill(9))),
      Buffer.from(`--${boundary}--\r\n`),
    ])
    const head = [
      'POST /v1/audio/transcriptions HTTP/1.1',
      'Host: gateway',
      `Authorization: Bearer ${bench.gateway.apiKey}`,
      `Content-Type: multipart/form-data; boundary=${boundary}`,
      `Content-Length: ${body.length}`,
      'User-Agent: the-one',
    ]
    const client = await connect(bench.gateway)
    await client.send(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]))
    await arrived.promise
    client.leave()
    const [call] = await readDatabase(bench.gateway, "SELECT id FROM call WHERE user_agent = 'the-one'")
    const record = await bench.record(String(call?.['id']))
    assert.equal(record['estimated'], true)
    // Ten tokens a second: some 3,000 for five minutes, not a million.
    const tokens = Math.ceil((12_000 * MP3_FRAME_MS) / 100)
    assert.equal((record['usage'] as Record<string, number>)['input_tokens'], tokens)
    assert.ok(Number(record['cost_usd']) > 0)
  })
})
