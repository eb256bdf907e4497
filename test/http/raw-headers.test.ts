import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  firstValue,
  hasHeader,
  NameMemo,
  nominatedIn,
  tokensOf,
  valuesOf,
} from '../../src/http/raw-headers.ts'
import { test } from '../support/suite.ts'

const NAMES = ['connection', 'content-type', 'cache-control', 'x-a', 'x-b', 'date'] as const
const spelled = fc
  .constantFrom(...NAMES, '_ate', '0-a', '')
  .chain((name) =>
    fc
      .array(fc.boolean(), { minLength: name.length, maxLength: name.length })
      .map((large) => [...name].map((letter, i) => (large[i] ? letter.toUpperCase() : letter)).join('')),
  )
const value = fc.string({ unit: fc.constantFrom('a', 'B', ',', ' ', '\t'), maxLength: 8 })
const lines = fc.array(fc.tuple(spelled, value), { maxLength: 8 })

test('lines are found by their name in any case, all of them and in order', () => {
  fc.assert(
    fc.property(lines, fc.constantFrom(...NAMES), (given, name) => {
      const headers = given.flat()
      const values = given.filter(([line]) => line.toLowerCase() === name).map(([, text]) => text)
      assert.deepEqual(valuesOf(headers, name), values)
      assert.equal(firstValue(headers, name), values[0])
      assert.equal(hasHeader(headers, name), values.length > 0)
      const tokens = values.flatMap((text) => text.split(',')).map((token) => token.trim().toLowerCase())
      assert.deepEqual(
        tokensOf(headers, name),
        tokens.filter((token) => token !== ''),
      )
    }),
  )
})

test('a Connection line nominates what it names, except what the message needs and what is dropped anyway', () => {
  const nominated = (...values: string[]) => [...nominatedIn(values.flatMap((text) => ['Connection', text]))]
  assert.deepEqual(nominated('keep-alive'), [])
  assert.deepEqual(nominated('Keep-Alive, Upgrade,TE'), [])
  assert.deepEqual(nominated('keep-alive', 'close, X-Debug', 'x-debug'), ['close', 'x-debug'])
  assert.deepEqual(nominated('Content-Length, authorization, x-api-key, anthropic-version'), [])
})

/** Names of few letters, so that many names share a place in the memo. */
const nameLike = fc.string({ unit: fc.constantFrom('a', 'A', 'b', '-'), maxLength: 70 })

test('what is said of a name is what was judged of it in lower case, whatever came before', () => {
  const memo = new NameMemo((lower) => ({ lower }))
  fc.assert(
    fc.property(fc.array(nameLike, { maxLength: 50 }), (names) => {
      for (const each of [...names, ...names]) assert.equal(memo.get(each).lower, each.toLowerCase())
    }),
  )
})
