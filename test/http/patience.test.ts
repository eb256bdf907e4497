import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Patience } from '../../src/http/patience.ts'
import { limits } from '../../src/kernel/limits.ts'

const { headTimeoutMs, keepAliveTimeoutMs, replyStallTimeoutMs } = limits

test('a new connection has the time of a head to say its first one, however it dawdles', () => {
  const patience = new Patience(1_000)
  patience.headBegins(1_000 + headTimeoutMs - 1)
  assert.equal(patience.check(1_000 + headTimeoutMs - 1, null), null)
  assert.equal(patience.check(1_000 + headTimeoutMs, null), 'head_late')
})

test('a new connection that has said nothing ends in the time of a head, but owes no answer', () => {
  const patience = new Patience(1_000)
  assert.equal(patience.check(1_000 + headTimeoutMs - 1, null), null)
  assert.equal(patience.check(1_000 + headTimeoutMs, null), 'rests')
})

test('a request is answered without haste; then the connection may rest, and a head that begins has its own time', () => {
  const patience = new Patience(0)
  patience.headCame()
  assert.equal(patience.check(10 * headTimeoutMs, null), null)
  patience.allAnswered(10 * headTimeoutMs, false)
  const restedMs = 10 * headTimeoutMs + keepAliveTimeoutMs
  assert.equal(patience.check(restedMs - 1, null), null)
  assert.equal(patience.check(restedMs, null), 'rests')
  patience.headBegins(restedMs)
  assert.equal(patience.check(restedMs + headTimeoutMs - 1, null), null)
  assert.equal(patience.check(restedMs + headTimeoutMs, null), 'head_late')
})

test('a head that began behind the last reply is waited for as a head', () => {
  const patience = new Patience(0)
  patience.headCame()
  patience.allAnswered(1_000, true)
  assert.equal(patience.headBegun, true)
  assert.equal(patience.check(1_000 + headTimeoutMs, null), 'head_late')
})

test('a reply that is over must be taken; every byte of it that is buys the whole time again', () => {
  const patience = new Patience(0)
  patience.headCame()
  assert.equal(patience.check(1_000, 500), null)
  assert.equal(patience.check(1_000 + replyStallTimeoutMs - 1, 500), null)
  assert.equal(patience.check(1_000 + replyStallTimeoutMs, 501), null)
  assert.equal(patience.check(999 + 2 * replyStallTimeoutMs, 501), null)
  assert.equal(patience.check(1_000 + 2 * replyStallTimeoutMs, 501), 'not_taken')
})
