import assert from 'node:assert/strict'
import fc from 'fast-check'
import { objectShape, UNMARKED_VALUE, VALUE } from '../../src/metering/json-shape.ts'
import { JsonSkim } from '../../src/metering/json-skim.ts'
import { CONTENT_MARKS, MARKS } from '../../src/providers/request-facts.ts'
import { test } from '../support/suite.ts'

const ELSEWHERE = [
  ...['file_id', 'url', 'image_url', '_url', 'container', 'mcp_servers', 'base64', 'file_data'],
  'input_audio',
]
const BITS: ReadonlyMap<string, number> = new Map([
  ...ELSEWHERE.map((text) => [text, MARKS.elsewhere] as const),
  ['tool_definition', MARKS.tool],
  ['audio', MARKS.audio],
  ['id', MARKS.id],
])

const SHAPE = objectShape({ model: VALUE, tools: UNMARKED_VALUE })

function marksOf(text: string, pieceBytes: number): number {
  const scanner = new JsonSkim(SHAPE, { marks: CONTENT_MARKS })
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += pieceBytes) scanner.write(bytes.subarray(at, at + pieceBytes))
  const scan = scanner.end()
  if (scan.kind === 'unreadable') throw new Error(`${scan.reason}: ${text}`)
  return scan.marks
}

const everyCut = (text: string): Set<number> =>
  new Set([1, 2, 3, 5, 7, 64, 100_000].map((pieceBytes) => marksOf(text, pieceBytes)))

test('a member marks a body by its name at any depth, in any chunks', () => {
  for (const [mark, bit] of BITS) {
    const holder = { [mark]: 'x' }
    for (const body of [
      holder,
      { model: 'm', a: [{ b: [holder] }] },
      { messages: [{ content: [holder] }] },
    ]) {
      assert.deepEqual(everyCut(JSON.stringify(body)), new Set([bit]), JSON.stringify(body))
    }
  }
})

test('similar names and values are not marks, nor is a mark within prose', () => {
  const strings = [
    'urls',
    'ids',
    'audios',
    'an audio',
    'tool_definitions',
    'curl',
    'file_ids',
    'a container',
    'base64 ',
    'profile_id',
    // A name longer than the longest mark that ends in a mark: a split before the quote must not create one.
    'xmcp_servers',
    `${'x'.repeat(300)}container`,
    '{"url":1}',
    'x'.repeat(400),
  ]
  for (const value of strings) {
    const text = JSON.stringify({ [value]: value, a: [value], b: { c: value } })
    assert.deepEqual(everyCut(text), new Set([0]), text)
  }
})

test('a chunk may be overwritten after it was scanned', () => {
  for (const [first, second] of [
    ['{"a":"file_', 'id"}'],
    [`{"a":"${'x'.repeat(20)}_u`, 'rl"}'],
  ] as const) {
    const scanner = new JsonSkim(SHAPE, { marks: CONTENT_MARKS })
    const chunk = Buffer.from(first)
    scanner.write(chunk)
    chunk.fill('!')
    scanner.write(Buffer.from(second))
    const scan = scanner.end()
    assert.equal(scan.kind === 'object' && scan.marks, MARKS.elsewhere, first)
  }
})

test('a mark counts however its letters are escaped', () => {
  for (const [name, bit] of [
    ['\\u0075rl', MARKS.elsewhere],
    ['file\\u005fid', MARKS.elsewhere],
    ['base\\u00364', MARKS.elsewhere],
    ['\\u0069\\u0064', MARKS.id],
    ['im\\u0061ge_\\u0075r\\u006c', MARKS.elsewhere],
    ['tool_definition'.replaceAll(/./g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`), MARKS.tool],
    ['a\\u00E4\\u0061', 0],
  ] as const)
    assert.deepEqual(everyCut(`{"a":[{"${name}":1}]}`), new Set([bit]), name)
})

test('the marks of a body are those of its strings, in any chunks', () => {
  const word = fc.oneof(
    fc.constantFrom(...BITS.keys()),
    fc.string({ maxLength: 12 }),
    fc.constant('y'.repeat(300)),
  )
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ depthSize: 'small' }, word, fc.integer(), tie('list'), tie('object')),
    list: fc.array(tie('any'), { maxLength: 3 }),
    object: fc.dictionary(word, tie('any'), { maxKeys: 3 }),
  })).object
  fc.assert(
    fc.property(value, fc.integer({ min: 1, max: 40 }), (body, pieceBytes) => {
      const text = JSON.stringify(body)
      fc.pre(!text.includes('"model"'))
      const strings: string[] = []
      JSON.stringify(body, (name, inner: unknown) => {
        strings.push(name, typeof inner === 'string' ? inner : '')
        return inner
      })
      const bitOf = (each: string) => BITS.get(each) ?? (each.endsWith('_url') ? MARKS.elsewhere : 0)
      const expected = strings.reduce((marks, each) => marks | bitOf(each), 0)
      assert.equal(marksOf(text, pieceBytes), expected)
    }),
  )
})

test('tool schemas mark nothing, and members after them do', () => {
  const tools = '"tools":[{"type":"function","parameters":{"properties":{"url":{},"id":{},"audio":{}}}}]'
  assert.equal(marksOf(`{"model":"m",${tools}}`, 64), 0)
  assert.equal(marksOf(`{"x":{"image_url":1},${tools}}`, 64), MARKS.elsewhere)
  assert.equal(marksOf(`{${tools},"x":{"file_id":1}}`, 64), MARKS.elsewhere)
  assert.equal(
    marksOf(`{"t":[],${tools.replace('tools', 'tool')}}`, 64),
    MARKS.elsewhere | MARKS.id | MARKS.audio,
  )
})
