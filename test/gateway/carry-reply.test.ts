import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Answer } from '../../src/gateway/answer.ts'
import { CarriedReply } from '../../src/gateway/carry-reply.ts'

test('upstream goes on when the last chunk of a read has found room, not when the first has', async () => {
  const events = Array.from({ length: 200 }, (_, i) => `data: {"choices":[{"delta":{"content":"${i}"}}]}\n\n`)
  const encoded = gzipSync(`${events.join('')}data: [DONE]\n\n`)
  const answer = {
    begin() {},
    data: () => true,
    finish() {},
    cut() {},
    interim() {},
    bytesOut: 0,
  } as unknown as Answer
  const reply = new CarriedReply({
    answer,
    reader: 'chat',
    balanceNanos: null,
    holdJson: false,
    nowMs: () => 0,
    onFirstByte() {},
    look() {},
  })
  const resumed = Promise.withResolvers<void>()
  let resumes = 0
  const call = {
    ended: new Promise<never>(() => {}),
    resume() {
      resumes += 1
      resumed.resolve()
    },
    abandon() {},
  }
  reply.attach(call, true)
  reply.head(200, 'OK', ['content-type', 'text/event-stream', 'content-encoding', 'gzip'])
  let waits = 0
  for (let at = 0; at < encoded.length; at += 50) {
    if (!reply.data(encoded.subarray(at, at + 50))) waits += 1
  }
  assert.ok(waits > 1, 'several chunks have to wait')
  await resumed.promise
  await reply.finish(null, [])
  assert.equal(resumes, 1)
  reply.dispose()
})
