import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CountedCall, estimateUsage, OutputSpeeds, Silence } from '../../src/gateway/estimate-usage.ts'
import { SilentMeter } from '../../src/metering/meter.ts'
import type { TokenCounter } from '../../src/metering/token-counter.ts'
import { NOTHING_UNSEEN } from '../../src/providers/unseen-work.ts'

test('the input of a cut call is counted elsewhere, from the pieces its body lies in: here it is neither joined nor read', async () => {
  const pieces = [Buffer.from('{"prompt":'), Buffer.from('"Hello"}')]
  const asked: unknown[] = []
  const tokenCounter: TokenCounter = {
    countChat: () => Promise.reject(new Error('no output was delivered')),
    countRequest: (countedAs, body) => {
      asked.push(countedAs, body)
      return Promise.resolve(7)
    },
    warm: () => {},
    close: () => Promise.resolve(),
  }
  const call: CountedCall = {
    surface: 'chat',
    reader: null,
    modelAsked: 'gpt-4o',
    request: {
      pieces,
      lengthBytes: 18,
      isForm: false,
      audioMs: null,
      speech: null,
    },
    plan: {
      hold: { kind: 'none' },
      asked: { serviceTier: null, speed: null },
      tokensHeld: () => ({ input: null, output: null, contextWindow: 5 }),
    },
    whole: false,
    unseen: NOTHING_UNSEEN,
    bytesOut: 0,
    silentMs: 0,
  }
  const usage = await estimateUsage(new SilentMeter().end(false), call, {
    tokenCounter,
    outputSpeeds: new OutputSpeeds(),
  })
  assert.equal(asked[0], 'chat')
  assert.equal(asked[1], pieces)
  assert.equal(usage.parts[0]?.quantities.input_tokens, 5, 'no more than the context window')
})

test('what a model is taken to write in a millisecond is what its calls have shown, within bounds that no key can move', () => {
  const speeds = new OutputSpeeds()
  assert.equal(speeds.tokensPerMs('m'), 0.05)
  for (let i = 0; i < 20; i++) speeds.note('m', 1, 3_000)
  assert.equal(speeds.tokensPerMs('m'), 0.05, 'of calls with hardly a token nothing is learned')
  speeds.note('m', 1_000, 10_000)
  assert.equal(speeds.tokensPerMs('m'), 0.1)
  for (let i = 0; i < 20; i++) speeds.note('m', 16, 60_000)
  assert.equal(speeds.tokensPerMs('m'), 0.02)
  for (let i = 0; i < 20; i++) speeds.note('m', 128_000, 1_000)
  assert.equal(speeds.tokensPerMs('m'), 2)
})

test('the time in which a client does not read is no silence of the model', () => {
  const silence = new Silence(0)
  assert.equal(silence.until(400), 400)
  silence.see(10, 500)
  assert.equal(silence.until(1_400), 500, 'a pause of less than a second is the way')
  silence.pause(600)
  assert.equal(silence.until(90_000), 500)
  silence.resume(90_600)
  assert.equal(silence.pausedMs, 90_000)
  assert.equal(silence.until(91_000), 500)
  assert.equal(silence.until(92_500), 2_500)
})
