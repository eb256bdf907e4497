import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Metered } from '../../src/metering/meter.ts'
import { NameSet } from '../../src/metering/name-set.ts'
import { readSmall } from '../../src/metering/small-document.ts'
import { createMeter } from '../../src/providers/usage/create-meter.ts'

const MEMBERS =
  'type id model stop_reason content usage error choices message output text input_tokens output_tokens'
const MORE =
  'prompt_tokens completion_tokens service_tier iterations citations logprobs parameters input unheard_of'
/**
 * None has a backslash: after it has seen `{"\"":0,"\\":0}`, JSON.parse takes the second name of `{"\"":0,"\"":0}` for a
 * backslash (V8 13.6). No name that matters has one, and none that has is taken for one that matters.
 */
const NAMES = [...MEMBERS.split(' '), ...MORE.split(' '), '__proto__', '0', '', ':', '"', 'ä']
const TEXTS = [
  '',
  ':',
  '":',
  '\\":',
  '": ',
  'end_turn',
  'text',
  'error',
  'a\nb',
  '\\',
  '"',
  '{"a":1}',
  'kö😀',
]

const RULES = { keep: new NameSet(NAMES), drop: new NameSet([]) }
const read = (text: string) => readSmall(Buffer.from(text), RULES)

const space = fc.constantFrom('', '', '', ' ', '\n  ', '\t\r\n')
const name = fc.constantFrom(...NAMES)

/** As text, so that a name may be given twice. */
const { value: anyValue, object: anyObject } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom('null', 'true', '0', '7', '412', '-1', '1.5', '1e309'),
    fc.constantFrom(...TEXTS).map((text) => JSON.stringify(text)),
    fc.array(tie('value'), { maxLength: 4 }).map((values) => `[${values.join(',')}]`),
    tie('object'),
  ),
  object: fc
    .array(fc.tuple(name, space, space, tie('value')), { maxLength: 8 })
    .map(
      (members) =>
        `{${members.map(([key, before, after, value]) => `${JSON.stringify(key)}${before}:${after}${value}`).join(',')}}`,
    ),
}))

function meter(reader: Parameters<typeof createMeter>[0], pieces: readonly Buffer[]): object {
  const metering = createMeter(reader, { status: 200, contentType: 'application/json' })
  for (const piece of pieces) metering.write(piece)
  const metered: Metered = metering.end(true)
  return { ...metered, output: { bytes: metered.output.bytes, texts: metered.output.texts() } }
}

test('a reply in one piece is metered like the same in two', () => {
  const readers = ['messages', 'chat', 'responses', 'embeddings', 'images', 'transcription'] as const
  fc.assert(
    fc.property(fc.constantFrom(...readers), anyObject, space, fc.nat(), (reader, object, end, at) => {
      const bytes = Buffer.from(object + end)
      const cut = 1 + (at % (bytes.length - 1))
      assert.deepEqual(meter(reader, [bytes]), meter(reader, [bytes.subarray(0, cut), bytes.subarray(cut)]))
    }),
    { numRuns: 2_000 },
  )
})

test('a name that is given twice, at any depth, is never taken for a small document', () => {
  fc.assert(
    fc.property(anyObject, name, anyValue, anyValue, (object, twice, first, second) => {
      const key = JSON.stringify(twice)
      const pair = `{${key}:${first},${key} : ${second}}`
      for (const text of [pair, `{"a":${pair},"b":${object}}`, `{"b":${object},"a":[[${pair}]]}`])
        assert.equal(read(text), null, text)
    }),
    { numRuns: 1_000 },
  )
})

test('what is usual is taken for one', () => {
  const reply = {
    id: 'msg_1',
    content: [{ type: 'text', text: 'She said: "no".' }],
    usage: { input_tokens: 1 },
  }
  for (const text of [JSON.stringify(reply), `${JSON.stringify(reply, null, 2)}\n`])
    assert.deepEqual(read(text)?.document.value, reply)
})

test('what is more than one document, not whole, too long or too deep is not', () => {
  const deep = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
  assert.notEqual(read(deep(256)), null)
  for (const text of [
    '',
    ' ',
    '{',
    '}',
    '[]',
    '"a"',
    '{}{}',
    '{"a":1',
    '{"a":1},',
    '\ufeff{}',
    deep(257),
    deep(1500),
  ])
    assert.equal(read(text), null, text.slice(0, 20))
  const long = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`
  assert.notEqual(read(long(4096)), null)
  assert.equal(read(long(4097)), null)
})

test('a document that something follows is none, be it in a chunk of its own', () => {
  const whole = '{"model":"m","usage":{"input_tokens":7,"output_tokens":9}}'
  const metered = (...pieces: string[]) =>
    meter(
      'messages',
      pieces.map((piece) => Buffer.from(piece)),
    )
  assert.deepEqual(metered(whole, '\n'), metered(whole))
  assert.deepEqual(metered(whole, '{}'), metered(`${whole}{}`))
  assert.deepEqual((metered(whole, '{}') as Metered).faults, ['not_json'])
})
