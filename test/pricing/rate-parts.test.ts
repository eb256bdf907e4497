import assert from 'node:assert/strict'
import { IMAGE_TOOL, type Usage } from '../../src/kernel/usage.ts'
import { readDiscount } from '../../src/pricing/amounts.ts'
import { rate } from '../../src/pricing/rate.ts'
import { entry, messageBody, messageStream, plain } from '../providers/usage/message-replies.ts'
import { meterBody, meterStream } from '../providers/usage/replies.ts'
import { test } from '../support/suite.ts'
import { bill, CHAT, MESSAGES, partOf, shipped, usageOf } from './worked-example.ts'

function rated(usage: Usage, context = MESSAGES) {
  return bill(usage, context)
}

test('each attempt of a fallback is rated at its own model', () => {
  const usage = usageOf(
    [
      partOf({ input_tokens: 1_000, output_tokens: 20 }, 'claude-opus-5-5'),
      partOf({ input_tokens: 1_000, output_tokens: 500 }, 'claude-sonnet-5-5'),
    ],
    { modelServed: 'claude-sonnet-5-5' },
  )
  const rating = rated(usage, { ...MESSAGES, modelAsked: 'claude-opus-5-5' })
  // 1,000 × $4/M + 20 × $20/M + 1,000 × $2/M + 500 × $10/M = 4,000,000 + 400,000 + 2,000,000 + 5,000,000
  assert.equal(rating.listNanos, 11_400_000n)
  assert.deepEqual(
    [...new Set(rating.lines.map(({ model }) => model))],
    ['claude-opus-5-5', 'claude-sonnet-5-5'],
  )
})

test('an advisor and a compaction are rated beside the message, the compaction at the response’s model', () => {
  const usage = usageOf(
    [
      partOf({ input_tokens: 1_000, output_tokens: 500 }),
      partOf({ input_tokens: 200_000, output_tokens: 3_500 }),
      partOf({ input_tokens: 823, output_tokens: 1_612 }, 'claude-opus-5'),
    ],
    { modelServed: 'claude-sonnet-5' },
  )
  // 1,000 × $2 + 500 × $10 = 7,000,000; 200,000 × $2 + 3,500 × $10 = 435,000,000;
  // 823 × $5 + 1,612 × $25 = 44,415,000
  assert.equal(rated(usage).listNanos, 486_415_000n)
})

test('each part has its own prompt length: a long part does not make others more expensive', () => {
  const usage = usageOf([partOf({ input_tokens: 100_001 }), partOf({ input_tokens: 1_000 })], {
    modelServed: 'claude-haiku-5-5',
  })
  // 100,001 × $0.50/M + 1,000 × $0.10/M = 50,000,500 + 100,000
  assert.equal(rated(usage).listNanos, 50_100_500n)
})

test('the prompt length is the total of the usage object, over all samplings of a tool loop', () => {
  const steps = [1, 2, 3].map(() =>
    entry('message', 'claude-haiku-5-5', 30_000, 100, { cache_read_input_tokens: 10_000 }),
  )
  const usage = {
    ...plain,
    input_tokens: 90_000,
    cache_read_input_tokens: 30_000,
    output_tokens: 300,
    iterations: steps,
  }
  const reply = { model: 'claude-haiku-5-5', usage }
  // None of the three prompts was longer than 40,000 tokens, and together they have 120,000:
  // 90,000 × $0.50/M + 30,000 × $0.05/M + 300 × $2.50/M = 45,000,000 + 1,500,000 + 750,000
  for (const metered of [
    meterBody('messages', messageBody(reply)),
    meterStream('messages', messageStream(reply)),
  ])
    assert.equal(rated(metered.usage).listNanos, 47_250_000n)
})

test('a declined fallback costs nothing, at any model', () => {
  const iterations = [
    entry('message', 'claude-fable-5', 1_000, 0),
    entry('fallback_message', 'claude-opus-5', 1_000, 0),
    entry('fallback_message', 'claude-sonnet-5', 1_000, 500),
  ]
  const usage = { ...plain, input_tokens: 1_000, output_tokens: 500, iterations }
  const reply = { model: 'claude-sonnet-5', usage }
  // 1,000 × $2/M + 500 × $10/M
  for (const metered of [
    meterBody('messages', messageBody(reply)),
    meterStream('messages', messageStream(reply)),
  ])
    assert.equal(rated(metered.usage).listNanos, 7_000_000n)
})

test('speed, geography and tier of the call apply to every part', () => {
  const usage = usageOf(
    [partOf({ output_tokens: 100 }, 'claude-opus-5'), partOf({ output_tokens: 100 }, 'claude-opus-5-5')],
    { modelServed: 'claude-opus-5', speed: 'fast', geography: 'us' },
  )
  // (100 × $50/M + 100 × $40/M) × 1.1 = 9,000,000 × 1.1
  assert.equal(rated(usage).listNanos, 9_900_000n)
})

test('half a nanodollar in each of two parts adds up to one', () => {
  const half = partOf({ cache_write_5m_tokens: 1 })
  const usage = usageOf([half, half], { modelServed: 'claude-haiku-5-5', serviceTier: 'batch' })
  // 2 × 1 × $0.0625/M = 62.5 + 62.5; rounded one by one they would be 124
  assert.equal(rated(usage).listNanos, 125n)
})

const drawing = usageOf(
  [partOf({ input_tokens: 1_000 }), partOf({ input_tokens: 100, image_output_tokens: 1_000 }, IMAGE_TOOL)],
  { modelServed: 'gpt-5.6-sol' },
)

test('the image tool is rated at gpt-image-2 unless the request names a model', () => {
  // 1,000 × $4/M + 100 × $5/M + 1,000 × $30/M = 4,000,000 + 500,000 + 30,000,000
  assert.equal(rated(drawing, CHAT).listNanos, 34_500_000n)
})

test('the image tool is rated at the model that the request names for it', () => {
  // 1,000 × $4/M + 100 × $2/M + 1,000 × $8/M = 4,000,000 + 200,000 + 8,000,000
  assert.equal(rated(drawing, { ...CHAT, imageToolModel: 'gpt-image-1-mini' }).listNanos, 12_200_000n)
})

test('the image tool uses the standard tier, whatever the tier of the response', () => {
  // 1,000 × $8/M + 100 × $5/M + 1,000 × $30/M
  assert.equal(rated({ ...drawing, serviceTier: 'priority' }, CHAT).listNanos, 38_500_000n)
  assert.equal(rated({ ...drawing, serviceTier: 'priority' }, CHAT).unpriced, false)
})

test('an image model without a price is rated at the most expensive image model, and flagged', () => {
  const asked = { ...CHAT, modelAsked: 'gpt-5.6-sol', imageToolModel: 'gpt-image-9' }
  // 1,000 × $4/M + 100 × $5/M + 1,000 × $40/M, the rates of chatgpt-image-latest
  const rating = rated(drawing, asked)
  assert.deepEqual([rating.listNanos, rating.unpriced, rating.pricedAsRequested], [44_500_000n, true, false])
})

test('the model that writes an SVG is rated at its own standard rates, or as an image model', () => {
  const svg = (author: string) =>
    usageOf(
      [partOf({ image_output_tokens: 1_000 }), partOf({ input_tokens: 500, output_tokens: 200 }, author)],
      { serviceTier: 'flex' },
    )
  const context = { ...CHAT, endpoint: '/v1/images/generations', modelAsked: 'gpt-image-1-mini' }
  // 500 × $4/M + 200 × $20/M for the author, and 1,000 × $8/M for the drawing
  const known = rated({ ...svg('gpt-5.6-sol'), serviceTier: null }, context)
  assert.deepEqual([known.listNanos, known.unpriced], [14_000_000n, false])
  // 500 × $5/M + 200 × $40/M, the highest rates of image models, which have no text rate
  const unknown = rated({ ...svg('nobody-knows-it'), serviceTier: null }, context)
  assert.deepEqual([unknown.listNanos, unknown.unpriced], [18_500_000n, true])
  // Images have no flex tier, so the drawing costs half, derived; the author costs the same.
  assert.equal(rated(svg('gpt-5.6-sol'), context).listNanos, 10_000_000n)
})

test('a refusal before any output is charged for its earlier searches', () => {
  const usage = usageOf([partOf({ input_tokens: 5_000, web_searches: 2 })], {
    modelServed: 'claude-opus-5',
    stopReason: 'refusal',
    freeRefusal: true,
  })
  // 2 × $10/1,000
  assert.equal(rated(usage).listNanos, 20_000_000n)
  assert.equal(rated(usage).unpriced, false)
})

test('a refusal before any output costs nothing, even if tokens are stated', () => {
  const usage = usageOf([partOf({ input_tokens: 5_000, cache_write_1h_tokens: 9_000, output_tokens: 1 })], {
    modelServed: 'claude-opus-5',
    stopReason: 'refusal',
    freeRefusal: true,
  })
  assert.deepEqual(rated(usage), {
    kind: 'rated',
    lines: [],
    listNanos: 0n,
    costNanos: 0n,
    unpriced: false,
    pricedAsRequested: false,
  })
})

test('if neither the served nor the requested model has a price, the call is unpriced', () => {
  const usage = usageOf([partOf({ input_tokens: 5 })], { modelServed: 'claude-unknown-9' })
  const rating = rated(usage, { ...MESSAGES, modelAsked: 'claude-unknown-9' })
  assert.deepEqual([rating.kind, rating.listNanos, rating.unpriced], ['unpriced', 0n, true])
})

test('without a requested model, a part without a price is rated at the most expensive model, and flagged', () => {
  const usage = usageOf([partOf({ input_tokens: 1_000 }), partOf({ input_tokens: 9 }, 'nobody-knows-it')], {
    modelServed: 'claude-opus-5',
  })
  // 1,000 × $5/M + 9 × $10/M, the rate of claude-fable-5
  assert.deepEqual(rate(usage, MESSAGES, shipped), {
    kind: 'rated',
    listNanos: 5_090_000n,
    costNanos: 5_090_000n,
    unpriced: true,
    pricedAsRequested: false,
  })
})

test('zero usage of a model without a price is rated as zero, not unpriced', () => {
  const usage = usageOf([partOf({ input_tokens: 0 })], { modelServed: 'nobody-knows-it' })
  assert.deepEqual(rate(usage, MESSAGES, shipped), {
    kind: 'rated',
    listNanos: 0n,
    costNanos: 0n,
    unpriced: false,
    pricedAsRequested: false,
  })
})

test('model names never match by prefix', () => {
  const usage = usageOf([partOf({ input_tokens: 5 })], { modelServed: 'claude-opus-5-20260101' })
  assert.equal(rated(usage, { ...MESSAGES, modelAsked: 'claude-opus-5-2026' }).kind, 'unpriced')
})

test('a fine-tuned model without a price for its base’s tunings is unpriced', () => {
  const usage = usageOf([partOf({ input_tokens: 5 })], { modelServed: 'ft:gpt-5:acme::1' })
  assert.equal(rated(usage, { ...CHAT, modelAsked: 'ft:gpt-5:acme::1' }).kind, 'unpriced')
})

test('impossible counts neither give credit nor throw', () => {
  const impossible = {
    input_tokens: -5,
    output_tokens: 1.5,
    cache_read_tokens: Number.NaN,
    web_searches: 2 ** 60,
  }
  const usage = usageOf([partOf(impossible)], { modelServed: 'claude-opus-5' })
  assert.equal(rated(usage).listNanos, 0n)
})

test('a line names its model, tier and rate', () => {
  const usage = usageOf([partOf({ input_tokens: 272_001, web_searches: 1 })], {
    modelServed: 'gpt-5.4-2026-03-05',
    serviceTier: 'priority',
  })
  const [tokens, searches] = rated(usage, { ...CHAT, regional: true }).lines
  assert.deepEqual(
    [tokens?.model, tokens?.unit, tokens?.quantity, tokens?.rate, tokens?.per],
    ['gpt-5.4', 'input_tokens', 272_001, '10', 1_000_000],
  )
  assert.deepEqual(tokens?.modifiers, ['priority', 'long context', 'regional × 1.1'])
  assert.deepEqual([searches?.rate, searches?.per, searches?.modifiers], ['10', 1_000, []])
})

test('each part has the discount of its own model', () => {
  const discount = readDiscount('0.1', { 'claude-opus-*': '0.5' })
  const usage = usageOf([partOf({ input_tokens: 1_000 }), partOf({ input_tokens: 1_000 }, 'claude-opus-5')], {
    modelServed: 'claude-sonnet-5',
  })
  const rating = bill(usage, MESSAGES, discount)
  // 1,000 × $2/M + 1,000 × $5/M = 7,000,000; 2,000,000 × 0.9 + 5,000,000 × 0.5 = 4,300,000
  assert.deepEqual([rating.listNanos, rating.costNanos], [7_000_000n, 4_300_000n])
})
