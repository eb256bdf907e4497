import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findRepeatedName } from '../../src/management/read-request.ts'
import { anyCharacter } from '../support/any-character.ts'

const names = fc.uniqueArray(
  fc.oneof(fc.string({ unit: anyCharacter }), fc.constantFrom('a', 'A', '__proto__', 'a\0')),
  {
    minLength: 1,
  },
)
const value = fc.jsonValue().map((json) => JSON.stringify(json))
const find = (text: string) => findRepeatedName(text, JSON.parse(text))

/** Every UTF-16 unit as an escape. */
function escaped(name: string): string {
  const units = Array.from({ length: name.length }, (_, i) =>
    name.charCodeAt(i).toString(16).padStart(4, '0'),
  )
  return `"${units.map((unit) => `\\u${unit}`).join('')}"`
}

test('names that differ are not repeated, however alike they are', () => {
  fc.assert(
    fc.property(names, value, (given, json) => {
      assert.equal(find(`{${given.map((name) => `${JSON.stringify(name)}:${json}`).join()}}`), null)
    }),
  )
})

test('a name that is there twice is found, whatever its place and however it is written', () => {
  fc.assert(
    fc.property(names, fc.nat(), fc.nat(), value, (given, which, where, json) => {
      const twice = given[which % given.length] ?? ''
      const members = given.map((name) => `${JSON.stringify(name)}:${json}`)
      members.splice(where % (members.length + 1), 0, `${escaped(twice)} : null`)
      assert.equal(find(`{${members.join()}}`), twice)
    }),
  )
})

test('what is nested is not looked at, and what is no object has no names', () => {
  for (const text of ['{"a":{"b":1,"b":2}}', '{"a":[{"b":1,"b":2}]}', '{}', '[]', 'null', '"a"', '7']) {
    assert.equal(find(text), null, text)
  }
})

test('neither depth, nor a long name, nor many members hide it', () => {
  assert.equal(find(`{"a":${'['.repeat(20_000)}${']'.repeat(20_000)},"a":1}`), 'a')
  assert.equal(find(`{"a":1,"${'x'.repeat(30_000)}":1,"a":1}`), 'a')
  assert.equal(find(`{"a":1,${Array.from({ length: 7_000 }, (_, i) => `"${i}":1`).join()},"a":1}`), 'a')
})
