import assert from 'node:assert/strict'
import type { Quantities } from '../../src/kernel/usage.ts'
import { rate } from '../../src/pricing/rate.ts'
import type { RatingContext } from '../../src/pricing/rating-context.ts'
import { test } from '../support/suite.ts'
import {
  CHAT,
  MESSAGES,
  modesOf,
  partOf,
  shipped,
  testExamples,
  usageOf,
  versionWith,
} from './worked-example.ts'

const IMAGE: Quantities = { input_tokens: 100, image_input_tokens: 50, image_output_tokens: 1_000 }
const TEXT: Quantities = { input_tokens: 1_000, output_tokens: 500 }

testExamples(
  CHAT,
  `
without a model in the request, /v1/images/generations is rated at gpt-image-2
  - | 100 input, 50 image_input, 1,000 image_output | modelServed null, endpoint /v1/images/generations | 30,900,000
    100 × $5/M + 50 × $8/M + 1,000 × $30/M
without a model in the request, /v1/images/edits is rated at gpt-image-2
  - | 100 input, 50 image_input, 1,000 image_output | modelServed null, endpoint /v1/images/edits | 30,900,000
    the same
without a model in the request, a compaction, whose reply names no model, is rated at gpt-6-astra
  - | 1,000 input, 500 output | modelServed null, endpoint /v1/responses/compact | 35,000,000
    1,000 × $10/M + 500 × $50/M
without a model in the request, a response is rated at the model that it names
  gpt-5.6-sol | 1,000 input, 500 output | modelServed gpt-5.6-sol, endpoint /v1/responses | 14,000,000
    1,000 × $4/M + 500 × $20/M
without a model in the request, a response of a model without a price is rated at the default, flagged: a stored prompt may name any
  gpt-6-cyber | 1,000 input, 500 output | modelServed gpt-6-cyber, endpoint /v1/responses, unpriced | 35,000,000
    1,000 × $10/M + 500 × $50/M
without a model in the request, a decision has no default: the most expensive model of text, flagged
  - | 1,000 input, 500 output | modelServed null, endpoint /v1/decisions, unpriced | 450,000,000
    o1-pro: 1,000 × $150/M + 500 × $600/M
without a model in the request, a chat goes by the most expensive model of Chat Completions, flagged
  - | 1,000 input, 500 output | modelServed null, endpoint /v1/chat/completions, unpriced | 150,000,000
    gpt-4.5-preview: 1,000 × $75/M + 500 × $150/M
without a model in the request, an old completion by the most expensive of those
  - | 1,000 input, 500 output | modelServed null, endpoint /v1/completions, unpriced | 18,000,000
    ft:davinci-002: 1,500 × $12/M
without a model in the request, embeddings by the most expensive of their kind
  - | 1,000 input | modelServed null, endpoint /v1/embeddings, unpriced | 130,000
    text-embedding-3-large: 1,000 × $0.13/M
without a model in the request, speech by the most expensive that is sold by the token
  - | 100 input, 1,000 audio_output | modelServed null, endpoint /v1/audio/speech, unpriced | 12,060,000
    gpt-4o-mini-tts: 100 × $0.60/M + 1,000 × $12/M, since tts-1-hd has no rate for audio output
without a model in the request, a recording that is paid by its tokens by the most expensive that is sold so
  - | 1,000 audio_input, 100 output | modelServed null, endpoint /v1/audio/transcriptions, unpriced | 7,000,000
    gpt-4o-transcribe: 1,000 × $6/M + 100 × $10/M
without a model in the request, a recording that is paid by its length by the most expensive that is sold so
  - | 3,600,000 audio_input_milliseconds | modelServed null, endpoint /v1/audio/transcriptions, unpriced | 1,020,000,000
    gpt-live-transcribe: an hour at $1.02
`,
)
testExamples(
  MESSAGES,
  `
without a model in the request, a message goes by the most expensive Claude that is still served, flagged
  - | 1,000 input, 500 output | modelServed null, endpoint /v1/messages, unpriced | 35,000,000
    claude-fable-5: 1,000 × $10/M + 500 × $50/M
`,
)

const contextOf = (endpoint: string): RatingContext => ({ ...CHAT, endpoint, modes: modesOf(endpoint) })

test('a requested model without a price is unpriced, not rated at another', () => {
  const usage = usageOf([partOf(TEXT)], { modelServed: 'gpt-6-cyber' })
  for (const endpoint of ['/v1/images/edits', '/v1/responses/compact', '/v1/responses', '/v1/decisions']) {
    const context = { ...contextOf(endpoint), modelAsked: 'gpt-6-cyber' }
    const rating = rate(usage, context, shipped)
    assert.deepEqual([rating.kind, rating.listNanos, rating.unpriced], ['unpriced', 0n, true], endpoint)
  }
})

test('an overlay can change and remove the default model of an endpoint', () => {
  const version = versionWith({
    default_models: { '/v1/images/edits': 'gpt-image-1-mini', '/v1/responses/compact': null },
  })
  const rated = (endpoint: string, units: Quantities) =>
    rate(usageOf([partOf(units)]), contextOf(endpoint), version)
  // 100 × $2/M + 50 × $2.50/M + 1,000 × $8/M
  assert.equal(rated('/v1/images/edits', IMAGE).listNanos, 8_325_000n)
  assert.equal(rated('/v1/images/generations', IMAGE).listNanos, 30_900_000n)
  // The endpoint has no default now and uses the most expensive model: 1,000 × $150/M + 500 × $600/M
  const compacted = rated('/v1/responses/compact', TEXT)
  assert.deepEqual([compacted.listNanos, compacted.unpriced], [450_000_000n, true])
})
