import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  arrayOf,
  OUTPUT,
  objectOf,
  type Picked,
  scalars,
  WRITTEN,
  Written,
} from '../../src/metering/json-place.ts'
import type { JsonScan, JsonScanLimits, Selection } from '../../src/metering/json-scan.ts'
import { JsonWalker } from '../../src/metering/json-walker.ts'
import { test } from '../support/suite.ts'
import { documents, nearDocuments } from './json-documents.ts'
import { expectedPick, parseAll, placeOf, type Spec } from './picked-reference.ts'
import { inPieces, mutate, mutations, pieceSizes } from './slices.ts'

const PLACE = objectOf({
  ...scalars('a b'),
  o: objectOf(scalars('a b')),
  l: arrayOf(objectOf(scalars('a'))),
  text: OUTPUT,
  json: WRITTEN,
})

function walk(bytes: Buffer, sizes: readonly number[], limits: Partial<JsonScanLimits> = {}): JsonScan {
  return inPieces(new JsonWalker(PLACE, { tolerant: true, limits }), bytes, sizes)
}

/** The selection, which must be the same however the bytes are cut. */
function pick(text: string | Buffer, limits: Partial<JsonScanLimits> = {}): Selection {
  const bytes = Buffer.from(text)
  const scans = [bytes.length, 1, 7].map((size) => walk(bytes, [size], limits))
  const selections = scans.map((scan) => {
    assert(scan.kind === 'object', scan.kind === 'unreadable' ? scan.reason : '')
    return scan.picked
  })
  for (const selection of selections) assert.deepEqual(plain(selection.value), plain(selections[0]?.value))
  const [first, ...others] = selections.map(({ duplicates, overflow }) => ({ duplicates, overflow }))
  for (const other of others) assert.deepEqual(other, first)
  return selections[0] as Selection
}

/** A selection in which values that are kept as written are plain texts. */
function plain(value: unknown): unknown {
  if (value instanceof Written) return value.text
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]))
}

const readOf = (text: string | Buffer, limits: Partial<JsonScanLimits> = {}): unknown =>
  plain(pick(text, limits).value)

const values: readonly (readonly [sentence: string, text: string | Buffer, expected: unknown])[] = [
  [
    'numbers, booleans and null are read',
    '{"a":-1.5e3,"b":true,"o":{"a":false,"b":null}}',
    { a: -1500, b: true, o: { a: false, b: null } },
  ],
  [
    'the last of members given twice counts',
    '{"o":{"a":1},"o":{"b":2},"a":3,"\\u0061":4}',
    { o: { b: 2 }, a: 4 },
  ],
  ['a name in other letters is another name', '{"A":1,"a\\u0000":2,"\\ud800":3,"a":4}', { a: 4 }],
  ['a name of any length is passed over', `{"${'n'.repeat(5000)}":1,"a":2}`, { a: 2 }],
  ['a byte order mark may come first', '\ufeff {"a":1}', { a: 1 }],
  [
    'bytes that are no UTF-8 are replaced',
    Buffer.from('{"a":"x\xff","b\xc3":1,"b":2}', 'latin1'),
    { a: 'x\ufffd', b: 2 },
  ],
  [
    'what is not read is not judged',
    '{"x":[NaN,-Infinity,{"a":1]},"y":NaN,"z":"\\o\\u12","w":"\n","a":1}',
    { a: 1 },
  ],
  [
    'what is written for a tool is kept as it is',
    '{"json": {"a": "b\\n", "c":[1]} ,"a":1}',
    { json: '{"a":"b\\n","c":[1]}', a: 1 },
  ],
  ['a text with any escapes is kept', '{"text":"\\"\\u00e9\\ud83d\\ude00\\/"}', { text: '"é😀/' }],
]
for (const [sentence, text, expected] of values) {
  test(`${sentence}, however the bytes are cut`, () => assert.deepEqual(readOf(text), expected))
}

test('members given twice are told where they are read, and only there', () => {
  const duplicates = (text: string) => pick(text).duplicates
  assert.deepEqual(duplicates('{"o":{"a":1,"\\u0061":1},"l":[{"a":1},{"a":1,"a":2}]}'), ['o.a', 'l[].a'])
  assert.deepEqual(duplicates('{"x":1,"x":2,"o":{"y":1,"y":2},"json":{"a":1,"a":2}}'), [])
})

test('a text is cut where there is no more room, neither in a character nor in an escape', () => {
  const limits = { outputBytesMax: 300 }
  const text = (written: string) => (readOf(`{"text":"${written}"}`, limits) as { text: string }).text
  const long = 'x'.repeat(299)
  assert.equal(text(`${long}yz`), `${long}y`)
  assert.equal(text(`${long}é${long}`), long)
  assert.equal(text(`${'x'.repeat(297)}😀${long}`), 'x'.repeat(297))
  for (const half of ['\\n', '\\"', '\\u00e9']) assert.equal(text(long + half + long), long)
  assert.equal(text(`${'x'.repeat(298)}\\\\${long}`), `${'x'.repeat(298)}\\`)
})

test('an object that was cut off is counted as it is written', () => {
  const json = `{"b": "${'y'.repeat(500)}"}`
  assert.deepEqual(readOf(`{"json":${json},"a":1}`, { outputBytesMax: 300 }), {
    json: json.slice(0, 300),
    a: 1,
  })
})

test('of an array that is too long the beginning is kept, and all that is behind it', () => {
  const list = `[${Array.from({ length: 99 }, (_, i) => `{"a":${i}}`).join()}]`
  const { value, overflow } = pick(`{"l":${list},"o":{"a":1,"b":2},"a":3}`, { valuesMax: 50 })
  const { l, ...others } = value as { l: readonly Picked[] }
  assert.equal(overflow, true)
  assert.deepEqual(others, { o: { a: 1, b: 2 }, a: 3 })
  assert.ok(l.length > 8 && l.length < 25, String(l.length))
  assert.deepEqual(l[8], { a: 8 })
})

test('what is not read may be nested as deeply as it likes', () => {
  for (const depth of [500, 20_000, 1_000_000]) {
    const text = `{"x":${'{"y":['.repeat(depth)}${']}'.repeat(depth)},"a":1}`
    const walker = new JsonWalker(PLACE, { tolerant: true })
    for (let at = 0; at < text.length; at += 65_536) walker.write(Buffer.from(text.slice(at, at + 65_536)))
    const scan = walker.end()
    assert.deepEqual(scan.kind === 'object' && scan.picked.value, { a: 1 })
  }
})

test('a hundred megabytes of what is not read leave nothing behind', () => {
  const walker = new JsonWalker(PLACE, { tolerant: true })
  const write = (text: string): void => walker.write(Buffer.from(text))
  const [numbers, image] = [Buffer.from('0.0123456,'.repeat(100_000)), Buffer.alloc(1_000_000, 'base64')]
  const before = process.memoryUsage().arrayBuffers
  write('{"data":[')
  for (let i = 0; i < 50; i++) walker.write(numbers)
  write('1],"image":"')
  for (let i = 0; i < 50; i++) walker.write(image)
  write('","text":"')
  for (let i = 0; i < 5; i++) walker.write(image)
  write('","o":{"a":1}}')
  const scan = walker.end()
  assert(scan.kind === 'object')
  const { text, ...others } = plain(scan.picked.value) as { text: string }
  assert.equal(text.length, 128 * 1024)
  assert.deepEqual(others, { o: { a: 1 } })
  assert.ok(process.memoryUsage().arrayBuffers - before < 8_000_000)
})

test('a text that is left in the middle leaves nothing behind for the next one', () => {
  const walker = new JsonWalker(PLACE, { tolerant: true })
  for (const text of [
    '{"a":tr',
    '{"text":"abc',
    '{"o":{"a":1,"a":2',
    '{"x":[[',
    '{"\\u00',
    '{"json":{"a"',
    '\ufeff',
  ]) {
    walker.write(Buffer.from(text))
    assert.equal(walker.end().kind, 'unreadable')
    walker.write(Buffer.from('{"text":"b","a":'))
    walker.write(Buffer.from('12}'))
    const scan = walker.end()
    assert.deepEqual(scan.kind === 'object' && scan.picked, {
      value: { text: 'b', a: 12 },
      duplicates: [],
      overflow: false,
    })
  }
})

const inner: Spec = {
  members: { model: 'scalar', n: { members: {} }, a: 'scalar' },
  list: [
    'kept',
    { members: { model: 'scalar', tools: { list: ['kept', 'scalar'] } }, list: ['kept', 'text'] },
  ],
}
const SPEC: Spec = {
  members: {
    model: inner,
    max_tokens: 'scalar',
    stream_options: { members: { stream_options: inner } },
    tools: { list: ['sparse', inner] },
    n: inner,
    a: { members: { model: inner, n: inner, a: inner }, list: ['kept', inner] },
    'kö😀': 'scalar',
  },
}
const SPEC_PLACE = placeOf(SPEC)
const LIMITS = { nameBytesMax: 64 * 1024, stringBytesMax: 64 * 1024 }

function scan(bytes: Buffer, sizes: readonly number[]): JsonScan {
  return inPieces(new JsonWalker(SPEC_PLACE, { tolerant: true, limits: LIMITS }), bytes, sizes)
}

function parsedText(bytes: Buffer): string | null {
  const text = bytes.toString('utf8').replace(/^\ufeff/, '')
  try {
    JSON.parse(text)
    return text.trim().startsWith('{') ? text : null
  } catch {
    return null
  }
}

/** A text that JSON.parse takes is read the same way. Another text may be read, and the same however it is cut. */
function assertReadAsJsonParse(bytes: Buffer, sizes: readonly number[]): void {
  const whole = scan(bytes, [bytes.length])
  assert.deepEqual(scan(bytes, sizes), whole)
  assert.deepEqual(scan(bytes, [1]), whole)
  const text = parsedText(bytes)
  if (text === null) return
  const expected = expectedPick(parseAll(text), SPEC, true)
  assert(whole.kind === 'object', `refused: ${text}`)
  assert.deepEqual(whole.picked.value, expected.value)
  assert.deepEqual([...whole.picked.duplicates].sort(), [...expected.duplicates].sort())
}

test('a tolerant walker reads any document as JSON.parse does, however it is cut', () => {
  fc.assert(
    fc.property(documents, pieceSizes, (document, sizes) =>
      assertReadAsJsonParse(Buffer.from(document.text), sizes),
    ),
    { numRuns: 1500 },
  )
})

test('and so it does with a few bytes or tokens changed', () => {
  const changed = fc.oneof(
    fc.tuple(documents, mutations).map(([document, changes]) => mutate(Buffer.from(document.text), changes)),
    nearDocuments.map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(changed, pieceSizes, (bytes, sizes) => {
      if (bytes.length > 0) assertReadAsJsonParse(bytes, sizes)
    }),
    { numRuns: 4000 },
  )
})
