import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type BilledCall, billCall } from '../../src/calls/bill.ts'
import { planRequest } from '../../src/calls/call-plan.ts'
import { estimateObject, estimateUsage, NOTHING_COUNTABLE } from '../../src/calls/estimates.ts'
import type { CallEnding, Evidence } from '../../src/calls/evidence.ts'
import { NO_USAGE, type Usage } from '../../src/kernel/usage.ts'
import { cachedShareOf } from '../../src/ledger/cached-share.ts'
import { type Metered, NOTHING_SHOWN, NOTHING_STATED } from '../../src/metering/meter.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { prices } from '../pricing/worked-example.ts'
import { factsOf } from '../providers/request-facts-of.ts'
import { test } from '../support/suite.ts'

async function planOf(path: string, body: Record<string, unknown>) {
  const surface = path === '/v1/messages' ? 'messages' : 'chat'
  const endpoint = findEndpoint(surface, 'POST', path)
  const facts = await factsOf(endpoint, body)
  const request = { surface, method: 'POST', path, endpoint, facts, bodyBytes: 400, atMs: 0 } as const
  return planRequest(request, prices())
}

const CHAT = '/v1/chat/completions'
const reasoning = await planOf(CHAT, { model: 'gpt-5', stream: true })

function metered(changes: Partial<Metered> = {}): Metered {
  const output = { text: 0, thinking: 0, tool: 0 }
  return { ...NOTHING_STATED, stage: 'content', shown: NOTHING_SHOWN, output, fault: null, ...changes }
}

const CUT = {
  plan: reasoning,
  request: { ...NOTHING_COUNTABLE, lengthBytes: 400 },
  cachedShare: 0,
  endedAs: 'left',
  delivered: 0,
  times: { silentMs: 0, stalledMs: 0, elapsedMs: 0 },
  isDocument: false,
} as const

const unitsOf = ({ parts }: Usage) => parts[0]?.quantities

test('output is a quarter of the visible bytes, and silence at the speed of the tier', async () => {
  const times = { ...CUT.times, silentMs: 10_000 }
  for (const [serviceTier, tokens] of [
    [null, 500],
    ['auto', 500],
    ['flex', 500],
    ['priority', 2_000],
    ['ultrafast', 5_000],
  ] as const) {
    const seen = metered({
      usage: { ...NO_USAGE, serviceTier },
      output: { text: 400, thinking: 0, tool: 0 },
    })
    const usage = await estimateUsage(seen, { ...CUT, times })
    assert.deepEqual(unitsOf(usage), { input_tokens: 100, output_tokens: 100 + tokens }, `${serviceTier}`)
  }
})

test('a broken call costs what it delivered, and nothing for its silence', async () => {
  const broken = { ...CUT, endedAs: 'broken', times: { ...CUT.times, silentMs: 60_000 } } as const
  const usage = await estimateUsage(metered({ output: { text: 30, thinking: 4, tool: 6 } }), broken)
  assert.equal(unitsOf(usage)?.output_tokens, 10)
})

test('an estimate stays within the stated output limit', async () => {
  const plan = await planOf(CHAT, { model: 'gpt-5', max_completion_tokens: 50 })
  const times = { ...CUT.times, elapsedMs: 1e6 }
  const usage = await estimateUsage(metered(), { ...CUT, plan, times, isDocument: true })
  assert.equal(unitsOf(usage)?.output_tokens, 50)
})

test('estimating a side replaces everything stated for it, so that no token counts twice', async () => {
  const stated = { cache_read_tokens: 1_000, output_tokens: 40, audio_output_tokens: 60, web_searches: 1 }
  const parts = [{ model: null, quantities: stated, promptTokens: 1_000 }]
  const seen = metered({ usage: { ...NO_USAGE, parts }, outputTokensSeen: 100 })
  const expected = { web_searches: 1, input_tokens: 20, cache_read_tokens: 80, output_tokens: 100 }
  const usage = await estimateUsage(seen, { ...CUT, cachedShare: 0.8 })
  assert.deepEqual(usage.parts, [{ model: null, quantities: expected, promptTokens: 100 }])
})

test('an object without usage is estimated by its size and what it shows, and flagged', () => {
  const usage = estimateObject(metered({ output: { text: 401, thinking: 0, tool: 0 } }), 400, 0.5)
  assert.deepEqual(unitsOf(usage), { input_tokens: 50, cache_read_tokens: 50, output_tokens: 101 })
  assert.equal(usage.suspect, true)
})

test('the cached share is the smallest of three complete calls', () => {
  const usage = (cached: number) => {
    const part = { model: null, quantities: { cache_read_tokens: cached }, promptTokens: 100 }
    return JSON.stringify({ ...NO_USAGE, parts: [part] })
  }
  assert.equal(cachedShareOf([usage(90), usage(80), usage(95)]), 0.8)
  assert.equal(cachedShareOf([usage(90), usage(80)]), 0, 'fewer prove nothing')
})

const plans = await Promise.all([
  planOf('/v1/messages', { model: 'claude-opus-5', max_tokens: 1_000, stream: true }),
  planOf(CHAT, { model: 'gpt-4.1', n: 2 }),
  planOf('/v1/responses', { model: 'gpt-5', stream: true, service_tier: 'priority' }),
  planOf('/v1/images/generations', { model: 'gpt-image-2', size: '1024x1024' }),
])

const count = fc.nat({ max: 100_000 })
const evidence: fc.Arbitrary<Evidence> = fc.record({
  end: fc.constantFrom<CallEnding[]>('complete', 'left', 'broken', 'unsent'),
  answer: fc.option(
    fc.record({
      status: fc.constantFrom(200, 400, 500),
      contentType: fc.constantFrom('application/json', 'text/event-stream'),
      upstreamRequestId: fc.constant(null),
    }),
  ),
  metered: fc
    .record({
      inputKnown: fc.boolean(),
      outputKnown: fc.boolean(),
      outputTokensSeen: count,
      error: fc.option(fc.constant('overloaded')),
      output: fc.record({ text: count, thinking: count, tool: count }),
    })
    .map((changes) => metered(changes)),
  delivered: count,
  times: fc.record({ silentMs: count, stalledMs: fc.constantFrom(0, 6_000), elapsedMs: count }),
})
const calls = fc.array(
  fc.record({ plan: fc.constantFrom(...plans), evidence, share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  { maxLength: 12 },
)

test('the same evidence gives the same bill: in any order, on any node, after any restart', async () => {
  const node = (share: number) => ({
    store: { chargeContainers: async () => 0, readCachedShare: async () => share },
    clock: { nowMs: () => 0 },
  })
  const billOf = async ({
    plan,
    evidence,
    share,
  }: {
    plan: typeof reasoning
    evidence: Evidence
    share: number
  }) => {
    const terms = { keyId: 'k', balanceNanos: 0n, discountBillionths: null, upstream: null }
    const ask = { surface: plan.surface, profile: plan, bytes: { ...NOTHING_COUNTABLE, lengthBytes: 4_000 } }
    return await billCall({ ask, terms } as BilledCall, evidence, node(share))
  }
  await fc.assert(
    fc.asyncProperty(calls, async (list) => {
      const inOrder = []
      for (const each of list) inOrder.push(await billOf(each))
      const elsewhere = await Promise.all(list.toReversed().map(billOf))
      assert.deepEqual(elsewhere.toReversed(), inOrder)
      for (const bill of inOrder) assert.ok(bill.costNanos >= 0n && bill.costNanos <= bill.listNanos)
    }),
  )
})
