import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Answer } from '../../src/gateway/answer.ts'
import {
  HELD_OBSERVER_BACKLOG_BYTES_MAX,
  OBSERVER_BACKLOG_BYTES_MAX,
  ReplyPipeline,
} from '../../src/gateway/reply-pipeline.ts'
import { test } from '../support/suite.ts'

/** A reply to a client whose room the test sets. */
function carried(contentType: string, coding: string) {
  const client = { hasRoom: true }
  const answer = { begin() {}, data: () => client.hasRoom, finish() {}, cut() {}, interim() {}, bytesOut: 0 }
  const reply = new ReplyPipeline({
    createAnswer: () => answer as unknown as Answer,
    reader: 'chat',
    shows: null,
    template: '',
    origin: null,
    balanceNanos: null,
    holdJson: false,
    nowMs: () => 0,
    onFirstByte() {},
    look() {},
    onObject: null,
  })
  let resumes = 0
  let resumed = Promise.withResolvers<void>()
  const resume = () => {
    resumes += 1
    resumed.resolve()
    resumed = Promise.withResolvers()
  }
  reply.attach({ ended: new Promise<never>(() => {}), resume, abandon() {} }, false)
  reply.head({
    status: 200,
    reason: 'OK',
    headers: ['content-type', contentType, 'content-encoding', coding],
  })
  return { reply, client, nextResume: () => resumed.promise, resumes: () => resumes }
}

/** A document that is longer, compressed, than the backlog of a reply that is held back. */
function longDocument(): Buffer {
  const content = randomBytes(2 * HELD_OBSERVER_BACKLOG_BYTES_MAX).toString('base64')
  const usage = { prompt_tokens: 7, completion_tokens: 8, total_tokens: 15 }
  return gzipSync(JSON.stringify({ model: 'gpt-5.5', choices: [{ message: { content } }], usage }))
}

test('upstream waits for the reading of a held reply, and the usage behind all of it is found', async () => {
  const { reply, nextResume, resumes } = carried('application/json', 'gzip')
  const encoded = longDocument()
  let waits = 0
  for (let at = 0; at < encoded.length; at += 65_536) {
    if (reply.data(encoded.subarray(at, at + 65_536))) continue
    waits += 1
    await nextResume()
  }
  assert.ok(waits > 0)
  assert.equal(resumes(), waits)
  const metered = await reply.observed(true)
  assert.deepEqual(metered?.usage.parts[0]?.quantities, { input_tokens: 7, output_tokens: 8 })
})

test('upstream goes on when both the client and the reading have room, whichever is last', async () => {
  const encoded = longDocument()
  const first = carried('application/json', 'gzip')
  first.client.hasRoom = false
  assert.equal(first.reply.data(encoded), false)
  await first.reply.observed(true)
  assert.equal(first.resumes(), 0, 'the client has no room')
  first.reply.onDrain()
  assert.equal(first.resumes(), 1)

  const second = carried('application/json', 'gzip')
  second.client.hasRoom = false
  assert.equal(second.reply.data(encoded), false)
  second.reply.onDrain()
  assert.equal(second.resumes(), 0, 'the reading is behind')
  await second.nextResume()
  assert.equal(second.resumes(), 1)
})

test('a reply that ends or is cut while the reading is behind is read as far as it came', async () => {
  for (const whole of [true, false]) {
    const { reply } = carried('application/json', 'gzip')
    assert.equal(reply.data(longDocument()), false)
    const metered = await reply.observed(whole)
    assert.equal(metered?.inputKnown, true)
  }
})

test('a stream waits for its reading only beyond the backlog', () => {
  const { reply } = carried('text/event-stream', 'gzip')
  const chunk = gzipSync(randomBytes(OBSERVER_BACKLOG_BYTES_MAX / 2), { level: 0 })
  assert.equal(reply.data(chunk), true)
  assert.equal(reply.data(chunk), false)
})
