import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linesSay, textOf } from '../../src/http/head-text.ts'

test('lines are written as they are, with every byte of Latin-1', () => {
  assert.equal(textOf(['A', 'caf\xe9', 'a', '']), 'A: caf\xe9\r\na: \r\n')
})

for (const value of ['a\r\nB: 1', 'a\nB', 'a\rB', 'a\0', 'a\u010d\u010aB: 1', '\x7f']) {
  test(`a value that would not be what it says is not written: ${JSON.stringify(value)}`, () => {
    assert.throws(() => textOf(['A', value]), /cannot be sent/)
    assert.throws(() => textOf([value, 'a']), /cannot be sent/)
  })
}

test('what a head says of its framing is found in any case', () => {
  assert.deepEqual(linesSay(['CONTENT-length', '1', 'x', 'y']), {
    hasLength: true,
    hasCoding: false,
    hasDate: false,
  })
  assert.deepEqual(linesSay(['Transfer-Encoding', 'chunked', 'DATE', 'x']), {
    hasLength: false,
    hasCoding: true,
    hasDate: true,
  })
})
