import assert from 'node:assert/strict'
import {
  arrayOf,
  handedOver,
  objectOf,
  type Picked,
  PRESENCE,
  streamOf,
  TEXT,
  UNREAD,
} from '../../src/metering/json-place.ts'
import type { JsonScan, JsonScanLimits, Selection } from '../../src/metering/json-scan.ts'
import { JsonWalker } from '../../src/metering/json-walker.ts'
import { test } from '../support/suite.ts'

const PLACE = objectOf({ a: TEXT, o: objectOf({ a: TEXT }), l: arrayOf(objectOf({ a: TEXT })) })

function scan(text: string, limits: Partial<JsonScanLimits> = {}, place = PLACE): JsonScan {
  const walker = new JsonWalker(place, { limits })
  for (const byte of Buffer.from(text)) walker.write(Buffer.of(byte))
  return walker.end()
}

function picked(found: JsonScan): Selection {
  assert(found.kind === 'object', found.kind === 'unreadable' ? found.reason : '')
  return found.picked
}

const values: readonly [what: string, text: string, expected: Picked][] = [
  ['a string', '{"a":"x"}', { a: 'x' }],
  ['an empty string', '{"a":""}', { a: '' }],
  ['null', '{"a":null}', { a: null }],
  ['a number', '{"a":-1.5e3 }', { a: UNREAD }],
  ['a literal', '{"a":true}', { a: UNREAD }],
  ['a container where text is read', '{"a":{"a":"x"}}', { a: UNREAD }],
  ['a list where an object is read', '{"o":[{"a":"x"}]}', { o: UNREAD }],
  ['an object where a list is read', '{"l":{"a":"x"}}', { l: UNREAD }],
  [
    'numbers, strings and objects in a list',
    '{"l":[1,"x",{"a":"y"},[],null,2]}',
    { l: [UNREAD, 'x', { a: 'y' }, UNREAD, null, UNREAD] },
  ],
  ['nothing that is looked at', '{"b":{"a":"x"},"c":[{"a":"y"}]}', {}],
]
for (const [what, text, expected] of values) {
  test(`picks ${what}`, () => {
    assert.deepEqual(picked(scan(text)), { value: expected, duplicates: [], overflow: false })
  })
}

test('what is longer than may be kept is there, and not read', () => {
  assert.deepEqual(picked(scan('{"a":"123456789"}', { stringBytesMax: 8 })), {
    value: { a: UNREAD },
    duplicates: [],
    overflow: false,
  })
  assert.deepEqual(picked(scan('{"a":"12345678"}', { stringBytesMax: 8 })), {
    value: { a: '12345678' },
    duplicates: [],
    overflow: false,
  })
})

const refused: readonly [what: string, text: string, limits: Partial<JsonScanLimits>, reason: string][] = [
  ['a name that is too long', `{"${'n'.repeat(9)}":1}`, { nameBytesMax: 8 }, 'name_too_long'],
  ['more values than are kept', '{"l":[{"a":"1"},{"a":"2"}]}', { valuesMax: 5 }, 'too_much'],
  ['what is nested too deeply', '{"x":[[[[1]]]]}', { depthMax: 3 }, 'too_deep'],
  ['a list at the top', '[{"a":"x"}]', {}, 'not_an_object'],
  ['a string at the top', '"a"', {}, 'not_an_object'],
  ['a number at the top', '1 ', {}, 'not_an_object'],
  ['nothing', '', {}, 'empty'],
  ['a second value', '{"a":"x"} {', {}, 'trailing_bytes'],
  ['a control character in a name', '{"a\u0001":"x"}', {}, 'not_json'],
  ['a control character in what is read', '{"a":"\u0001"}', {}, 'not_json'],
  ['a comma too many', '{"a":"x",}', {}, 'not_json'],
  ['a comma too many in a list', '{"l":["x",]}', {}, 'not_json'],
  ['the wrong bracket', '{"l":["x"}', {}, 'not_json'],
  ['a number closed by the wrong bracket', '{"a":1]', {}, 'not_json'],
]
for (const [what, text, limits, reason] of refused) {
  test(`refuses ${what}`, () => {
    const found = scan(text, limits)
    assert.equal(found.kind === 'unreadable' && found.reason, reason)
  })
}

test('as many values as may be kept are kept, and elements that are handed over do not count', () => {
  assert.equal(scan('{"l":[{"a":"1"}]}', { valuesMax: 4 }).kind, 'object')
  const stream = objectOf({ l: streamOf(objectOf({ a: TEXT })) })
  assert.equal(scan(`{"l":[${'{"a":"1"},'.repeat(50)}{}]}`, { valuesMax: 4 }, stream).kind, 'object')
})

test('a walker starts anew after each end', () => {
  const walker = new JsonWalker(PLACE)
  for (const name of ['x', 'y']) {
    walker.write(Buffer.from(`{"a":"${name}","a":1}`))
    assert.deepEqual(picked(walker.end()), { value: { a: name }, duplicates: ['a'], overflow: false })
  }
  walker.write(Buffer.from('{"a":"z"}'))
  assert.deepEqual(picked(walker.end()), { value: { a: 'z' }, duplicates: [], overflow: false })
})

test('of a place that only is to be there nothing is read, and null is nothing', () => {
  const place = objectOf({ a: PRESENCE, b: PRESENCE, c: PRESENCE, d: PRESENCE })
  const text = JSON.stringify({ a: 'short', b: 'x'.repeat(5_000), c: null, d: { e: 1 } })
  for (const pieceBytes of [3, 100_000]) {
    const walker = new JsonWalker(place)
    for (let at = 0; at < text.length; at += pieceBytes)
      walker.write(Buffer.from(text.slice(at, at + pieceBytes)))
    assert.deepEqual(picked(walker.end()).value, { a: UNREAD, b: UNREAD, c: null, d: UNREAD })
  }
})

const handedOverTexts: readonly [text: string, expected: string][] = [
  ['{"a":{"b":[1,{"a":"x"}]},"c":1}', '{"b":[1,{"a":"x"}]}'],
  ['{"c":{"a":1}, "a" : [ {} , "]" ] }', '[ {} , "]" ]'],
  ['{"a":"tex\\"t","c":[]}', '"tex\\"t"'],
  ['{"a":-1.5e3}', '-1.5e3'],
  ['{"a":null,"c":"a"}', 'null'],
]
for (const [text, expected] of handedOverTexts)
  test(`the bytes of what stands at a place are handed over as they pass: ${text}`, () => {
    for (const inner of [PRESENCE, objectOf({ b: arrayOf(objectOf({ a: TEXT })) })])
      for (const tolerant of [false, true])
        for (const size of [1, 2, 7, text.length]) {
          let seen = ''
          const walker = new JsonWalker(objectOf({ a: handedOver(inner) }), {
            tolerant,
            onBytes: (bytes) => {
              seen += bytes.toString()
            },
          })
          const bytes = Buffer.from(text)
          for (let at = 0; at < bytes.length; at += size) walker.write(bytes.subarray(at, at + size))
          assert.equal(walker.end().kind, 'object')
          // A value that is passed over includes the blanks behind it.
          assert.equal(seen.trimEnd(), expected)
        }
  })
