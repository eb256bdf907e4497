import assert from 'node:assert/strict'
import { UPLOAD_REPLY_BYTES_MAX, uploadedFileId } from '../../src/providers/batch-requests.ts'
import { test } from '../support/suite.ts'

const idIn = (reply: unknown) =>
  uploadedFileId(Buffer.from(typeof reply === 'string' ? reply : JSON.stringify(reply)))

test('the id of an uploaded file is read from the reply', () => {
  assert.equal(idIn({ id: 'file-abc', object: 'file', bytes: 1, purpose: 'batch' }), 'file-abc')
  assert.equal(idIn('{"object":"f\\u0069le","id":"\\u0061"}'), 'a')
})

const others: readonly [what: string, reply: unknown][] = [
  ['an error', { error: { message: 'no' } }],
  ['another object', { id: 'batch-1', object: 'batch' }],
  ['an object without a type', { id: 'file-1' }],
  ['no id', { object: 'file' }],
  ['an empty id', { object: 'file', id: '' }],
  ['a numeric id', { object: 'file', id: 1 }],
  ['an id longer than any', { object: 'file', id: 'f'.repeat(257) }],
  ['two ids', '{"object":"file","id":"a","id":"b"}'],
  ['no JSON', 'file'],
  ['nothing', ''],
  ['an oversized reply', { object: 'file', id: 'a', pad: 'x'.repeat(UPLOAD_REPLY_BYTES_MAX) }],
]
for (const [what, reply] of others) {
  test(`a reply with ${what} gives no file id`, () => assert.equal(idIn(reply), null))
}
