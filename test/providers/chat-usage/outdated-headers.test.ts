import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOutdated } from '../../../src/providers/chat-usage/outdated-headers.ts'

test('what is said about the bytes of a body does not hold once they are changed', () => {
  for (const name of ['content-length', 'content-md5', 'digest', 'content-digest', 'repr-digest']) {
    assert.equal(isOutdated(name, 'x'), true, name)
  }
  assert.equal(isOutdated('etag', '"abc"'), true)
})

test('what is said about its meaning, its coding and the call holds', () => {
  for (const name of [
    'content-type',
    'content-encoding',
    'transfer-encoding',
    'x-request-id',
    'constructor',
  ]) {
    assert.equal(isOutdated(name, 'x'), false, name)
  }
  assert.equal(isOutdated('etag', 'W/"abc"'), false)
})
