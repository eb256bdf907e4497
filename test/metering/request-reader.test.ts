import assert from 'node:assert/strict'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { eachShape, GLANCE, objectShape, type SkimmedElement, VALUE } from '../../src/metering/json-shape.ts'
import { type Doubt, type ReadBytes, readerFor } from '../../src/metering/request-reader.ts'
import { test } from '../support/suite.ts'

const elements: SkimmedElement[] = []
const READS = {
  shape: objectShape({ model: VALUE, stream: VALUE, list: eachShape(GLANCE) }),
  onElement: (element: SkimmedElement) => elements.push(element),
  fields: ['model'],
}

function modelAsked(read: ReadBytes): unknown {
  if (read.kind === 'json') return read.skimmed.value['model']
  return read.kind === 'form' ? (read.form.fields.get('model') ?? null) : null
}

const json = Buffer.from(
  JSON.stringify({ model: 'claude-haiku-5-5', stream: true, padding: 'x'.repeat(50_000) }),
)

/** Reads a body in pieces of a few hundred bytes, waiting where the reader asks for it. */
async function read(body: Buffer, contentType?: string, contentEncoding?: string): Promise<ReadBytes> {
  const reader = readerFor(contentType, contentEncoding, READS)
  for (let at = 0; at < body.length; at += 333) await reader.write(body.subarray(at, at + 333))
  return await reader.end()
}

/** The doubt about a body that names the model `a`; the model must be found in spite of the doubt. */
async function doubtOf(body: Buffer, contentType: string, contentEncoding?: string): Promise<Doubt | null> {
  const facts = await read(body, contentType, contentEncoding)
  assert.equal(modelAsked(facts), 'a')
  assert.ok(facts.kind === 'json' || facts.kind === 'form')
  return facts.doubt
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
    assert.equal(modelAsked(facts), 'claude-haiku-5-5')
    assert.equal(facts.kind === 'json' && facts.skimmed.value['stream'], true)
  })
}

test('deflate without its zlib header is read too', async () => {
  assert.equal(modelAsked(await read(deflateRawSync(json), undefined, 'deflate')), 'claude-haiku-5-5')
})

const unreadable: readonly [what: string, body: Buffer, coding: string | undefined, reason: string][] = [
  ['a coding that nobody knows', json, 'pack200', 'unknown_content_encoding'],
  ['a chain of codings', gzipSync(gzipSync(json)), 'gzip, gzip', 'unknown_content_encoding'],
  ['bytes that are not in their coding', json, 'gzip', 'corrupt_content_encoding'],
  ['a coding that is cut off', gzipSync(json).subarray(0, 100), 'gzip', 'corrupt_content_encoding'],
  ['no JSON', Buffer.from('model=x'), undefined, 'not_json'],
  ['nothing', Buffer.alloc(0), undefined, 'empty'],
]
for (const [what, body, coding, reason] of unreadable) {
  test(`${what}: unreadable, and says why`, async () => {
    assert.deepEqual(await read(body, 'application/json', coding), { kind: 'unreadable', reason })
  })
}

test('a form is read as a form, by what the request says it is', async () => {
  const form = new FormData()
  form.set('model', 'whisper-1')
  form.set('file', new Blob([new Uint8Array(10_000)]), 'a.wav')
  const whole = new Response(form)
  const type = whole.headers.get('content-type') ?? ''
  const facts = await read(Buffer.from(await whole.arrayBuffer()), type)
  assert.equal(modelAsked(facts), 'whisper-1')
})

test('a form without a boundary is unreadable', async () => {
  const facts = await read(Buffer.from('--x'), 'multipart/form-data')
  assert.deepEqual(facts, { kind: 'unreadable', reason: 'no_boundary' })
})

test('a body that could be a form of another kind is not read as JSON', async () => {
  const facts = await read(Buffer.from('{"model":"a"}'), 'multipart/mixed; boundary=x')
  assert.deepEqual(facts, { kind: 'unreadable', reason: 'ambiguous_content_type' })
})

test('JSON that calls itself a form is read, and is suspect only if it could be one', async () => {
  const type = 'application/x-www-form-urlencoded'
  const doubt = (json: string, contentType = type) => doubtOf(Buffer.from(json), contentType)
  assert.equal(await doubt('{"model":"a","x":"&model=b&"}'), 'may_be_form')
  assert.equal(await doubt('{"model":"a","x":";model=b;"}'), 'may_be_form')
  assert.equal(await doubt('{"model":"a","x":"1 = 1"}'), null)
  assert.equal(await doubt('{"model":"a","x":"&model=b&"}', 'text/plain'), null)
})

for (const charset of ['utf-16', 'shift_jis', 'UTF-7', 'iso-8859-1', '"utf-16"', '', 'utf-8, utf-16']) {
  test(`a body that says that it is in the charset ${charset || 'of no name'} is read, and is suspect`, async () => {
    const type = `application/json; charset=${charset}`
    assert.equal(await doubtOf(Buffer.from('{"model":"a"}'), type), 'foreign_charset')
  })
}

for (const charset of ['utf-8', 'UTF-8', 'utf8', '"utf-8"', 'us-ascii', 'utf-8; x=y']) {
  test(`a body in the charset ${charset} is not suspect`, async () => {
    assert.equal(await doubtOf(Buffer.from('{"model":"a"}'), `application/json; charset=${charset}`), null)
  })
}

test('elements are handed over, also those of a coded body', async () => {
  const read = await readCoded('{"model":"m","list":["x","y"]}')
  assert.deepEqual(
    elements.map(({ value }) => value),
    ['x', 'y'],
  )
  assert.equal(modelAsked(read), 'm')
})

function readCoded(text: string): Promise<ReadBytes> {
  return read(gzipSync(text), 'application/json', 'gzip')
}
