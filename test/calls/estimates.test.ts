import assert from 'node:assert/strict'
import { type CompleteCall, Estimates, estimateUsage, Silence } from '../../src/calls/estimates.ts'
import { NO_USAGE } from '../../src/kernel/usage.ts'
import { SilentMeter } from '../../src/metering/meter.ts'
import { NOT_READ } from '../../src/metering/request-facts.ts'
import { MESSAGE } from '../pricing/hold-examples.ts'
import { shipped } from '../pricing/worked-example.ts'
import { test } from '../support/suite.ts'

function call(changes: Partial<CompleteCall> = {}): CompleteCall {
  return {
    keyId: 'k',
    model: 'm',
    tier: '',
    outputTokens: 100,
    visibleTokens: 100,
    visibleBytes: 400,
    generatedMs: 1_000,
    inputTokens: 100,
    cachedTokens: 0,
    requestBytes: 400,
    ...changes,
  }
}

test('before the first complete call, estimates use the defaults', () => {
  assert.deepEqual(new Estimates().figuresFor('k', 'm', ''), {
    outputTokensPerByte: 1 / 4,
    outputTokensPerMs: 0.05,
    inputTokensPerByte: 1 / 4,
    cachedShare: 0,
  })
})

test('figures are learned per key, model and tier, and a new key uses those of the model', () => {
  const estimates = new Estimates()
  estimates.learn(call({ visibleBytes: 200, generatedMs: 400 }))
  estimates.learn(call({ keyId: 'other', tier: 'flex', visibleBytes: 800, generatedMs: 4_000 }))
  const own = estimates.figuresFor('k', 'm', '')
  assert.equal(own.outputTokensPerByte, 0.5)
  assert.equal(own.outputTokensPerMs, 0.25)
  assert.equal(estimates.figuresFor('other', 'm', 'flex').outputTokensPerMs, 0.025)
  const shared = estimates.figuresFor('new', 'm', '')
  assert.ok(shared.outputTokensPerMs > 0.025 && shared.outputTokensPerMs < 0.25)
  assert.equal(estimates.figuresFor('k', 'unknown', '').outputTokensPerMs, 0.05)
})

test('no key can train a figure beyond its bounds', () => {
  const estimates = new Estimates()
  for (let i = 0; i < 20; i++)
    estimates.learn(call({ visibleBytes: 1_000_000, generatedMs: 1e9, requestBytes: 1e9 }))
  assert.deepEqual(estimates.figuresFor('k', 'm', ''), {
    outputTokensPerByte: 1 / 8,
    outputTokensPerMs: 0.01,
    inputTokensPerByte: 1 / 8,
    cachedShare: 0,
  })
  for (let i = 0; i < 50; i++)
    estimates.learn(
      call({
        visibleBytes: 1,
        generatedMs: 1,
        requestBytes: 1,
        outputTokens: 1e9,
        visibleTokens: 1e9,
        inputTokens: 1e12,
      }),
    )
  const most = estimates.figuresFor('k', 'm', '')
  assert.deepEqual([most.outputTokensPerByte, most.outputTokensPerMs, most.inputTokensPerByte], [1, 0.5, 1])
})

test('the cached share is the smallest of the last three complete calls of that key and model', () => {
  const estimates = new Estimates()
  for (const cachedTokens of [0, 90, 80, 95]) estimates.learn(call({ cachedTokens, tier: 'flex' }))
  assert.equal(estimates.figuresFor('k', 'm', '').cachedShare, 0.8)
  assert.equal(estimates.figuresFor('other', 'm', '').cachedShare, 0, 'another key has cached nothing')
})

test('a container is charged once in 20 minutes', () => {
  const estimates = new Estimates()
  assert.equal(estimates.chargeContainers(['c1', 'c2'], 0), 2)
  assert.equal(estimates.chargeContainers(['c1', 'c3'], 19 * 60_000), 1)
  assert.equal(estimates.chargeContainers(['c1'], 20 * 60_000), 1)
})

test('silence is the time to the first visible output, and gaps of more than a second', () => {
  const silence = new Silence()
  assert.equal(silence.silentMsAt(5_000), 0, 'time in the queue does not count as silence')
  silence.recordOutput(0, 5_000)
  assert.equal(silence.silentMsAt(5_400), 400)
  silence.recordOutput(10, 5_500)
  assert.equal(silence.silentMsAt(6_400), 500, 'a short pause is the network')
  silence.recordOutput(20, 6_400)
  silence.recordOutput(30, 8_400)
  assert.equal(silence.silentMsAt(8_400), 2_500)
  assert.equal(silence.timesAt(8_400).generatedMs, 3_400)
})

test('time in which the client does not read is not silence', () => {
  const silence = new Silence()
  silence.recordOutput(10, 0)
  silence.pause(100)
  assert.equal(silence.timesAt(90_100).stalledMs, 90_000)
  assert.equal(silence.silentMsAt(90_100), 0)
  silence.resume(90_100)
  assert.equal(silence.silentMsAt(90_500), 0)
  assert.equal(silence.silentMsAt(92_000), 2_000)
  assert.equal(silence.timesAt(90_500).generatedMs, 500)
})

test('a reply is stalled while its client does not read, and for 5 s afterwards', () => {
  const silence = new Silence()
  const stalledMs = (nowMs: number) => silence.timesAt(nowMs).stalledMs
  silence.recordOutput(10, 0)
  assert.equal(stalledMs(100), 0)
  silence.pause(100)
  assert.equal(stalledMs(7_100), 7_000)
  silence.resume(8_100)
  assert.equal(stalledMs(8_200), 8_000)
  assert.equal(stalledMs(13_101), 0)
})

test('estimating a side replaces everything stated for it, so that no token counts twice', async () => {
  const stated = { cache_read_tokens: 1_000, output_tokens: 40, audio_output_tokens: 60, web_searches: 1 }
  const parts = [{ model: null, quantities: stated, promptTokens: 1_000 }]
  const metered = { ...new SilentMeter().end(false), usage: { ...NO_USAGE, parts }, outputTokensSeen: 100 }
  const profile = { ...MESSAGE, model: null, maxOutputTokens: null }
  const cut = {
    plan: { ...profile, version: shipped, reader: 'chat' },
    request: { lengthBytes: 400, formType: null, pieces: [], facts: NOT_READ },
    ...{ keyId: 'k', endedAs: 'left', bytesOut: 0, times: { silentMs: 0 }, isDocument: false, elapsedMs: 0 },
  } as unknown as Parameters<typeof estimateUsage>[1]
  const usage = await estimateUsage(metered, cut, new Estimates())
  assert.deepEqual(usage.parts, [
    {
      model: null,
      quantities: { web_searches: 1, input_tokens: 100, output_tokens: 100 },
      promptTokens: 100,
    },
  ])
})
