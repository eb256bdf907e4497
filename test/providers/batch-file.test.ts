import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { BatchFileScanner, EntrySum } from '../../src/providers/batch-requests.ts'
import { inPieces, mutate, mutations, pieceSizes } from '../metering/slices.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'

const TYPE = 'multipart/form-data; boundary=b0'

interface Part {
  readonly head: string
  readonly content: string | Buffer
}

const field = (name: string, content: string): Part => ({
  head: `Content-Disposition: form-data; name="${name}"`,
  content,
})
const purpose = (content = 'batch'): Part => field('purpose', content)
const file = (content: string | Buffer, more = '', name = 'file'): Part => ({
  head: `Content-Disposition: form-data; name="${name}"; filename="x.jsonl"\r\nContent-Type: application/jsonl${more}`,
  content,
})

function formOf(...parts: Part[]): Buffer {
  const written = parts.map(({ head, content }) => [`--b0\r\n${head}\r\n\r\n`, content, '\r\n'])
  return Buffer.concat([...written.flat(), '--b0--\r\n'].map((piece) => Buffer.from(piece as string)))
}

function scan(body: Uint8Array, sizes: readonly number[] = [64], type = TYPE, coding?: string) {
  // The `url` of a line does not mark its body as one that refers elsewhere.
  const of = (marks: number) => ({ kind: 'bound', listNanos: marks === 0 ? 2n : 9n, costNanos: 1n }) as const
  const entries = new EntrySum('chat', (_, { marks }) => of(marks))
  return inPieces(new BatchFileScanner({ contentType: type, contentEncoding: coding }, entries), body, sizes)
}

const line = (body: unknown, more: Record<string, unknown> = {}): string =>
  `${JSON.stringify({ custom_id: 'c', method: 'POST', url: '/v1/responses', ...more, body })}\n`

const one = line({ model: 'a' })

const read: readonly [what: string, body: Buffer, models: readonly string[]][] = [
  ['one request', formOf(purpose(), file(one)), ['a']],
  ['the purpose behind the file', formOf(file(one), purpose()), ['a']],
  ['other fields', formOf(field('expires_after[anchor]', 'created_at'), file(one), purpose()), ['a']],
  ['several models, each once', formOf(purpose(), file(one + line({ model: 'b' }) + one)), ['a', 'b']],
  ['no line break at the end', formOf(purpose(), file(one.trimEnd())), ['a']],
  ['line breaks as on Windows', formOf(purpose(), file(one.replaceAll('\n', '\r\n').repeat(2))), ['a']],
  ['a CR at the very end', formOf(purpose(), file(`${one.trimEnd()}\r`)), ['a']],
  ['blank lines', formOf(purpose(), file(`\n  \n${one}\r\n\t\n${one}\n\n`)), ['a']],
  [
    'tools, their defaults, fallbacks and moderation',
    formOf(
      purpose(),
      file(
        line({
          model: 'a',
          tools: [{ type: 'image_generation' }, { type: 'x', model: 'b' }],
          fallbacks: ['c'],
          moderation: { model: 'd' },
        }),
      ),
    ),
    ['a', 'c', 'gpt-image-2', 'b', 'd'],
  ],
  [
    'items that bring tools',
    formOf(
      purpose(),
      file(line({ model: 'a', input: ['x', 1, {}, { role: 'user' }, { tools: [{ model: 'b' }] }] })),
    ),
    ['a', 'b'],
  ],
  [
    'lists of tokens as input',
    formOf(purpose(), file(line({ model: 'a', input: Array.from({ length: 50_000 }, (_, i) => i) }))),
    ['a'],
  ],
  ['names with escapes', formOf(purpose(), file('{"b\\u006fdy":{"m\\u006fdel":"\\u0061"}}')), ['a']],
  [
    'a line separator of Unicode in a text',
    formOf(purpose(), file(line({ model: 'a', input: '\u2028{"body":{"model":"b"}}\u2028' }))),
    ['a'],
  ],
  ['a long line', formOf(purpose(), file(line({ model: 'a', input: 'x'.repeat(3_000_000) }))), ['a']],
  ['a matching charset', formOf(purpose(), file(one, '; charset=utf-8')), ['a']],
]
for (const [what, body, models] of read) {
  test(`a batch file with ${what} is read`, () => {
    assert.deepEqual(scan(body)?.models, models)
    assert.deepEqual(scan(body, [body.length]), scan(body))
  })
}

const TWO_MODELS = '{"model":"a","tools":[{"model":"a","model":"b"}]}'

const refused: readonly [what: string, body: Buffer][] = [
  ['another purpose', formOf(purpose('fine-tune'), file(one))],
  ['no purpose', formOf(file(one))],
  ['two purposes', formOf(purpose(), file(one), purpose())],
  ['a second purpose', formOf(purpose('fine-tune'), file(one), purpose())],
  ['a purpose in another spelling', formOf(field('Purpose', 'batch'), file(one))],
  ['no file', formOf(purpose())],
  ['a file sent as a field', formOf(purpose(), field('file', one))],
  ['two files', formOf(purpose(), file(one), file(one))],
  ['another file', formOf(purpose(), file(one), file(one, '', 'other'))],
  ['a file in another spelling', formOf(purpose(), file(one), field('File', one))],
  ['a file with an escaped name', formOf(purpose(), file(one), field('fil%65', one))],
  ['a transfer encoding', formOf(purpose(), file(one, '\r\nContent-Transfer-Encoding: base64'))],
  ['a content encoding of the part', formOf(purpose(), file(one, '\r\nContent-Encoding: gzip'))],
  ['another charset', formOf(purpose(), file(one, '; charset=utf-16'))],
  ['an empty file', formOf(purpose(), file(''))],
  ['a blank file', formOf(purpose(), file('\n\r\n '))],
  ['a line without a body', formOf(purpose(), file(`${one}{"custom_id":"c"}\n`))],
  ['a line with a list', formOf(purpose(), file(`[${one.trim()}]`))],
  ['a line that is not JSON', formOf(purpose(), file(`${one}model\n`))],
  ['two values on one line', formOf(purpose(), file(`${one.trimEnd()} ${one}`))],
  ['a value over two lines', formOf(purpose(), file('{"body":\n{"model":"a"}}'))],
  ['a CR for a line break', formOf(purpose(), file('{"x":\r{"body":{"model":"b"}}\r,"body":{"model":"a"}}'))],
  ['a string as a body', formOf(purpose(), file(line('{"model":"a"}')))],
  ['two bodies', formOf(purpose(), file('{"body":{"model":"a"},"body":{"model":"b"}}'))],
  ['two models', formOf(purpose(), file('{"body":{"model":"a","model":"b"}}'))],
  ['a tool with two models', formOf(purpose(), file(line('BODY').replace('"BODY"', TWO_MODELS)))],
  ['a tool with a name like another', formOf(purpose(), file(line({ model: 'a', tools: [{ Model: 'b' }] })))],
  ['a body in another spelling', formOf(purpose(), file('{"body":{"model":"a"},"Body":{"model":"b"}}'))],
  ['no model', formOf(purpose(), file(one + line({ input: 'x' })))],
  ['a numeric model', formOf(purpose(), file(line({ model: 1 })))],
  ['a stored prompt', formOf(purpose(), file(line({ model: 'a', prompt: { id: 'p' } })))],
  ['default fallbacks', formOf(purpose(), file(line({ model: 'a', fallbacks: 'default' })))],
  ['an invalid tool', formOf(purpose(), file(line({ model: 'a', tools: [7] })))],
  ['a byte order mark', formOf(purpose(), file(`\ufeff${one}`))],
  [
    'bytes that are not UTF-8',
    formOf(
      purpose(),
      file(
        Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xff]), Buffer.from('","body":{"model":"a"}}')]),
      ),
    ),
  ],
  [
    'more models than are checked',
    formOf(purpose(), file(Array.from({ length: 201 }, (_, i) => line({ model: `m${i}` })).join(''))),
  ],
  ['more lines than upstream takes', formOf(purpose(), file('{"body":{"model":"a"}}\n'.repeat(100_001)))],
  ['more blank lines than anybody writes', formOf(purpose(), file(one + '\n'.repeat(1_000_001)))],
  ['no end', formOf(purpose(), file(one)).subarray(0, -6)],
  ['something before it', Buffer.concat([Buffer.from('x\r\n'), formOf(purpose(), file(one))])],
]
for (const [what, body] of refused) {
  test(`an upload with ${what} has no known models`, () => {
    assert.equal(scan(body, [8192]), null)
    if (body.length < 8192) assert.equal(scan(body, [1]), null)
  })
}

test('an upload that is not plain multipart/form-data is not read', () => {
  const body = formOf(purpose(), file(one))
  assert.equal(scan(gzipSync(body), [64], TYPE, 'gzip'), null)
  assert.equal(scan(body, [64], TYPE, 'gzip'), null)
  assert.equal(scan(body, [64], TYPE, 'nonsense'), null)
  assert.equal(scan(body, [64], 'application/json'), null)
  assert.equal(scan(body, [64], 'multipart/form-data'), null)
  assert.equal(scan(body, [64], 'multipart/mixed; boundary=b0'), null)
  assert.deepEqual(scan(body, [64], TYPE, 'identity')?.models, ['a'])
})

const lines = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.constantFrom('a', 'b', 'ä😀').map((model) => line({ model, input: '\r\n--b1' })),
    },
    fc.constantFrom(
      '\n',
      ' \r\n',
      line({ model: 'c', tools: [{ type: 'image_generation' }] }).replace('\n', '\r\n'),
    ),
  ),
  { maxLength: 6 },
)

test('a batch file gives the same result in any chunks', () => {
  fc.assert(
    fc.property(lines, fc.boolean(), pieceSizes, (texts, isLast, sizes) => {
      const content = texts.join('')
      const parts = isLast ? [purpose(), file(content)] : [file(content), purpose()]
      const body = formOf(...parts)
      const expected = new Set<string>()
      for (const text of texts.filter((written) => written.trim() !== '')) {
        const { body: request } = JSON.parse(text) as { body: { model: string; tools?: unknown } }
        expected.add(request.model)
        if (request.tools !== undefined) expected.add('gpt-image-2')
      }
      const requests = BigInt(texts.filter((written) => written.trim() !== '').length)
      const bound = { kind: 'bound', listNanos: 2n * requests, costNanos: requests, largestNanos: 1n }
      const answer = expected.size === 0 ? null : { models: [...expected], bound }
      assert.deepEqual(scan(body, sizes), answer)
      assert.deepEqual(scan(body, [1]), answer)
    }),
    { numRuns: runs(300) },
  )
})

test('an upload with changed bytes never throws, and gives the same result in any chunks', () => {
  fc.assert(
    fc.property(mutations, pieceSizes, (changes, sizes) => {
      const body = mutate(
        formOf(purpose(), file(one + line({ model: 'b', tools: [{ model: 'c' }] }))),
        changes,
      )
      assert.deepEqual(scan(body, sizes), scan(body, [Math.max(1, body.length)]))
    }),
    { numRuns: runs(1500) },
  )
})
