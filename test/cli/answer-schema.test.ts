import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  array,
  boolean,
  nullable,
  object,
  optional,
  parseExact,
  string,
  WrongAnswer,
} from '../../src/cli/answer-schema.ts'

const schema = object({
  id: string,
  cap: nullable(string),
  key: optional(string),
  tags: array(object({ on: boolean })),
})

test('an answer is read in the members that are named, and in no others', () => {
  const answer = { id: 'a', cap: null, tags: [{ on: true, more: 1 }], unknown: [] }
  assert.deepEqual(schema(answer), { id: 'a', cap: null, key: undefined, tags: [{ on: true }] })
})

test('an answer that lacks a member, or has another kind of value in it, is refused', () => {
  const good = { id: 'a', cap: '1', tags: [] }
  for (const wrong of [
    ...[null, 'text', 1, [], {}],
    { ...good, id: undefined },
    { ...good, cap: 1 },
    { ...good, key: null },
    { ...good, tags: {} },
    { ...good, tags: [{ on: 'true' }] },
    { ...good, tags: [null] },
  ])
    assert.throws(() => schema(wrong), WrongAnswer, JSON.stringify(wrong))
})

test('numbers stay the texts that they are, to the last digit', () => {
  assert.deepEqual(parseExact('{"a":12345678901234567890.123456789,"b":[1e3,-0.10]}'), {
    a: '12345678901234567890.123456789',
    b: ['1e3', '-0.10'],
  })
})
