import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NameMemo } from '../../src/http/raw-headers.ts'

/** Few letters, so that many names share a place. */
const name = fc.string({ unit: fc.constantFrom('a', 'A', 'b', '-'), maxLength: 70 })

test('what is said of a name is what was judged of it in lower case, whoever came before', () => {
  const memo = new NameMemo((lower) => ({ lower }))
  fc.assert(
    fc.property(fc.array(name, { maxLength: 50 }), (names) => {
      for (const each of [...names, ...names]) assert.equal(memo.get(each).lower, each.toLowerCase())
    }),
  )
})

test('a spelling that comes again is not judged again', () => {
  let judged = 0
  const memo = new NameMemo(() => ++judged)
  for (const each of ['Content-Type', 'content-type', 'Content-Type', 'content-type']) memo.get(each)
  assert.equal(judged, 2)
})

test('the names that SDKs and providers send do not drive each other out', () => {
  const families = [
    ...[
      'arch',
      'async',
      'lang',
      'os',
      'package-version',
      'retry-count',
      'runtime',
      'runtime-version',
      'timeout',
    ].map((part) => `x-stainless-${part}`),
    ...['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap((what) =>
      ['limit', 'remaining', 'reset'].map((part) => `anthropic-ratelimit-${what}-${part}`),
    ),
    ...['requests', 'tokens'].flatMap((what) =>
      ['limit', 'remaining', 'reset'].map((part) => `x-ratelimit-${part}-${what}`),
    ),
    ...['accept', 'accept-encoding', 'connection', 'content-length', 'content-type', 'host', 'user-agent'],
    ...[
      'anthropic-version',
      'anthropic-beta',
      'x-api-key',
      'authorization',
      'date',
      'request-id',
      'x-request-id',
    ],
    ...[
      'cf-cache-status',
      'cf-ray',
      'server',
      'strict-transport-security',
      'transfer-encoding',
      'openai-version',
    ],
  ]
  const spelled = families.flatMap((each) => [
    each,
    each.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase()),
  ])
  let judged = 0
  const memo = new NameMemo(() => ++judged)
  for (const each of [...spelled, ...spelled]) memo.get(each)
  assert.equal(judged, spelled.length)
})

test('a name beyond the usual length is judged each time, and takes no place', () => {
  let judged = 0
  const memo = new NameMemo(() => ++judged)
  const long = 'x'.repeat(65)
  memo.get(long)
  memo.get(long)
  assert.equal(judged, 2)
})
