import assert from 'node:assert/strict'
import { ConnectionTimeouts } from '../../src/http/client-connection.ts'
import { limits } from '../../src/kernel/limits.ts'
import { test } from '../support/suite.ts'

const { headTimeoutMs, keepAliveTimeoutMs, replyStallTimeoutMs } = limits

test('a new connection has the time of a head to say its first one, however it dawdles', () => {
  const timeouts = new ConnectionTimeouts(1_000)
  timeouts.headBegins(1_000 + headTimeoutMs - 1)
  assert.equal(timeouts.check(1_000 + headTimeoutMs - 1, null), null)
  assert.equal(timeouts.check(1_000 + headTimeoutMs, null), 'head_late')
})

test('a new connection that has said nothing ends in the time of a head, but owes no answer', () => {
  const timeouts = new ConnectionTimeouts(1_000)
  assert.equal(timeouts.check(1_000 + headTimeoutMs - 1, null), null)
  assert.equal(timeouts.check(1_000 + headTimeoutMs, null), 'idle')
})

test('a request is answered without haste; then the connection may rest, and a head that begins has its own time', () => {
  const timeouts = new ConnectionTimeouts(0)
  timeouts.headCame()
  assert.equal(timeouts.check(10 * headTimeoutMs, null), null)
  timeouts.allAnswered(10 * headTimeoutMs, false)
  const restedMs = 10 * headTimeoutMs + keepAliveTimeoutMs
  assert.equal(timeouts.check(restedMs - 1, null), null)
  assert.equal(timeouts.check(restedMs, null), 'idle')
  timeouts.headBegins(restedMs)
  assert.equal(timeouts.check(restedMs + headTimeoutMs - 1, null), null)
  assert.equal(timeouts.check(restedMs + headTimeoutMs, null), 'head_late')
})

test('a head that began behind the last reply is waited for as a head', () => {
  const timeouts = new ConnectionTimeouts(0)
  timeouts.headCame()
  timeouts.allAnswered(1_000, true)
  assert.equal(timeouts.headBegun, true)
  assert.equal(timeouts.check(1_000 + headTimeoutMs, null), 'head_late')
})

test('a reply that is over must be taken; every byte of it that is buys the whole time again', () => {
  const timeouts = new ConnectionTimeouts(0)
  timeouts.headCame()
  assert.equal(timeouts.check(1_000, 500), null)
  assert.equal(timeouts.check(1_000 + replyStallTimeoutMs - 1, 500), null)
  assert.equal(timeouts.check(1_000 + replyStallTimeoutMs, 501), null)
  assert.equal(timeouts.check(999 + 2 * replyStallTimeoutMs, 501), null)
  assert.equal(timeouts.check(1_000 + 2 * replyStallTimeoutMs, 501), 'not_taken')
})
