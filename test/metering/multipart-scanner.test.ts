import assert from 'node:assert/strict'
import { boundaryOf, type MultipartScan, MultipartScanner } from '../../src/metering/multipart-scanner.ts'
import { test } from '../support/suite.ts'
import { inPieces } from './slices.ts'

const NAMES = ['model', 'n', 'stream', 'prompt'] as const

/** The result for the whole body, which must equal the result for single bytes and chunks of seven. */
function scan(body: string | Uint8Array): MultipartScan {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const [whole, ...cut] = [bytes.length + 1, 1, 7].map((size) =>
    inPieces(new MultipartScanner('B', NAMES), bytes, [size]),
  )
  assert(whole !== undefined)
  for (const answer of cut) assert.deepEqual(answer, whole)
  return whole
}

function part(head: string, content: string): string {
  return `--B\r\n${head}\r\n\r\n${content}\r\n`
}

function field(name: string, content: string): string {
  return part(`Content-Disposition: form-data; name="${name}"`, content)
}

function texts(body: string | Uint8Array): Record<string, string | null> {
  const answer = scan(body)
  assert(answer.kind === 'form', JSON.stringify(answer))
  return Object.fromEntries(answer.fields)
}

function reason(body: string | Uint8Array): string {
  const answer = scan(body)
  return answer.kind === 'unreadable' ? answer.reason : 'read'
}

test('the watched fields of a form are found with their values', () => {
  const body = `${field('file', '{"model":1}')}${field('model', 'gpt-\u00e4')}${field('n', '')}--B--\r\n`
  const answer = scan(body)
  assert(answer.kind === 'form')
  assert.deepEqual(answer.duplicates, [])
  assert.deepEqual(Object.fromEntries(answer.fields), { model: 'gpt-\u00e4', n: '' })
})

test('a duplicate name is reported, and its first value is kept', () => {
  const answer = scan(
    `${field('model', 'a')}${field('x', '')}${field('model', 'b')}${field('model', 'c')}--B--`,
  )
  assert(answer.kind === 'form')
  assert.deepEqual(answer.duplicates, ['model'])
  assert.equal(answer.fields.get('model'), 'a')
})

test('part heads as common clients write them are read', () => {
  const heads = [
    'Content-Disposition: form-data; name="model"',
    'content-disposition:form-data;name="model"',
    'CONTENT-DISPOSITION: FORM-DATA ; NAME=model',
    'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=model',
    'Content-Disposition: form-data; name="model"\r\nContent-Type: text/plain',
    'Content-Disposition: form-data; name="model"\r\nContent-Type: text/plain; charset="UTF-8"',
    'Content-Disposition: form-data; name="model"\r\nContent-Length: 1\r\nContent-Transfer-Encoding: 8bit',
    'Content-Disposition: form-data; name="model"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nX-Any: y',
  ]
  for (const head of heads) assert.deepEqual(texts(`${part(head, 'm')}--B--\r\n`), { model: 'm' }, head)

  const files = [
    'Content-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png',
    "Content-Disposition: form-data; name=file; filename=a.png; filename*=utf-8''a.png",
    'Content-Disposition: form-data; name="file"; filename="a \\"b\\" c.png"',
    'Content-Disposition: form-data; name="file"; filename="C:\\dir\\"',
    'Content-Disposition: form-data; name="file"; filename="file name 1.png"; size=3',
    'Content-Disposition: form-data; name="file%22"; filename=""',
    'Content-Disposition: form-data; name="timestamp_granularities[]"',
    'Content-Disposition: form-data; name=""',
  ]
  for (const head of files) assert.deepEqual(texts(`${part(head, 'm')}--B--\r\n`), {}, head)
})

test('part heads that parsers read differently are refused', () => {
  const heads = [
    '',
    'Content-Type: text/plain',
    'Content-Disposition: attachment; name="a"',
    'Content-Disposition: form-data',
    'Content-Disposition: form-data; filename="x"',
    'Content-Disposition: form-data; filename="x"; name="a"',
    "Content-Disposition: form-data; name*=utf-8''model",
    'Content-Disposition: form-data; name*0="mod"; name*1="el"',
    'Content-Disposition: form-data; name="a"; name="model"',
    'Content-Disposition: form-data; name="a"; name*=utf-8\'\'model',
    'Content-Disposition: form-data; name="a"; filename="x"; filename="; name=model"',
    'Content-Disposition: form-data; name="a"; filename="; name=model"',
    'Content-Disposition: form-data; name="a"; filename="x\\"; name=\\"model"',
    'Content-Disposition: form-data; name="a\\"; name="model"',
    'Content-Disposition: form-data; name="m\\odel"',
    "Content-Disposition: form-data; name='model'",
    'Content-Disposition: form-data; name="a"b',
    'Content-Disposition: form-data; name = "model"',
    'Content-Disposition : form-data; name="model"',
    'Content-Disposition: form-data;\r\n name="model"',
    'Content-Disposition: form-data; name="a"\nContent-Disposition: form-data; name="model"',
    'Content-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="model"',
    'Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain\r\nContent-Type: text/html',
    'Content-Disposition: form-data; name="a\0"',
    'Content-Disposition: form-data; name="mo\rdel"',
    'X\r\nContent-Disposition: form-data; name="a"',
    'Content-Disposition: form-data; name="a"\r',
  ]
  for (const head of heads) assert.equal(reason(`${part(head, 'm')}--B--\r\n`), 'bad_part_head', head)
  const blank = Buffer.from(`${part('Content-Disposition: form-data; name=model\xa0', 'm')}--B--`, 'latin1')
  assert.equal(reason(blank), 'bad_part_head')
  const notUtf8 = Buffer.from(`${field('mo\xffdel', 'm')}--B--`, 'latin1')
  assert.equal(reason(notUtf8), 'bad_part_head')
})

test('a watched name on a file, or on an encoded part, makes the form unreadable', () => {
  const model = 'Content-Disposition: form-data; name="model"'
  for (const head of [
    `${model}; filename="x"`,
    `${model}; filename=""`,
    `${model}; filename*=utf-8''x`,
    `${model};`,
    `${model}\r\nContent-Type: application/octet-stream`,
    `${model}\r\nContent-Type: application/json`,
    `${model}\r\nContent-Type: text/plain; charset=utf-16`,
    `${model}\r\nContent-Type: text/plain; charset="utf-8`,
    `${model}\r\nContent-Type: multipart/mixed; boundary=C`,
    `${model}\r\nContent-Transfer-Encoding: base64`,
  ]) {
    assert.equal(reason(`${part(head, 'm')}--B--\r\n`), 'ambiguous_part', head)
  }
  const latin1 = `${model}\r\nContent-Type: text/plain; charset=iso-8859-1`
  assert.equal(reason(`${part(latin1, 'm\u00e4')}--B--\r\n`), 'ambiguous_part')
})

test('a name that some parsers read as a watched one makes the form unreadable', () => {
  for (const name of [
    'Model',
    'MODEL',
    ' model',
    'model ',
    'mode%6c',
    '%6Dodel',
    '\u017ftream',
    'model%00',
    'MODE%4C',
    'model[]',
    'model[x]',
  ]) {
    assert.equal(reason(`${field(name, 'm')}--B--`), 'ambiguous_name', name)
  }
  for (const name of ['models', 'mode', 'modèl', '100%', '%zz', 'image[]', '[model]']) {
    assert.equal(reason(`${field(name, 'm')}--B--`), 'read', name)
  }
})

test('the boundary is read from a content type that all parsers read alike', () => {
  const seventy = 'b'.repeat(70)
  for (const [contentType, boundary] of [
    ['multipart/form-data; boundary=abc', 'abc'],
    ['Multipart/Form-Data;BOUNDARY=abc', 'abc'],
    [' multipart/form-data ; charset=utf-8; boundary="abc"\t', 'abc'],
    ['multipart/form-data; boundary=abc; charset=UTF-8', 'abc'],
    ['multipart/form-data; boundary="a=b,c/d:e?f(g)h+i_j.k\'l-m"', "a=b,c/d:e?f(g)h+i_j.k'l-m"],
    [`multipart/form-data; boundary=${seventy}`, seventy],
    [
      'multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW',
      '----WebKitFormBoundary7MA4YWxkTrZu0gW',
    ],
  ]) {
    assert.equal(boundaryOf(contentType ?? ''), boundary, contentType)
  }
  for (const contentType of [
    '',
    'application/json',
    'multipart/form-data',
    'multipart/mixed; boundary=abc',
    'multipart/form-datax; boundary=abc',
    'xmultipart/form-data; boundary=abc',
    'multipart/form-data; boundary',
    'multipart/form-data; boundary=',
    'multipart/form-data; boundary=""',
    `multipart/form-data; boundary=${seventy}b`,
    'multipart/form-data; boundary=a; boundary=a',
    'multipart/form-data; boundary=a; Boundary=b',
    'multipart/form-data; boundary=a, multipart/form-data; boundary=b',
    "multipart/form-data; boundary*=utf-8''a",
    'multipart/form-data; boundary=a; boundary*0=b',
    'multipart/form-data; boundary=a=b',
    'multipart/form-data; boundary="a b"',
    'multipart/form-data; boundary="a',
    'multipart/form-data; boundary="a\\b"',
    'multipart/form-data; boundary="a"b',
    'multipart/form-data; boundary=a b',
    'multipart/form-data; boundary=a;',
    'multipart/form-data boundary=a',
    'multipart/form-data; boundary = a',
    'multipart/form-data; boundary=\u00e4',
    'multipart/form-data; boundary=a%20b',
    'multipart/form-data; x="; boundary=no"; boundary=yes',
  ]) {
    assert.equal(boundaryOf(contentType), null, contentType)
  }
})
