import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { scanJson } from '../../../src/metering/json-walker.ts'
import { REQUEST_MEMBERS } from '../../../src/metering/request-facts.ts'
import { applySplice, askForUsage, type UsageAsk } from '../../../src/providers/chat-usage/ask-for-usage.ts'

function ask(body: string, captureBytesMax?: number): UsageAsk {
  const scan = scanJson(
    Buffer.from(body),
    REQUEST_MEMBERS,
    captureBytesMax === undefined ? {} : { captureBytesMax },
  )
  assert.ok(scan.kind === 'object', `the body is unreadable: ${body}`)
  return askForUsage(scan)
}

function edited(body: string): string {
  const asked = ask(body)
  assert.equal(asked.kind, 'edit')
  return asked.kind === 'edit' ? Buffer.concat(applySplice([Buffer.from(body)], asked.splice)).toString() : ''
}

const EDITS: readonly (readonly [string, string])[] = [
  ['{"stream":true}', '{"stream":true,"stream_options":{"include_usage":true}}'],
  ['{"stream":true }\n', '{"stream":true ,"stream_options":{"include_usage":true}}\n'],
  ['{\n  "stream": true\n}', '{\n  "stream": true\n,"stream_options":{"include_usage":true}}'],
  [
    '{"stream":true,"messages":[{"stream_options":{"include_usage":true}}]}',
    '{"stream":true,"messages":[{"stream_options":{"include_usage":true}}],"stream_options":{"include_usage":true}}',
  ],
  ['{"stream_options": null ,"stream":true}', '{"stream_options": {"include_usage":true} ,"stream":true}'],
  ['{"stream_options":{},"stream":true}', '{"stream_options":{"include_usage":true},"stream":true}'],
  ['{"stream_options":{ },"stream":true}', '{"stream_options":{ "include_usage":true},"stream":true}'],
  [
    '{"stream":true,"stream_options":{"include_obfuscation": false }}',
    '{"stream":true,"stream_options":{"include_obfuscation": false ,"include_usage":true}}',
  ],
  [
    '{"stream":true,"stream_options":{"\u00fc":"\u{1f680}", "include_usage" : false , "x":[1]}}',
    '{"stream":true,"stream_options":{"\u00fc":"\u{1f680}", "include_usage" : true , "x":[1]}}',
  ],
  [
    '{"a":"\u00e9","stream":true,"stream_options":{"include_usage":null}}',
    '{"a":"\u00e9","stream":true,"stream_options":{"include_usage":true}}',
  ],
  [
    '{"stream":true,"stream_options":{"x":{"include_usage":true}}}',
    '{"stream":true,"stream_options":{"x":{"include_usage":true},"include_usage":true}}',
  ],
  [
    '{"stream":true,"stream_options":{"includ\\u0065_usage":false}}',
    '{"stream":true,"stream_options":{"includ\\u0065_usage":true}}',
  ],
]

for (const [body, expected] of EDITS) {
  test(`${body.replaceAll('\n', '\\n')} is sent with include_usage`, () => {
    assert.equal(edited(body), expected)
    assert.deepEqual(ask(expected), { kind: 'asked' })
  })
}

test('a client that asks itself is left alone', () => {
  assert.deepEqual(ask('{"stream":true,"stream_options":{"include_usage":true}}'), { kind: 'asked' })
  assert.deepEqual(ask('{"stream_options":{"a":1, "include_usage" : true},"stream":true}'), { kind: 'asked' })
})

test('what is no stream is left alone', () => {
  for (const body of ['{}', '{"stream":false}', '{"stream":null}', '{"stream":1}', '{"stream":"true"}']) {
    assert.deepEqual(ask(body), { kind: 'not_streaming' }, body)
  }
})

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  stream_twice: ['{"stream":true,"stream":false}', '{"stream":false,"stream":true}'],
  stream_options_twice: ['{"stream":true,"stream_options":{},"stream_options":{"include_usage":true}}'],
  stream_options_no_object: [
    '{"stream":true,"stream_options":true}',
    '{"stream":true,"stream_options":"x"}',
    '{"stream":true,"stream_options":[]}',
    '{"stream":true,"stream_options":0}',
  ],
  include_usage_twice: ['{"stream":true,"stream_options":{"include_usage":true,"include_usage":true}}'],
  stream_options_ambiguous: ['{"stream":true,"stream_options":{"Include_Usage":true}}'],
  include_usage_no_boolean: [
    '{"stream":true,"stream_options":{"include_usage":1}}',
    '{"stream":true,"stream_options":{"include_usage":"true"}}',
    '{"stream":true,"stream_options":{"include_usage":{}}}',
  ],
}

for (const [reason, bodies] of Object.entries(REFUSED)) {
  test(`nothing is changed, and ${reason} is the reason`, () => {
    for (const body of bodies) assert.deepEqual(ask(body), { kind: 'cannot', reason }, body)
  })
}

test('options longer than what is kept of a member are not touched', () => {
  const long = 'x'.repeat(100)
  const tooLong = { kind: 'cannot', reason: 'stream_options_too_long' }
  assert.deepEqual(ask(`{"stream":true,"stream_options":{"a":"${long}"}}`, 50), tooLong)
  const noObject = { kind: 'cannot', reason: 'stream_options_no_object' }
  assert.deepEqual(ask(`{"stream":true,"stream_options":"${long}"}`, 50), noObject)
})

const options = fc.oneof(
  fc.constant(undefined),
  fc.constant(null),
  fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
  fc.record({ include_obfuscation: fc.boolean(), include_usage: fc.constantFrom(null, false) }),
)
const requests = fc
  .record({
    before: fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 }),
    options,
    behind: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 2 }),
    indent: fc.constantFrom('', ' ', '\t', '  '),
  })
  .map(({ before, options, behind, indent }) => {
    const members = {
      ...before,
      ...(options === undefined ? {} : { stream_options: options }),
      stream: true,
      ...behind,
    }
    return JSON.stringify(members, null, indent)
  })

test('an edited request says what it said before and asks for usage, and no byte outside the edit changed', () => {
  fc.assert(
    fc.property(requests, (body) => {
      const scan = scanJson(Buffer.from(body), REQUEST_MEMBERS)
      fc.pre(scan.kind === 'object')
      const asked = ask(body)
      fc.pre(asked.kind === 'edit')
      if (asked.kind !== 'edit') return
      const bytes = Buffer.from(body)
      const { splice } = asked
      const after = Buffer.concat(applySplice([bytes], splice))
      for (const size of [1, 2, 7]) {
        const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
          bytes.subarray(i * size, (i + 1) * size),
        )
        assert.deepEqual(Buffer.concat(applySplice(pieces, splice)), after)
      }
      const said = JSON.parse(body) as { stream_options?: object | null }
      const expected = { ...said, stream_options: { ...said.stream_options, include_usage: true } }
      assert.deepEqual(JSON.parse(after.toString()), expected)
      assert.equal(after.length, bytes.length + splice.insert.length - splice.deleteBytes)
      assert.deepEqual(after.subarray(0, splice.at), bytes.subarray(0, splice.at))
      const rest = bytes.subarray(splice.at + splice.deleteBytes)
      assert.deepEqual(after.subarray(splice.at + splice.insert.length), rest)
    }),
    { numRuns: 400 },
  )
})
