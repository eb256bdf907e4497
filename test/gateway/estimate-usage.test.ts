import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CountedCall, estimateUsage, OutputSpeeds } from '../../src/gateway/estimate-usage.ts'
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
