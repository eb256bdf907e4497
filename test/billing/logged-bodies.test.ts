import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { readDatabase } from '../support/read-database.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'

const bench = await startBillingBench()
closeAfter(bench)

async function own(method: string, path: string, body?: unknown) {
  const response = await fetch(bench.gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${bench.gateway.adminKey}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const { body: logged } = await own('POST', '/v1/keys', { name: 'logged', log_requests: true })
const loggedKey = String(logged['key'])

interface Kept {
  readonly content: string
  readonly encoding: string
  readonly content_type: string | null
  readonly length_bytes: number
  readonly truncated: boolean
}

async function bodiesOf(requestId: string): Promise<{ request: Kept | null; response: Kept | null }> {
  let bodies: unknown
  await until(`there are bodies of ${requestId}`, async () => {
    const { status, body } = await own('GET', `/gateway/v1/requests/${requestId}/bodies`)
    bodies = body
    return status === 200
  })
  return bodies as { request: Kept | null; response: Kept | null }
}

/** All bytes of logged bodies: separate files, or a table. */
async function keptBytes(): Promise<Buffer[]> {
  const { dataDir, databaseUrl } = bench.gateway
  if (databaseUrl === null) {
    const files = readdirSync(dataDir).filter((name) => name.startsWith('bodies.db'))
    return files.map((name) => readFileSync(join(dataDir, name)))
  }
  const rows = await readDatabase(bench.gateway, 'SELECT * FROM call_body')
  return rows
    .flatMap((row) => Object.values(row))
    .map((value) => (value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(String(value))))
}

const message = {
  model: 'claude-haiku-5-5',
  max_tokens: 32,
  messages: [{ role: 'user', content: 'Grüße, world' }],
}

test('a key with log_requests stores both bodies of a call unchanged', async () => {
  const reply = await bench.call('/v1/messages', message, { key: loggedKey })
  const { request, response } = await bodiesOf(reply.requestId)
  assert.deepEqual(JSON.parse(request?.content ?? ''), message)
  assert.equal(request?.length_bytes, Buffer.byteLength(JSON.stringify(message)))
  assert.equal(request?.truncated, false)
  assert.equal(response?.content, reply.body.toString())
  assert.match(response?.content_type ?? '', /application\/json/)
})

test('the bodies of hundreds of concurrent calls are all logged', async () => {
  const calls = Array.from({ length: 230 }, () =>
    bench.call('/v1/messages', message, { key: loggedKey, simulate: 'delay=1000' }),
  )
  for (const { requestId } of await Promise.all(calls)) await bodiesOf(requestId)
})

test('a streamed body is logged, and a compressed reply is logged decoded', async () => {
  const stream = await bench.call('/v1/messages', { ...message, stream: true }, { key: loggedKey })
  assert.match((await bodiesOf(stream.requestId)).response?.content ?? '', /^event: message_start/)
  const coded = await bench.call('/v1/messages', message, { key: loggedKey, simulate: 'encode=gzip' })
  assert.match((await bodiesOf(coded.requestId)).response?.content ?? '', /"type": ?"message"/)
})

test('a key without log_requests stores no body, but the record of the call', async () => {
  const reply = await bench.call('/v1/messages', message)
  await bench.record(reply.requestId)
  const { status, body } = await own('GET', `/gateway/v1/requests/${reply.requestId}/bodies`)
  assert.equal(status, 404)
  assert.match(JSON.stringify(body), /No bodies are stored/)
})

test('a large body is logged up to almost one mebibyte, with its full length', async () => {
  const long = { ...message, messages: [{ role: 'user', content: 'x'.repeat(3_000_000) }] }
  const reply = await bench.call('/v1/messages', long, { key: loggedKey })
  const { request } = await bodiesOf(reply.requestId)
  // The last 512 bytes could be half of a secret.
  assert.equal(request?.content.length, 1024 * 1024 - 512)
  assert.equal(request?.length_bytes, Buffer.byteLength(JSON.stringify(long)))
  assert.equal(request?.truncated, true)
})

test('secrets in a logged body are removed, whether it was compressed or not', async () => {
  const secretive = { ...message, messages: [{ role: 'user', content: `my key is ${loggedKey}` }] }
  const plain = await bench.call('/v1/messages', secretive, { key: loggedKey })
  assert.match((await bodiesOf(plain.requestId)).request?.content ?? '', /my key is svc_live_\[redacted\]/)
  await bodiesOf(plain.requestId)
  const kept = await keptBytes()
  assert.ok(kept.length > 0)
  for (const bytes of kept) assert.ok(!bytes.includes(loggedKey))
})

test('a streamed upload is logged and counted', async () => {
  const boundary = 'b0undary'
  const form = [
    `--${boundary}`,
    'Content-Disposition: form-data; name="purpose"',
    '',
    'assistants',
    `--${boundary}`,
    'Content-Disposition: form-data; name="file"; filename="a.bin"',
    '',
    gzipSync('binary').toString('latin1'),
    `--${boundary}--`,
    '',
  ].join('\r\n')
  const response = await fetch(`${bench.gateway.url}/v1/files`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${loggedKey}`,
      'content-type': `multipart/form-data; boundary=${boundary}`,
    },
    body: Buffer.from(form, 'latin1'),
  })
  const reply = await response.text()
  assert.equal(response.status, 200, reply)
  const id = response.headers.get('x-svc-request-id') ?? ''
  const { request } = await bodiesOf(id)
  assert.equal(request?.encoding, 'base64')
  assert.deepEqual(Buffer.from(request?.content ?? '', 'base64'), Buffer.from(form, 'latin1'))
  assert.equal((await bench.record(id))['bytes_in'], form.length)
})

test('GET /gateway/v1/requests/{id}/bodies 404: unknown request', async () => {
  assert.equal((await own('GET', '/gateway/v1/requests/req_none/bodies')).status, 404)
})
