import assert from 'node:assert/strict'
import fc from 'fast-check'
import { firstValue, hasHeader, nominatedIn, tokensOf, valuesOf } from '../../src/http/raw-headers.ts'
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

test('header lines are found by name in any case, all of them and in order', () => {
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

test('a Connection header nominates its names, except required and already dropped headers', () => {
  const nominated = (...values: string[]) => [...nominatedIn(values.flatMap((text) => ['Connection', text]))]
  assert.deepEqual(nominated('keep-alive'), [])
  assert.deepEqual(nominated('Keep-Alive, Upgrade,TE'), [])
  assert.deepEqual(nominated('keep-alive', 'close, X-Debug', 'x-debug'), ['close', 'x-debug'])
  assert.deepEqual(nominated('Content-Length, authorization, x-api-key, anthropic-version'), [])
})
