import assert from 'node:assert/strict'
import { STATUS_CODES } from 'node:http'
import { test } from 'node:test'
import { framingHeaders, serialiseHeaders, statusLine } from '../../src/http/header-serialisation.ts'
import { ERRORS, type ErrorRow } from '../../src/kernel/errors.ts'

test('lines are written as they are, with every byte of Latin-1', () => {
  assert.equal(serialiseHeaders(['A', 'caf\xe9', 'a', '']), 'A: caf\xe9\r\na: \r\n')
})

for (const value of ['a\r\nB: 1', 'a\nB', 'a\rB', 'a\0', 'a\u010d\u010aB: 1', '\x7f']) {
  test(`a value that would not be what it says is not written: ${JSON.stringify(value)}`, () => {
    assert.throws(() => serialiseHeaders(['A', value]), /cannot be sent/)
    assert.throws(() => serialiseHeaders([value, 'a']), /cannot be sent/)
  })
}

test('the framing headers of a head are found in any case', () => {
  assert.deepEqual(framingHeaders(['CONTENT-length', '1', 'x', 'y']), {
    hasLength: true,
    hasCoding: false,
    hasDate: false,
  })
  assert.deepEqual(framingHeaders(['Transfer-Encoding', 'chunked', 'DATE', 'x']), {
    hasLength: false,
    hasCoding: true,
    hasDate: true,
  })
})

test('a status that we answer with has the phrase that Node gives it', () => {
  const rows: readonly ErrorRow[] = Object.values(ERRORS)
  const statuses = rows.map(({ status }) => status)
  for (const status of [...statuses, 102, 103, 200, 201, 204]) {
    assert.equal(statusLine(status, undefined), `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`)
  }
})
