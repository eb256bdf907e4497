import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toReplyHeaders } from '../../src/gateway/forwarded-headers.ts'

const CHUNKABLE = { chunkable: true, ownPrefix: 'x-svc-' }

test('case, order and duplicates of what upstream says stay', () => {
  const headers = ['Date', 'a', 'SET-cookie', 'b', 'set-Cookie', 'c', 'X-Request-Id', 'd', 'date', 'e']
  assert.deepEqual(toReplyHeaders(headers, CHUNKABLE), headers)
})

test('what belongs to the connection with upstream stays there, nominations included', () => {
  const headers = ['Connection', 'keep-alive, X-Debug', 'Keep-Alive', 'timeout=5', 'x-debug', 'a', 'a', 'b']
  assert.deepEqual(toReplyHeaders(headers, CHUNKABLE), ['a', 'b'])
})

test('a Connection line behind the line that it nominates counts as well', () => {
  assert.deepEqual(toReplyHeaders(['X-Debug', 'a', 'connection', 'x-debug'], CHUNKABLE), [])
})

test('nobody but us says what begins like our own', () => {
  const headers = ['X-Svc-Cost-Usd', '0', 'x-svc-request-id', 'forged', 'x-svc', 'a']
  assert.deepEqual(toReplyHeaders(headers, CHUNKABLE), ['x-svc', 'a'])
})

test('framing in chunks stays where the client can read it and no length says otherwise', () => {
  const chunked = ['Transfer-Encoding', 'chunked', 'Trailer', 'x-sum', 'a', 'b']
  const sized = [...chunked, 'Content-LENGTH', '5']
  assert.deepEqual(toReplyHeaders(chunked, CHUNKABLE), chunked)
  assert.deepEqual(toReplyHeaders(sized, CHUNKABLE), ['a', 'b', 'Content-LENGTH', '5'])
  assert.deepEqual(toReplyHeaders(chunked, { ...CHUNKABLE, chunkable: false }), ['a', 'b'])
})

test('a body that upstream ended with its connection goes in chunks, and its head says so', () => {
  const framing = { chunkable: true, ownPrefix: 'x-svc-' }
  assert.deepEqual(toReplyHeaders(['Transfer-Encoding', 'identity', 'A', '1'], framing), ['A', '1'])
  assert.deepEqual(toReplyHeaders(['Transfer-Encoding', 'gzip'], framing), [
    'Transfer-Encoding',
    'gzip, chunked',
  ])
  assert.deepEqual(toReplyHeaders(['transfer-encoding', 'Chunked'], framing), [
    'transfer-encoding',
    'Chunked',
  ])
})
