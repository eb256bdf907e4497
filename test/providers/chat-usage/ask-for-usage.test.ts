import assert from 'node:assert/strict'
import fc from 'fast-check'
import { objectShape, VALUE } from '../../../src/metering/json-shape.ts'
import { skimWhole } from '../../../src/metering/json-skim.ts'
import { applySplice, requestUsage, type Splice } from '../../../src/providers/chat-usage.ts'
import { runs } from '../../support/scale.ts'
import { test } from '../../support/suite.ts'

const SHAPE = objectShape({ stream: VALUE, stream_options: VALUE })

function ask(body: string): Splice | null {
  const skimmed = skimWhole(Buffer.from(body), SHAPE)
  assert.ok(skimmed.kind === 'object', `the body is unreadable: ${body}`)
  return requestUsage({ ...skimmed, body: skimmed.value })
}

function edited(body: string): string {
  const asked = ask(body)
  assert.ok(asked !== null, body)
  return Buffer.concat(applySplice([Buffer.from(body)], asked)).toString()
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
  ['{"stream_options":{ },"stream":true}', '{"stream_options":{"include_usage":true },"stream":true}'],
  [
    '{"stream":true,"stream_options":{"include_obfuscation": false }}',
    '{"stream":true,"stream_options":{"include_usage":true,"include_obfuscation": false }}',
  ],
  [
    '{"stream":true,"stream_options":{"\u00fc":"\u{1f680}", "include_usage" : false , "x":[1]}}',
    '{"stream":true,"stream_options":{"\u00fc":"\u{1f680}","include_usage":true,"x":[1]}}',
  ],
  [
    '{"a":"\u00e9","stream":true,"stream_options":{"include_usage":null}}',
    '{"a":"\u00e9","stream":true,"stream_options":{"include_usage":true}}',
  ],
  [
    '{"stream":true,"stream_options":{"x":{"include_usage":true}}}',
    '{"stream":true,"stream_options":{"include_usage":true,"x":{"include_usage":true}}}',
  ],
]

for (const [body, expected] of EDITS) {
  test(`${body.replaceAll('\n', '\\n')} is sent with include_usage`, () => {
    assert.equal(edited(body), expected)
    assert.deepEqual(ask(expected), null)
  })
}

test('a request that asks for usage itself is not changed', () => {
  assert.deepEqual(ask('{"stream":true,"stream_options":{"include_usage":true}}'), null)
  assert.deepEqual(ask('{"stream_options":{"a":1, "include_usage" : true},"stream":true}'), null)
})

test('a request without stream: true is not changed', () => {
  for (const body of ['{}', '{"stream":false}', '{"stream":null}', '{"stream":1}', '{"stream":"true"}']) {
    assert.deepEqual(ask(body), null, body)
  }
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

test('an edited request asks for usage, keeps its meaning, and has no other changed byte', () => {
  fc.assert(
    fc.property(requests, (body) => {
      fc.pre(skimWhole(Buffer.from(body), SHAPE).kind === 'object')
      const asked = ask(body)
      fc.pre(asked !== null)
      if (asked === null) return
      const bytes = Buffer.from(body)
      const after = Buffer.concat(applySplice([bytes], asked))
      for (const size of [1, 2, 7]) {
        const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
          bytes.subarray(i * size, (i + 1) * size),
        )
        assert.deepEqual(Buffer.concat(applySplice(pieces, asked)), after)
      }
      const said = JSON.parse(body) as { stream_options?: object | null }
      const expected = { ...said, stream_options: { ...said.stream_options, include_usage: true } }
      assert.deepEqual(JSON.parse(after.toString()), expected)
      assert.equal(after.length, bytes.length + asked.insert.length - asked.deleteBytes)
      assert.deepEqual(after.subarray(0, asked.at), bytes.subarray(0, asked.at))
      const rest = bytes.subarray(asked.at + asked.deleteBytes)
      assert.deepEqual(after.subarray(asked.at + asked.insert.length), rest)
    }),
    { numRuns: runs(400) },
  )
})
