import assert from 'node:assert/strict'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { ambiguityAtEndpoint, unreadable } from '../../src/providers/ambiguity.ts'
import type { Endpoint } from '../../src/providers/endpoint.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { RequestReader } from '../../src/providers/read-request.ts'
import type { RequestFacts } from '../../src/providers/request-facts.ts'
import { test } from '../support/suite.ts'

const RESPONSES = findEndpoint('chat', 'POST', '/v1/responses') as Endpoint

const json = Buffer.from(
  JSON.stringify({ model: 'claude-haiku-5-5', stream: true, padding: 'x'.repeat(50_000) }),
)

/** Reads a body in chunks of a few hundred bytes, waiting when the reader asks to. */
async function read(body: Buffer, contentType?: string, contentEncoding?: string): Promise<RequestFacts> {
  const reader = new RequestReader(RESPONSES, { contentType, contentEncoding })
  for (let at = 0; at < body.length; at += 333) await reader.write(body.subarray(at, at + 333))
  return await reader.end()
}

/** Expects the body to name the model `a`, and this doubt about it to be reported; null: none. */
async function expectDoubt(body: string, contentType: string, doubt: string | null): Promise<void> {
  const facts = await read(Buffer.from(body), contentType)
  assert.equal(facts.body['model'], 'a')
  assert.deepEqual(facts.ambiguity, doubt === null ? null : unreadable(doubt))
}

const codings: Record<string, (body: Buffer) => Buffer> = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
  deflate: deflateSync,
  ' GZIP ': gzipSync,
  identity: (body) => body,
}
for (const [coding, encode] of Object.entries(codings)) {
  test(`a body in ${coding.trim()} is read from a decoded copy`, async () => {
    const facts = await read(encode(json), 'application/json', coding)
    assert.equal(facts.kind, 'json')
    assert.deepEqual(facts.body, { model: 'claude-haiku-5-5', stream: true })
  })
}

test('deflate without its zlib header is read too', async () => {
  const facts = await read(deflateRawSync(json), undefined, 'deflate')
  assert.equal(facts.body['model'], 'claude-haiku-5-5')
  assert.deepEqual(facts.ambiguity, unreadable('deflate'))
})

const broken: readonly [what: string, body: Buffer, coding: string | undefined, reason: string][] = [
  ['an unknown coding', json, 'pack200', 'unknown_content_encoding'],
  ['a chain of codings', gzipSync(gzipSync(json)), 'gzip, gzip', 'unknown_content_encoding'],
  ['bytes that contradict their coding', json, 'gzip', 'corrupt'],
  ['a truncated coding', gzipSync(json).subarray(0, 100), 'gzip', 'corrupt'],
  ['no JSON', Buffer.from('model=x'), undefined, 'not_json'],
  ['nothing', Buffer.alloc(0), undefined, 'empty'],
]
for (const [what, body, coding, reason] of broken) {
  test(`${what}: unreadable, with the reason`, async () => {
    const facts = await read(body, 'application/json', coding)
    assert.equal(facts.kind, 'unreadable')
    assert.deepEqual(facts.ambiguity, unreadable(reason))
  })
}

test('the content type decides whether a form is multipart or urlencoded', async () => {
  const form = new FormData()
  form.set('model', 'whisper-1')
  form.set('file', new Blob([new Uint8Array(10_000)]), 'a.wav')
  const whole = new Response(form)
  const type = whole.headers.get('content-type') ?? ''
  const facts = await read(Buffer.from(await whole.arrayBuffer()), type)
  assert.equal(facts.kind, 'form')
  assert.equal(facts.body['model'], 'whisper-1')
})

test('a form without a boundary, or of another kind, is unreadable', async () => {
  for (const type of ['multipart/form-data', 'multipart/mixed; boundary=x']) {
    const facts = await read(Buffer.from('{"model":"a"}'), type)
    assert.equal(facts.kind, 'unreadable')
    assert.deepEqual(facts.ambiguity, unreadable('ambiguous_content_type'))
  }
})

test('JSON sent as a form is read, and is suspect only if it could be a form', async () => {
  const type = 'application/x-www-form-urlencoded'
  await expectDoubt('{"model":"a","x":"&model=b&"}', type, 'may_be_form')
  await expectDoubt('{"model":"a","x":";model=b;"}', type, 'may_be_form')
  await expectDoubt('{"model":"a","x":"1 = 1"}', type, null)
  await expectDoubt('{"model":"a","x":"&model=b&"}', 'text/plain', null)
})

for (const charset of ['utf-16', 'shift_jis', 'UTF-7', 'iso-8859-1', '"utf-16"', '', 'utf-8, utf-16']) {
  test(`a body with charset ${charset || 'of no name'} is read, and is suspect`, () =>
    expectDoubt('{"model":"a"}', `application/json; charset=${charset}`, 'foreign_charset'))
}

for (const charset of ['utf-8', 'UTF-8', 'utf8', '"utf-8"', 'us-ascii', 'utf-8; x=y']) {
  test(`a body in the charset ${charset} is not suspect`, () =>
    expectDoubt('{"model":"a"}', `application/json; charset=${charset}`, null))
}

test('items of a compressed body are read', async () => {
  const body = gzipSync('{"model":"m","input":[{"type":"message","tools":[{"type":"image_generation"}]}]}')
  const { items } = await read(body, 'application/json', 'gzip')
  assert.deepEqual(items.models.names, ['gpt-image-2'])
})

test('a form for an endpoint that reads JSON, and a long model name, are refused to limited keys only', async () => {
  const form = '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\na\r\n--b--\r\n'
  const long = JSON.stringify({ model: 'a'.repeat(257) })
  for (const [body, type] of [
    [form, 'multipart/form-data; boundary=b'],
    [long, 'application/json'],
  ] as const) {
    const facts = await read(Buffer.from(body), type)
    assert.equal(ambiguityAtEndpoint(RESPONSES, facts)?.refuse, 'limited', type)
  }
})
