import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JsonPicker, type Pick, type PickLimits } from '../../src/metering/json-picker.ts'
import {
  arrayOf,
  objectAt,
  type Picked,
  PRESENCE,
  streamOf,
  TEXT,
  UNREAD,
} from '../../src/metering/json-place.ts'

const PLACE = objectAt({ a: TEXT, o: objectAt({ a: TEXT }), l: arrayOf(objectAt({ a: TEXT })) })

function pick(text: string, limits: Partial<PickLimits> = {}, place = PLACE): Pick {
  const picker = new JsonPicker(place, () => {}, limits)
  for (const byte of Buffer.from(text)) picker.write(Buffer.of(byte))
  return picker.end()
}

const values: readonly [what: string, text: string, expected: Picked][] = [
  ['a string', '{"a":"x"}', new Map([['a', 'x']])],
  ['an empty string', '{"a":""}', new Map([['a', '']])],
  ['null', '{"a":null}', new Map([['a', null]])],
  ['a number', '{"a":-1.5e3 }', new Map([['a', UNREAD]])],
  ['a literal', '{"a":true}', new Map([['a', UNREAD]])],
  ['a container where text is read', '{"a":{"a":"x"}}', new Map([['a', UNREAD]])],
  ['a list where an object is read', '{"o":[{"a":"x"}]}', new Map([['o', UNREAD]])],
  ['an object where a list is read', '{"l":{"a":"x"}}', new Map([['l', UNREAD]])],
  [
    'numbers, strings and objects in a list',
    '{"l":[1,"x",{"a":"y"},[],null,2]}',
    new Map([['l', [UNREAD, 'x', new Map([['a', 'y']]), UNREAD, null, UNREAD]]]),
  ],
  ['nothing that is looked at', '{"b":{"a":"x"},"c":[{"a":"y"}]}', new Map()],
]
for (const [what, text, expected] of values) {
  test(`picks ${what}`, () => {
    assert.deepEqual(pick(text), { kind: 'picked', value: expected, duplicates: [] })
  })
}

test('what is longer than may be kept is there, and not read', () => {
  assert.deepEqual(pick('{"a":"123456789"}', { stringBytesMax: 8 }), {
    kind: 'picked',
    value: new Map([['a', UNREAD]]),
    duplicates: [],
  })
  assert.deepEqual(pick('{"a":"12345678"}', { stringBytesMax: 8 }), {
    kind: 'picked',
    value: new Map([['a', '12345678']]),
    duplicates: [],
  })
})

const refused: readonly [what: string, text: string, limits: Partial<PickLimits>, reason: string][] = [
  ['a name that is too long', `{"${'n'.repeat(9)}":1}`, { nameBytesMax: 8 }, 'name_too_long'],
  ['more values than are kept', '{"l":[{"a":"1"},{"a":"2"}]}', { valuesMax: 5 }, 'too_much'],
  ['what is nested too deeply', '{"x":[[[[1]]]]}', { depthMax: 3 }, 'too_deep'],
  ['a list at the top', '[{"a":"x"}]', {}, 'not_json'],
  ['a string at the top', '"a"', {}, 'not_json'],
  ['a number at the top', '1 ', {}, 'not_json'],
  ['nothing', '', {}, 'truncated'],
  ['a second value', '{"a":"x"} {', {}, 'not_json'],
  ['a control character in a name', '{"a\u0001":"x"}', {}, 'not_json'],
  ['a control character in what is read', '{"a":"\u0001"}', {}, 'not_json'],
  ['a comma too many', '{"a":"x",}', {}, 'not_json'],
  ['a comma too many in a list', '{"l":["x",]}', {}, 'not_json'],
  ['the wrong bracket', '{"l":["x"}', {}, 'not_json'],
  ['a number closed by the wrong bracket', '{"a":1]', {}, 'not_json'],
]
for (const [what, text, limits, reason] of refused) {
  test(`refuses ${what}`, () => {
    assert.deepEqual(pick(text, limits), { kind: 'unreadable', reason })
  })
}

test('as many values as may be kept are kept, and elements that are handed over do not count', () => {
  assert.equal(pick('{"l":[{"a":"1"}]}', { valuesMax: 4 }).kind, 'picked')
  const stream = objectAt({ l: streamOf(objectAt({ a: TEXT })) })
  assert.equal(pick(`{"l":[${'{"a":"1"},'.repeat(50)}{}]}`, { valuesMax: 4 }, stream).kind, 'picked')
})

test('a picker starts anew after each end', () => {
  const picker = new JsonPicker(PLACE, () => {})
  for (const name of ['x', 'y']) {
    picker.write(Buffer.from(`{"a":"${name}","a":1}`))
    assert.deepEqual(picker.end(), { kind: 'picked', value: new Map([['a', name]]), duplicates: ['a'] })
  }
  picker.write(Buffer.from('{"a":"z"}'))
  assert.deepEqual(picker.end(), { kind: 'picked', value: new Map([['a', 'z']]), duplicates: [] })
})

test('of a place that only is to be there nothing is read, and null is nothing', () => {
  const place = objectAt({ a: PRESENCE, b: PRESENCE, c: PRESENCE, d: PRESENCE })
  const text = JSON.stringify({ a: 'short', b: 'x'.repeat(5_000), c: null, d: { e: 1 } })
  for (const pieceBytes of [3, 100_000]) {
    const picker = new JsonPicker(place, () => {})
    for (let at = 0; at < text.length; at += pieceBytes)
      picker.write(Buffer.from(text.slice(at, at + pieceBytes)))
    const pick = picker.end()
    assert.ok(pick.kind === 'picked')
    assert.deepEqual(
      pick.value,
      new Map<string, unknown>([
        ['a', UNREAD],
        ['b', UNREAD],
        ['c', null],
        ['d', UNREAD],
      ]),
    )
  }
})
