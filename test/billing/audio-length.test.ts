import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { frames, wav } from '../support/audio-bytes.ts'
import { after, test } from '../support/suite.ts'
import { startBillingBench } from './bench-of-one.ts'

let answer: { readonly type: string; readonly body: Buffer | string; readonly coding?: string }
const upstream = createServer(async (req, res) => {
  for await (const _ of req);
  const coding: Record<string, string> =
    answer.coding === undefined ? {} : { 'content-encoding': answer.coding }
  res.writeHead(200, { ...(answer.type === '' ? {} : { 'content-type': answer.type }), ...coding })
  res.end(answer.body)
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
const chatUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`
const bench = await startBillingBench({ chatUrl })
after(async () => {
  await bench.close()
  upstream.closeAllConnections()
  upstream.close()
})

interface Billed {
  readonly costUsd: number
  readonly headerUsd: string | null
  readonly estimated: unknown
  readonly unpriced: unknown
  readonly overrun: unknown
  readonly usage: Record<string, number>
}

async function send(
  path: string,
  body: Uint8Array<ArrayBuffer>,
  headers: Record<string, string>,
): Promise<Billed> {
  const authorization = `Bearer ${bench.gateway.apiKey}`
  const init = { method: 'POST', body, headers: { ...headers, authorization } }
  const response = await fetch(bench.gateway.url + path, init)
  await response.arrayBuffer().catch(() => undefined)
  const record = await bench.record(response.headers.get('x-svc-request-id') ?? '')
  return {
    costUsd: Number(record['cost_usd']),
    headerUsd: response.headers.get('x-svc-cost-usd'),
    estimated: record['estimated'],
    unpriced: record['unpriced'],
    overrun: record['overrun'],
    usage: record['usage'] as Record<string, number>,
  }
}

interface Upload {
  readonly model?: string
  readonly file?: Buffer
  readonly coding?: 'gzip'
  readonly path?: string
}

async function transcribe({
  model = 'whisper-1',
  file = wav(20_000),
  coding,
  path = '/v1/audio/transcriptions',
}: Upload): Promise<Billed> {
  const form = new FormData()
  form.append('file', new Blob([Uint8Array.from(file)]), 'a.wav')
  form.append('response_format', 'text')
  form.append('model', model)
  const encoded = new Response(form)
  const type = encoded.headers.get('content-type') ?? ''
  const plain = Buffer.from(await encoded.arrayBuffer())
  const body = coding === undefined ? plain : gzipSync(plain)
  const headers: Record<string, string> = { 'content-type': type }
  if (coding !== undefined) headers['content-encoding'] = coding
  return await send(path, Uint8Array.from(body), headers)
}

/** The price of whisper-1 is $0.36 an hour. */
const whisperUsd = (seconds: number) => Number((seconds * 0.0001).toFixed(9))

test('a recording is billed by its length if the transcript is only text', async () => {
  answer = { type: 'text/plain; charset=utf-8', body: 'Hello.\n' }
  for (const path of ['/v1/audio/transcriptions', '/v1/audio/translations']) {
    const { costUsd, estimated, unpriced } = await transcribe({ path })
    assert.deepEqual([costUsd, estimated, unpriced], [whisperUsd(20), true, false])
  }
  // Input is one token per 100 ms, and output one or two for the text.
  const { usage } = await transcribe({ model: 'gpt-4o-transcribe' })
  const heard = usage['audio_input_tokens'] ?? usage['input_tokens'] ?? 0
  assert.ok(heard >= 195 && heard <= 200, `${heard} tokens of 200`)
  assert.ok((usage['output_tokens'] ?? 0) > 0)
})

test('the hold of a compressed recording covers what its decoded bytes may cost', async () => {
  answer = { type: 'application/json', body: '{"text":"","usage":{"type":"duration","seconds":4000}}' }
  const { costUsd, overrun } = await transcribe({ file: Buffer.alloc(1_000_000), coding: 'gzip' })
  assert.deepEqual([costUsd, overrun], [0.4, false])
})

test('a duration stated in the reply is billed, rounded to whole seconds like upstream’s own', async () => {
  const body = { task: 'transcribe', duration: 8.470000267028809, text: 'The beach was a popular spot.' }
  answer = { type: 'application/json', body: JSON.stringify(body) }
  assert.equal((await transcribe({})).costUsd, whisperUsd(9))
  answer = { type: 'application/json', body: JSON.stringify({ ...body, duration: '61.2' }) }
  assert.equal((await transcribe({})).costUsd, whisperUsd(62))
  // Usage takes precedence over the duration.
  const usage = { type: 'duration', seconds: 7 }
  answer = { type: 'application/json', body: JSON.stringify({ ...body, usage }) }
  const stated = await transcribe({})
  assert.equal(stated.costUsd, whisperUsd(7))
  assert.equal(stated.estimated, false)
  for (const duration of [-1, 'long', null, {}, 1e300]) {
    answer = { type: 'application/json', body: JSON.stringify({ ...body, duration }) }
    assert.equal((await transcribe({})).costUsd, whisperUsd(20), String(duration))
  }
})

async function speak(body: object, headers: Record<string, string> = {}): Promise<Billed> {
  const text = JSON.stringify({ model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'Hi.', ...body })
  return await send('/v1/audio/speech', Uint8Array.from(Buffer.from(text)), {
    'content-type': 'application/json',
    ...headers,
  })
}

const spoken: Readonly<Record<string, readonly [string, Buffer]>> = {
  mp3: ['audio/mpeg', frames([0xff, 0xf3, 0xc4, 0xc4], 384, 416)],
  wav: ['audio/wav', wav(10_000, { hz: 24_000, stated: 0xffffffff })],
  pcm: ['audio/pcm', Buffer.alloc(480_000, 7)],
}

for (const [format, [type, body]] of Object.entries(spoken)) {
  test(`ten seconds of speech in ${format} are 200 tokens`, async () => {
    answer = { type, body }
    const { usage, estimated, unpriced } = await speak({ response_format: format })
    const tokens = usage['audio_output_tokens'] ?? usage['output_tokens'] ?? 0
    assert.ok(Math.abs(tokens - 200) <= 1, `${tokens} tokens`)
    assert.equal(estimated, true)
    assert.equal(unpriced, false)
    // The tokens are the same without a specific content type, and compressed.
    answer = { type: 'application/octet-stream', body: gzipSync(body), coding: 'gzip' }
    assert.deepEqual((await speak({ response_format: format })).usage, usage)
  })
}

/** The price of tts-1 is $15 for a million characters. */
const ttsUsd = (characters: number) => Number((characters * 0.000015).toFixed(9))
const AUDIO = { type: 'audio/mpeg', body: Buffer.alloc(2_000) }

test('speech billed per character is counted in compressed requests, and its cost is a header', async () => {
  answer = AUDIO
  const input = 'Žluťoučký 🐎'
  const plain = Buffer.from(JSON.stringify({ model: 'tts-1', voice: 'alloy', input }))
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  const billed = await send('/v1/audio/speech', Uint8Array.from(gzipSync(plain)), headers)
  assert.equal(billed.costUsd, ttsUsd(11))
  assert.equal(billed.headerUsd, '0.000165')
  assert.equal(billed.estimated, false)
  const brotli = Uint8Array.from(brotliCompressSync(plain))
  const other = await send('/v1/audio/speech', brotli, { ...headers, 'content-encoding': 'br' })
  assert.equal(other.costUsd, ttsUsd(11))
})

test('characters are counted after JSON unescaping', async () => {
  answer = AUDIO
  const type = { 'content-type': 'application/json' }
  const speakRaw = (input: string) =>
    send('/v1/audio/speech', Uint8Array.from(Buffer.from(`{"model":"tts-1","input":${input}}`)), type)
  assert.equal((await speakRaw('"\\u0041\\ud83d\\udc0e\\n\\""')).costUsd, ttsUsd(4))
  assert.equal((await speakRaw('"\\ud83d\\ud83d"')).costUsd, ttsUsd(2))
  assert.equal((await speakRaw('""')).costUsd, 0)
  // A text too long to scan, which no upstream accepts.
  const long = await speakRaw(`"${'x'.repeat(300_000)}"`)
  assert.equal(long.estimated, true)
})
