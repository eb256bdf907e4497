import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { readSpool } from '../../src/ledger/read-spool.ts'
import { doneLine, keptLine, readSpoolLine } from '../../src/ledger/spool-line.ts'
import { anyClosing, closingOf } from './closings.ts'

const A = closingOf('req_a', { costNanos: 2n ** 63n - 1n })
const B = closingOf('req_b')

test('a closing comes back from its line as it was, whatever its texts and amounts', () => {
  fc.assert(
    fc.property(anyClosing, (closing) => {
      const line = keptLine(closing)
      assert.equal(line.indexOf('\n'), line.length - 1)
      assert.deepEqual(readSpoolLine(line.subarray(0, -1)), { kind: 'kept', closing })
    }),
  )
})

test('a line of which any byte was changed is damaged', () => {
  const line = keptLine(A).subarray(0, -1)
  for (let at = 0; at < line.length; at++) {
    const changed = Buffer.from(line)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.equal(readSpoolLine(changed), null)
  }
})

test('a line with a good checksum that says something else is damaged', () => {
  const written = { ...A, costNanos: '1', listNanos: '1' }
  const wrong = {
    ...{ costNanos: 1, listNanos: '1.5', state: 'in_flight', usage: 7, status: '200', streamed: null },
    ...{ requestId: undefined, tokens: { input: 1, output: 1, cacheRead: 1 } },
  }
  const lineOf = (json: string) => Buffer.from(`${crc32(json).toString(16).padStart(8, '0')} ${json}`)
  assert.notEqual(readSpoolLine(lineOf(JSON.stringify({ kept: written }))), null)
  for (const [name, value] of Object.entries(wrong)) {
    assert.equal(readSpoolLine(lineOf(JSON.stringify({ kept: { ...written, [name]: value } }))), null, name)
  }
  for (const json of ['', 'null', '1', '[]', '{}', '{"done":1}', '{"kept":null}', '{"kept":']) {
    assert.equal(readSpoolLine(lineOf(json)), null, json)
  }
})

test('what was marked done is not left, and what was kept again after it is', () => {
  const written = [keptLine(A), keptLine(B), doneLine(A.requestId)]
  assert.deepEqual(readSpool(Buffer.concat(written)).left, [B])
  assert.deepEqual(readSpool(Buffer.concat([...written, keptLine(A)])).left, [B, A])
})

test('a file cut anywhere in its last line has lost that line alone', () => {
  const whole = Buffer.concat([keptLine(A), keptLine(B)])
  const start = keptLine(A).length
  for (let end = start; end <= whole.length; end++) {
    const { left, torn, damagedLines } = readSpool(whole.subarray(0, end))
    // Without its newline it still says all it has to say.
    const isThere = end >= whole.length - 1
    assert.deepEqual(left, isThere ? [A, B] : [A], `cut at ${end}`)
    assert.equal(torn, !isThere && end > start, `cut at ${end}`)
    assert.equal(damagedLines, 0)
  }
})

test('a file whose end a crash has filled with zeros has lost that line alone', () => {
  const { left, torn, damagedLines } = readSpool(Buffer.concat([keptLine(A), Buffer.alloc(4_096)]))
  assert.deepEqual({ left, torn, damagedLines }, { left: [A], torn: true, damagedLines: 0 })
})

test('damage before the last line costs the lines that it hit and is told apart', () => {
  const garbled = keptLine(B)
  garbled[20] = 0x0a
  const { left, torn, damagedLines } = readSpool(Buffer.concat([garbled, keptLine(A)]))
  assert.deepEqual({ left, torn, damagedLines }, { left: [A], torn: false, damagedLines: 2 })
})

test('any bytes at all are read without failing', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.deepEqual(readSpool(Buffer.concat([keptLine(A), Buffer.from(bytes)])).left[0], A)
    }),
  )
})
