import assert from 'node:assert/strict'
import fc from 'fast-check'
import { planTurn, rateFor } from '../../src/calls/call-plan.ts'
import type { Usage } from '../../src/kernel/usage.ts'
import { tokenLimits } from '../../src/pricing/hold.ts'
import type { SocketTurn } from '../../src/providers/realtime-events.ts'
import { realtimeUsage, transcriptionUsage } from '../../src/providers/socket-usage.ts'
import { test } from '../support/suite.ts'
import { discountOf, prices, shipped } from './worked-example.ts'

const turn = (kind: SocketTurn['kind'], model: string | null): SocketTurn => ({
  kind,
  model,
  atMs: Date.now(),
})

const response = {
  total_tokens: 275,
  input_tokens: 127,
  input_token_details: {
    ...{ text_tokens: 119, audio_tokens: 8, image_tokens: 0, cached_tokens: 64 },
    cached_tokens_details: { text_tokens: 64, audio_tokens: 0, image_tokens: 0 },
  },
  output_tokens: 148,
  output_token_details: { text_tokens: 36, audio_tokens: 112 },
}

const rated = (nanos: bigint) => ({ costNanos: nanos, listNanos: nanos, unpriced: false })

function rateOf(planned: SocketTurn, usage: Usage, by = prices()) {
  const { costNanos, listNanos, unpriced } = rateFor(planTurn(planned, by), usage)
  return { costNanos, listNanos, unpriced }
}

test('a gpt-realtime response is charged for text and audio: input, cached and output', () => {
  // 55 × $4 + 64 × $0.40 + 8 × $32 + 36 × $16 + 112 × $64 a million
  // = 220,000 + 25,600 + 256,000 + 576,000 + 7,168,000
  assert.deepEqual(
    rateOf(turn('realtime', 'gpt-realtime'), realtimeUsage(response, 'gpt-realtime')),
    rated(8_245_600n),
  )
})

const seen = {
  input_tokens: 5_000,
  input_token_details: {
    ...{ text_tokens: 1_000, audio_tokens: 3_000, image_tokens: 1_000, cached_tokens: 2_600 },
    cached_tokens_details: { text_tokens: 600, audio_tokens: 1_500, image_tokens: 500 },
  },
  output_tokens: 800,
  output_token_details: { text_tokens: 200, audio_tokens: 600 },
}

test('a gpt-realtime-2.1 response is charged for images too, and 10 % more on a regional host', () => {
  // 400 × $4 + 600 × $0.40 + 1,500 × $32 + 1,500 × $0.40 + 500 × $5 + 500 × $0.50 + 200 × $24 + 600 × $64 a million
  // = 1,600,000 + 240,000 + 48,000,000 + 600,000 + 2,500,000 + 250,000 + 4,800,000 + 38,400,000
  const planned = turn('realtime', 'gpt-realtime-2.1')
  const usage = realtimeUsage(seen, 'gpt-realtime-2.1')
  assert.deepEqual(rateOf(planned, usage), rated(96_390_000n))
  const regional = prices({ chatRegional: true })
  assert.deepEqual(rateOf(planned, usage, regional), rated(106_029_000n))
})

test('a response without usage details is charged as audio', () => {
  // 100 × $32 + 50 × $64 a million
  const usage = realtimeUsage({ input_tokens: 100, output_tokens: 50 }, 'gpt-realtime')
  assert.deepEqual(rateOf(turn('realtime', 'gpt-realtime'), usage), rated(6_400_000n))
})

test('a response without a model is rated at the most expensive Realtime model, and flagged', () => {
  const usage = realtimeUsage({ input_tokens: 0, output_tokens: 10 }, null)
  // 10 × $80 a million, of gpt-4o-realtime-preview
  assert.deepEqual(rateOf(turn('realtime', null), usage), { ...rated(800_000n), unpriced: true })
})

test('an input transcription is charged by tokens or time, at its own model', () => {
  const tokens = {
    ...{ type: 'tokens', input_tokens: 140, output_tokens: 20 },
    input_token_details: { text_tokens: 10, audio_tokens: 130 },
  }
  // 10 × $2.50 + 130 × $6 + 20 × $10 a million = 25,000 + 780,000 + 200,000
  assert.deepEqual(
    rateOf(turn('transcription', 'gpt-4o-transcribe'), transcriptionUsage(tokens, 'gpt-4o-transcribe')),
    rated(1_005_000n),
  )
  // 9 s of $1.02 an hour
  const seconds = { type: 'duration', seconds: 9 }
  assert.deepEqual(
    rateOf(
      turn('transcription', 'gpt-realtime-whisper'),
      transcriptionUsage(seconds, 'gpt-realtime-whisper'),
    ),
    rated(2_550_000n),
  )
})

interface Held {
  readonly says: string
  readonly turn: SocketTurn
  readonly nanos: bigint
}

const holds: readonly Held[] = [
  {
    says: 'the context window and the output limit of its model, all as audio, and a quarter of an hour of transcription',
    turn: turn('realtime', 'gpt-realtime'),
    // 32,000 × $32 + 4,096 × $64 a million, and 15 minutes of $1.02 an hour
    nanos: 1_541_144_000n,
  },
  {
    says: 'the context window of a transcription model billed per token',
    turn: turn('transcription', 'gpt-4o-transcribe'),
    // 16,000 × $6 + 2,000 × $10 a million
    nanos: 116_000_000n,
  },
  {
    says: '15 minutes of one billed per hour',
    turn: turn('transcription', 'gpt-realtime-whisper'),
    nanos: 255_000_000n,
  },
]
for (const held of holds) {
  test(`a turn holds ${held.says}`, () => {
    const plan = planTurn(held.turn, prices())
    assert.deepEqual(plan.hold, { kind: 'bound', nanos: held.nanos, listNanos: held.nanos })
    assert.equal(plan.unratable, null)
  })
}

test('a turn of a model without a price, or of an unpriced operation, is refused like a request', () => {
  const unpriced = [turn('realtime', 'gpt-unheard-of'), turn('transcription', 'gpt-unheard-of')]
  for (const each of unpriced) {
    const plan = planTurn(each, prices())
    assert.deepEqual(plan.unratable, { reason: 'model_not_priced', refuse: 'limited' })
    assert.equal(plan.unpricedModel, each.model)
    assert.deepEqual(plan.hold, { kind: 'bound', nanos: 0n, listNanos: 0n })
  }
  const strict = prices({ unpriced: 'refuse' })
  assert.equal(planTurn(turn('realtime', 'gpt-unheard-of'), strict).unratable?.refuse, 'always')
})

const realtimeModels = shipped.models.filter(({ mode }) => mode === 'realtime')

test('no response within the context window costs more than its hold, on any project or host', () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true })
  const count = fc.nat({ max: 130_000 })
  const kinds = { text_tokens: count, audio_tokens: count, image_tokens: count }
  const stated = fc.record({
    input_token_details: fc.record(
      { ...kinds, cached_tokens: count, cached_tokens_details: fc.record(kinds) },
      { requiredKeys: [] },
    ),
    output_token_details: fc.record({ text_tokens: count, audio_tokens: count }, { requiredKeys: [] }),
  })
  fc.assert(
    fc.property(
      fc.constantFrom(...realtimeModels),
      stated,
      fc.tuple(share, share, fc.boolean(), fc.constantFrom(null, 'flex', 'priority')),
      (model, details, [readShare, writtenShare, chatRegional, chatDefaultTier]) => {
        const own = prices({ chatRegional, chatDefaultTier, discount: discountOf(700_000_000n) })
        const plan = planTurn(turn('realtime', model.id), own)
        const most = tokenLimits(plan, null, plan.version)
        const usage = realtimeUsage(
          {
            ...details,
            input_tokens: Math.floor(Number(most.input) * readShare),
            output_tokens: Math.floor(Number(most.output) * writtenShare),
          },
          model.id,
        )
        const { costNanos, listNanos } = rateFor(plan, usage)
        assert.ok(plan.hold.kind === 'bound')
        assert.ok(costNanos <= plan.hold.nanos && listNanos <= plan.hold.listNanos)
      },
    ),
  )
})
