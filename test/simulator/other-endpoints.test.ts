import assert from 'node:assert/strict'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digText } from './dig.ts'
import { anthropicHeaders, chatBody, postJson, send } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

test('embeddings are vectors of length 1 that depend on the text alone, in either encoding', async () => {
  const body = { model: 'text-embedding-3-small', input: ['toll', 'gate'], dimensions: 64 }
  const { json } = await postJson(simulator, '/v1/embeddings', body)
  const vector = digList(json, 'data.1.embedding').map(Number)
  assert.equal(vector.length, 64)
  assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-6)
  assert.deepEqual(dig(json, 'usage'), { prompt_tokens: 2, total_tokens: 2 })
  const encoded = await postJson(simulator, '/v1/embeddings', { ...body, encoding_format: 'base64' })
  const bytes = Buffer.from(digText(encoded.json, 'data.1.embedding'), 'base64')
  assert.deepEqual(
    Array.from({ length: 64 }, (_, index) => bytes.readFloatLE(index * 4)),
    vector,
  )
  const whole = await postJson(simulator, '/v1/embeddings', { model: 'text-embedding-3-large', input: 'x' })
  assert.equal(digList(whole.json, 'data.0.embedding').length, 3_072)
  assert.equal((await postJson(simulator, '/v1/embeddings', { ...body, input: [] })).status, 400)
})

test('moderation flags plain words and leaves others alone', async () => {
  const { json } = await postJson(simulator, '/v1/moderations', {
    input: ['good morning', 'I will kill you'],
  })
  assert.equal(dig(json, 'model'), 'omni-moderation-latest')
  assert.equal(dig(json, 'results.0.flagged'), false)
  assert.equal(dig(json, 'results.1.flagged'), true)
  assert.equal(dig(json, 'results.1.categories.violence'), true)
})

function form(fields: Record<string, string>, content: string): FormData {
  const data = new FormData()
  for (const [name, value] of Object.entries(fields)) data.set(name, value)
  data.set('file', new Blob([content], { type: 'text/plain' }), 'notes.txt')
  return data
}

test('a file of the Chat surface is uploaded, listed, fetched, downloaded and deleted', async () => {
  const url = `${simulator.chatUrl}/files`
  const body = form({ purpose: 'user_data' }, 'line one\r\n--line two')
  const file: unknown = await (await fetch(url, { method: 'POST', body })).json()
  const id = digText(file, 'id')
  assert.match(id, /^file-\w{22}$/)
  assert.equal(dig(file, 'bytes'), 20)
  assert.equal(dig(file, 'filename'), 'notes.txt')
  const listed = await send(simulator, 'GET', '/v1/files?purpose=user_data')
  assert.deepEqual(dig(listed.json, 'data'), [file])
  assert.deepEqual(dig((await send(simulator, 'GET', '/v1/files?purpose=batch')).json, 'data'), [])
  assert.deepEqual((await send(simulator, 'GET', `/v1/files/${id}`)).json, file)
  const content = await fetch(`${url}/${id}/content`)
  assert.equal(content.headers.get('content-type'), 'application/octet-stream')
  assert.equal(await content.text(), 'line one\r\n--line two')
  assert.equal(dig((await send(simulator, 'DELETE', `/v1/files/${id}`)).json, 'deleted'), true)
  assert.equal((await send(simulator, 'GET', `/v1/files/${id}`)).status, 404)
})

test('files are listed newest first, or oldest first, in pages', async () => {
  const ids: string[] = []
  for (const content of ['one', 'two', 'three']) {
    const sent = { method: 'POST', body: form({ purpose: 'evals' }, content) }
    ids.unshift(digText(await (await fetch(`${simulator.chatUrl}/files`, sent)).json(), 'id'))
  }
  const list = async (query: string) => {
    const { json } = await send(simulator, 'GET', `/v1/files?purpose=evals&${query}`)
    return { ids: digList(json, 'data').map((file) => dig(file, 'id')), hasMore: dig(json, 'has_more') }
  }
  assert.deepEqual(await list(''), { ids, hasMore: false })
  assert.deepEqual(await list('order=asc'), { ids: ids.toReversed(), hasMore: false })
  assert.deepEqual(await list('limit=2'), { ids: ids.slice(0, 2), hasMore: true })
  assert.deepEqual(await list(`limit=2&after=${ids[1]}`), { ids: ids.slice(2), hasMore: false })
})

test('files of the Messages surface are kept apart and cannot be downloaded', async () => {
  const sent = { method: 'POST', headers: anthropicHeaders, body: form({}, 'hello') }
  const file: unknown = await (await fetch(`${simulator.messagesUrl}/v1/files`, sent)).json()
  const id = digText(file, 'id')
  assert.equal(dig(file, 'size_bytes'), 5)
  assert.deepEqual(dig((await send(simulator, 'GET', '/v1/files', anthropicHeaders)).json, 'data'), [file])
  assert.equal((await send(simulator, 'GET', `/v1/files/${id}`)).status, 404)
  const content = await send(simulator, 'GET', `/v1/files/${id}/content`, anthropicHeaders)
  assert.equal(dig(content.json, 'error.details.error_code'), 'file_not_downloadable')
  const gone = await send(simulator, 'DELETE', `/v1/files/${id}`, anthropicHeaders)
  assert.deepEqual(gone.json, { id, type: 'file_deleted' })
})

test('an upload without its fields is refused', async () => {
  const refused = await fetch(`${simulator.chatUrl}/files`, { method: 'POST', body: form({}, 'x') })
  assert.equal(dig(await refused.json(), 'error.param'), 'purpose')
  const noForm = await postJson(simulator, '/v1/files', {})
  assert.equal(noForm.status, 400)
})

test('a compressed request body is read, and a broken or bloated one refused', async () => {
  const upload = async (encoding: string, body: Buffer) => {
    const response = await fetch(`${simulator.chatUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-encoding': encoding },
      body: new Uint8Array(body),
    })
    return { status: response.status, json: (await response.json()) as unknown }
  }
  const json = Buffer.from(JSON.stringify(chatBody()))
  assert.equal((await upload('gzip', gzipSync(json))).status, 200)
  assert.equal((await upload('zstd', zstdCompressSync(json))).status, 200)
  assert.equal(dig((await upload('gzip', json)).json, 'error.code'), 'request_body_encoding_invalid')
  assert.equal(dig((await upload('lzma', json)).json, 'error.code'), 'request_body_encoding_unsupported')
  const bomb = gzipSync(Buffer.alloc(65 * 1024 * 1024))
  assert.equal((await upload('gzip', bomb)).status, 413)
})
