import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { startGateway } from '../support/gateway.ts'
import { after, test } from '../support/suite.ts'

/** Chat batches of keys with an allowlist: only from files that the same key uploaded here. */

let files = 0
const batches: string[] = []
const upstream = createServer(async (req, res) => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const coded = req.headers['x-coded'] === '1'
  const isFile = req.url?.endsWith('/files') === true
  if (!isFile) batches.push(Buffer.concat(chunks).toString())
  const json = JSON.stringify(isFile ? { id: `file_${++files}`, object: 'file' } : { id: 'batch_1' })
  const body = coded ? gzipSync(json) : Buffer.from(json)
  res.writeHead(200, {
    'content-type': 'application/json',
    'content-length': body.length,
    ...(coded ? { 'content-encoding': 'gzip' } : {}),
  })
  res.end(body)
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
const gateway = await startGateway({
  chatUrl: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`,
  chatKey: 'pc',
})
after(async () => {
  await gateway.close()
  upstream.close()
})

const newKey = async () => (await gateway.createKey('batcher', { allowed_models: ['gpt-6-luna'] })).key

async function upload(key: string, models: readonly string[], coded = false): Promise<string> {
  const lines = models.map((model) =>
    JSON.stringify({ custom_id: 'x', url: '/v1/responses', body: { model } }),
  )
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([lines.join('\n')]), 'requests.jsonl')
  const response = await fetch(`${gateway.url}/v1/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...(coded ? { 'x-coded': '1' } : {}) },
    body: form,
  })
  assert.equal(response.status, 200)
  return ((await response.json()) as { id: string }).id
}

async function startBatch(key: string, fileId: string): Promise<number> {
  const response = await fetch(`${gateway.url}/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input_file_id: fileId, endpoint: '/v1/responses', completion_window: '24h' }),
  })
  await response.text()
  return response.status
}

test('a batch of a file with allowed models runs right after the upload, every time', async () => {
  const key = await newKey()
  for (let i = 0; i < 20; i++) {
    assert.equal(await startBatch(key, await upload(key, ['gpt-6-luna'], i % 2 === 1)), 200)
  }
})

test('a batch of a file with one other model in it does not run, and nothing of it goes upstream', async () => {
  const key = await newKey()
  const before = batches.length
  assert.equal(await startBatch(key, await upload(key, ['gpt-6-luna', 'gpt-6-sol'])), 403)
  assert.equal(batches.length, before)
})

test('a file of another key, and one that nobody uploaded here, make no batch', async () => {
  const [key, other] = [await newKey(), await newKey()]
  assert.equal(await startBatch(key, await upload(other, ['gpt-6-luna'])), 403)
  assert.equal(await startBatch(key, 'file_from_elsewhere'), 403)
})

test('a key without an allowlist makes batches of every file', async () => {
  assert.equal(await startBatch(gateway.apiKey, 'file_from_elsewhere'), 200)
})
