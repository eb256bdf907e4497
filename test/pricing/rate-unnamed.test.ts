import assert from 'node:assert/strict'
import type { Quantities } from '../../src/kernel/usage.ts'
import { NO_DISCOUNT } from '../../src/pricing/amounts.ts'
import { loadListPrices } from '../../src/pricing/load-book.ts'
import type { RatingContext } from '../../src/pricing/modifiers.ts'
import { rate } from '../../src/pricing/rate.ts'
import { test } from '../support/suite.ts'
import { CHAT, MESSAGES, partOf, shipped, usageOf } from './worked-example.ts'

/** Calls whose request names no model: the rates that they get, and the flags. */

interface Unnamed {
  readonly says: string
  readonly endpoint: string
  readonly surface?: 'messages'
  readonly served?: string
  readonly units: Quantities
  readonly listNanos: bigint
  readonly unpriced: boolean
}

const IMAGE: Quantities = { input_tokens: 100, image_input_tokens: 50, image_output_tokens: 1_000 }
const TEXT: Quantities = { input_tokens: 1_000, output_tokens: 500 }

const unnamed: readonly Unnamed[] = [
  ...['/v1/images/generations', '/v1/images/edits'].map((endpoint) => ({
    says: `${endpoint} is rated at gpt-image-2`,
    endpoint,
    units: IMAGE,
    // 100 × $5/M + 50 × $8/M + 1,000 × $30/M
    listNanos: 30_900_000n,
    unpriced: false,
  })),
  {
    says: 'a compaction, whose reply names no model, is rated at gpt-6-astra',
    endpoint: '/v1/responses/compact',
    units: TEXT,
    // 1,000 × $10/M + 500 × $50/M
    listNanos: 35_000_000n,
    unpriced: false,
  },
  {
    says: 'a response is rated at the model that it names',
    endpoint: '/v1/responses',
    served: 'gpt-5.6-sol',
    units: TEXT,
    // 1,000 × $4/M + 500 × $20/M
    listNanos: 14_000_000n,
    unpriced: false,
  },
  {
    says: 'a response of a model without a price is rated at the default, flagged: a stored prompt may name any',
    endpoint: '/v1/responses',
    served: 'gpt-6-cyber',
    units: TEXT,
    // 1,000 × $10/M + 500 × $50/M
    listNanos: 35_000_000n,
    unpriced: true,
  },
  {
    says: 'a decision has no default: the most expensive model of text, flagged',
    endpoint: '/v1/decisions',
    units: TEXT,
    // o1-pro: 1,000 × $150/M + 500 × $600/M
    listNanos: 450_000_000n,
    unpriced: true,
  },
  {
    says: 'a chat goes by the most expensive model of Chat Completions, flagged',
    endpoint: '/v1/chat/completions',
    units: TEXT,
    // gpt-4.5-preview: 1,000 × $75/M + 500 × $150/M
    listNanos: 150_000_000n,
    unpriced: true,
  },
  {
    says: 'an old completion by the most expensive of those',
    endpoint: '/v1/completions',
    units: TEXT,
    // ft:davinci-002: 1,500 × $12/M
    listNanos: 18_000_000n,
    unpriced: true,
  },
  {
    says: 'a message by the most expensive Claude that is still served',
    endpoint: '/v1/messages',
    surface: 'messages',
    units: TEXT,
    // claude-fable-5: 1,000 × $10/M + 500 × $50/M
    listNanos: 35_000_000n,
    unpriced: true,
  },
  {
    says: 'embeddings by the most expensive of their kind',
    endpoint: '/v1/embeddings',
    units: { input_tokens: 1_000 },
    // text-embedding-3-large: 1,000 × $0.13/M
    listNanos: 130_000n,
    unpriced: true,
  },
  {
    says: 'speech by the most expensive that is sold by the token',
    endpoint: '/v1/audio/speech',
    units: { input_tokens: 100, audio_output_tokens: 1_000 },
    // gpt-4o-mini-tts: 100 × $0.60/M + 1,000 × $12/M, since tts-1-hd has no rate for audio output
    listNanos: 12_060_000n,
    unpriced: true,
  },
  {
    says: 'a recording that is paid by its tokens by the most expensive that is sold so',
    endpoint: '/v1/audio/transcriptions',
    units: { audio_input_tokens: 1_000, output_tokens: 100 },
    // gpt-4o-transcribe: 1,000 × $6/M + 100 × $10/M
    listNanos: 7_000_000n,
    unpriced: true,
  },
  {
    says: 'a recording that is paid by its length by the most expensive that is sold so',
    endpoint: '/v1/audio/transcriptions',
    units: { audio_input_milliseconds: 3_600_000 },
    // gpt-live-transcribe: an hour at $1.02
    listNanos: 1_020_000_000n,
    unpriced: true,
  },
]

function contextOf(endpoint: string, surface?: 'messages'): RatingContext {
  return { ...(surface === 'messages' ? MESSAGES : CHAT), endpoint }
}

for (const { says, endpoint, surface, served, units, listNanos, unpriced } of unnamed) {
  test(`without a model in the request, ${says}`, () => {
    const usage = usageOf([partOf(units)], { modelServed: served ?? null })
    const rating = rate(usage, contextOf(endpoint, surface), shipped, NO_DISCOUNT)
    assert.deepEqual(
      [rating.kind, rating.listNanos, rating.unpriced, rating.pricedAsRequested],
      ['rated', listNanos, unpriced, false],
    )
  })
}

test('a model that the request names and that has no price is rated later, not at another', () => {
  const usage = usageOf([partOf(TEXT)], { modelServed: 'gpt-6-cyber' })
  for (const { endpoint, surface } of unnamed) {
    const context = { ...contextOf(endpoint, surface), modelAsked: 'gpt-6-cyber' }
    const rating = rate(usage, context, shipped, NO_DISCOUNT)
    assert.deepEqual([rating.kind, rating.listNanos, rating.unpriced], ['unpriced', 0n, true], endpoint)
  }
})

test('an overlay changes the default of an endpoint, and takes one away', () => {
  const overlay = {
    default_models: { '/v1/images/edits': 'gpt-image-1-mini', '/v1/responses/compact': null },
  }
  const loaded = loadListPrices(JSON.stringify(overlay))
  assert.ok(loaded.kind === 'book')
  const [version] = loaded.book.versions
  const rated = (endpoint: string, units: Quantities) =>
    rate(usageOf([partOf(units)]), contextOf(endpoint), version, NO_DISCOUNT)
  // 100 × $2/M + 50 × $2.50/M + 1,000 × $8/M
  assert.equal(rated('/v1/images/edits', IMAGE).listNanos, 8_325_000n)
  assert.equal(rated('/v1/images/generations', IMAGE).listNanos, 30_900_000n)
  // The endpoint has no default now and is rated at the most expensive model: 1,000 × $150/M + 500 × $600/M
  const compacted = rated('/v1/responses/compact', TEXT)
  assert.deepEqual([compacted.listNanos, compacted.unpriced], [450_000_000n, true])
})
