import { CHAT, type Example, testExamples } from './worked-example.ts'

/** Units that cost at standard rates 1,000 × $4 + 2,000 × $0.40 + 3,000 × $5 + 400 × $20 = 27,800,000 nanodollars. */
const MIXED = {
  input_tokens: 1_000,
  cache_read_tokens: 2_000,
  cache_write_30m_tokens: 3_000,
  output_tokens: 400,
}

/**
 * A prompt of 300,000 tokens, at long-context rates:
 * 100,000 × $8 + 150,000 × $0.80 + 50,000 × $10 + 1,000 × $30
 * = 800,000,000 + 120,000,000 + 500,000,000 + 30,000,000 = 1,450,000,000 nanodollars.
 */
const LONG = {
  input_tokens: 100_000,
  cache_read_tokens: 150_000,
  cache_write_30m_tokens: 50_000,
  output_tokens: 1_000,
}

const tiers: readonly Example[] = [
  {
    says: 'flex costs half: input, caches and output',
    model: 'gpt-5.6-sol',
    units: MIXED,
    said: { serviceTier: 'flex' },
    // 1,000 × $2 + 2,000 × $0.20 + 3,000 × $2.50 + 400 × $10 = 27,800,000 × 0.5
    listNanos: 13_900_000n,
  },
  {
    says: 'a batch costs half',
    model: 'gpt-5.6-sol',
    units: MIXED,
    context: { batch: true },
    // 27,800,000 × 0.5
    listNanos: 13_900_000n,
  },
  {
    says: 'priority costs twice on the current families',
    model: 'gpt-5.6-sol',
    units: MIXED,
    said: { serviceTier: 'priority' },
    // 1,000 × $8 + 2,000 × $0.80 + 3,000 × $10 + 400 × $40 = 27,800,000 × 2
    listNanos: 55_600_000n,
  },
  {
    says: 'fast is another word for priority',
    model: 'gpt-5.6-sol',
    units: MIXED,
    said: { serviceTier: 'fast' },
    // 27,800,000 × 2
    listNanos: 55_600_000n,
  },
  {
    says: 'priority costs 1.7 times on gpt-4o',
    model: 'gpt-4o',
    units: { input_tokens: 1_000, cache_read_tokens: 1_000, output_tokens: 500 },
    said: { serviceTier: 'priority' },
    // 1,000 × $4.25/M + 1,000 × $2.125/M + 500 × $17/M = 4,250,000 + 2,125,000 + 8,500,000
    listNanos: 14_875_000n,
  },
  {
    says: 'priority costs 1.8 times on gpt-5-mini',
    model: 'gpt-5-mini',
    units: { input_tokens: 1_000, output_tokens: 500 },
    said: { serviceTier: 'priority' },
    // 1,000 × $0.45/M + 500 × $3.60/M = 450,000 + 1,800,000
    listNanos: 2_250_000n,
  },
  {
    says: 'flex of gpt-5.4 lists its own cached rate',
    model: 'gpt-5.4',
    units: { cache_read_tokens: 10_000 },
    said: { serviceTier: 'flex' },
    // 10,000 × $0.13/M
    listNanos: 1_300_000n,
  },
  {
    says: 'a batch of o3 costs what flex costs',
    model: 'o3',
    units: { input_tokens: 1_000, output_tokens: 100 },
    context: { batch: true },
    // 1,000 × $1/M + 100 × $4/M
    listNanos: 1_400_000n,
  },
  {
    says: 'a batch of gpt-4o lists no cached rate: half the standard one',
    model: 'gpt-4o',
    units: { cache_read_tokens: 1_000 },
    context: { batch: true },
    // 1,000 × $1.25/M / 2
    listNanos: 625_000n,
  },
  {
    says: 'ultrafast costs six times on gpt-6-astra',
    model: 'gpt-6-astra',
    units: {
      input_tokens: 1_000,
      cache_read_tokens: 1_000,
      cache_write_30m_tokens: 1_000,
      output_tokens: 500,
    },
    said: { serviceTier: 'ultrafast' },
    // 1,000 × $60 + 1,000 × $6 + 1,000 × $75 + 500 × $300 = 60,000,000 + 6,000,000 + 75,000,000 + 150,000,000
    listNanos: 291_000_000n,
  },
  {
    says: 'ultrafast of a model that lists none is six times the standard rate, as the newest that lists it',
    model: 'gpt-5.6-sol',
    units: { input_tokens: 1_000 },
    said: { serviceTier: 'ultrafast' },
    // 1,000 × $4/M × 6
    listNanos: 24_000_000n,
  },
  {
    says: 'priority of a model that lists none is twice the standard rate, as the newest model lists it',
    model: 'gpt-5.4-nano',
    units: { input_tokens: 1_000 },
    said: { serviceTier: 'priority' },
    // 1,000 × $0.20/M × 2
    listNanos: 400_000n,
  },
  {
    says: 'priority of o3-mini is twice the standard rate, as the newest model lists it',
    model: 'o3-mini',
    units: { input_tokens: 1_000, cache_read_tokens: 1_000, output_tokens: 500 },
    said: { serviceTier: 'priority' },
    // (1,000 × $1.10/M + 1,000 × $0.55/M + 500 × $4.40/M) × 2
    listNanos: 7_700_000n,
  },
  {
    says: 'flex of a model that lists none is half the standard rate',
    model: 'chat-latest',
    units: { input_tokens: 1_000, output_tokens: 500 },
    said: { serviceTier: 'flex' },
    // (1,000 × $5/M + 500 × $30/M) / 2
    listNanos: 10_000_000n,
  },
  {
    says: 'a tier that is derived has its long prompts too',
    model: 'gpt-daybreak-blue-latest',
    units: { input_tokens: 272_001 },
    said: { serviceTier: 'priority' },
    // 272,001 × $8/M × 2
    listNanos: 4_352_016_000n,
  },
  {
    says: 'a compaction states no tier, and is rated at the one that was asked for',
    model: 'gpt-5.6-sol',
    units: { input_tokens: 1_000, output_tokens: 500 },
    context: { endpoint: '/v1/responses/compact', tierAsked: 'flex' },
    // (1,000 × $4/M + 500 × $20/M) / 2
    listNanos: 7_000_000n,
  },
  {
    says: 'a compaction that states its tier is rated at that one',
    model: 'gpt-5.6-sol',
    units: { input_tokens: 1_000, output_tokens: 500 },
    said: { serviceTier: 'default' },
    context: { endpoint: '/v1/responses/compact', tierAsked: 'priority' },
    // 1,000 × $4/M + 500 × $20/M
    listNanos: 14_000_000n,
  },
  {
    says: 'elsewhere a reply without a tier is a standard one, whatever was asked for',
    model: 'gpt-5.6-sol',
    units: { input_tokens: 1_000, output_tokens: 500 },
    context: { endpoint: '/v1/responses', tierAsked: 'priority' },
    // 1,000 × $4/M + 500 × $20/M
    listNanos: 14_000_000n,
  },
  {
    says: 'the default tier is the standard one',
    model: 'gpt-5.6-sol',
    units: MIXED,
    said: { serviceTier: 'default' },
    listNanos: 27_800_000n,
  },
  {
    says: 'the scale tier is prepaid capacity, and its list cost is the standard one',
    model: 'gpt-5.6-sol',
    units: MIXED,
    said: { serviceTier: 'scale' },
    listNanos: 27_800_000n,
  },
  {
    says: 'a tier nobody knows is rated as standard and flagged',
    model: 'gpt-5.6-sol',
    units: MIXED,
    said: { serviceTier: 'warp' },
    listNanos: 27_800_000n,
    unpriced: true,
  },
  {
    says: 'the smallest listed rate: a million cached tokens of gpt-5-nano on flex',
    model: 'gpt-5-nano',
    units: { cache_read_tokens: 1_000_000 },
    said: { serviceTier: 'flex' },
    // 1,000,000 × $0.0025/M
    listNanos: 2_500_000n,
  },
  {
    says: 'the smallest listed rate: one token is two and a half nanodollars, and half goes to even',
    model: 'gpt-5-nano',
    units: { cache_read_tokens: 1 },
    said: { serviceTier: 'flex' },
    // 1 × $0.0025/M = 2.5
    listNanos: 2n,
  },
  {
    says: 'the smallest listed rate: three tokens',
    model: 'gpt-5-nano',
    units: { cache_read_tokens: 3 },
    said: { serviceTier: 'flex' },
    // 3 × $0.0025/M = 7.5
    listNanos: 8n,
  },
]

const longContext: readonly Example[] = [
  {
    says: 'gpt-5.4: exactly 272,000 tokens is a short prompt',
    model: 'gpt-5.4',
    units: { input_tokens: 272_000, output_tokens: 1_000 },
    // 272,000 × $2.50/M + 1,000 × $15/M = 680,000,000 + 15,000,000
    listNanos: 695_000_000n,
  },
  {
    says: 'gpt-5.4: one token more, and the whole request is re-rated',
    model: 'gpt-5.4',
    units: { input_tokens: 272_001, output_tokens: 1_000 },
    // 272,001 × $5/M + 1,000 × $22.50/M = 1,360,005,000 + 22,500,000
    listNanos: 1_382_505_000n,
  },
  {
    says: 'gpt-5.6-sol: caches count for the length and are re-rated',
    model: 'gpt-5.6-sol',
    units: LONG,
    listNanos: 1_450_000_000n,
  },
  {
    says: 'gpt-5.4-pro: a long prompt read from the cache',
    model: 'gpt-5.4-pro',
    units: { cache_read_tokens: 300_000 },
    // 300,000 × $6/M
    listNanos: 1_800_000_000n,
  },
  {
    says: 'gpt-4.1 is flat to a million tokens',
    model: 'gpt-4.1',
    units: { input_tokens: 1_000_000 },
    // 1,000,000 × $2/M
    listNanos: 2_000_000_000n,
  },
  {
    says: 'flex and long context',
    model: 'gpt-5.6-sol',
    units: LONG,
    said: { serviceTier: 'flex' },
    // 1,450,000,000 × 0.5
    listNanos: 725_000_000n,
  },
  {
    says: 'batch and long context',
    model: 'gpt-5.6-sol',
    units: LONG,
    context: { batch: true },
    // 1,450,000,000 × 0.5
    listNanos: 725_000_000n,
  },
  {
    says: 'priority and long context',
    model: 'gpt-5.6-sol',
    units: LONG,
    said: { serviceTier: 'priority' },
    // 1,450,000,000 × 2
    listNanos: 2_900_000_000n,
  },
  {
    says: 'ultrafast and long context',
    model: 'gpt-6-astra',
    units: { input_tokens: 300_000, output_tokens: 1_000 },
    said: { serviceTier: 'ultrafast' },
    // 300,000 × $120/M + 1,000 × $450/M = 36,000,000,000 + 450,000,000
    listNanos: 36_450_000_000n,
  },
  {
    says: 'flex and long context of gpt-5.4 from its own cached rate',
    model: 'gpt-5.4',
    units: { cache_read_tokens: 300_000 },
    said: { serviceTier: 'flex' },
    // 300,000 × $0.26/M
    listNanos: 78_000_000n,
  },
]

const regional: readonly Example[] = [
  {
    says: 'a regional host costs 1.1 times',
    model: 'gpt-5.4',
    units: { input_tokens: 1_000, output_tokens: 500 },
    context: { regional: true },
    // (1,000 × $2.50/M + 500 × $15/M) × 1.1 = 10,000,000 × 1.1
    listNanos: 11_000_000n,
  },
  {
    says: 'a regional host costs nothing extra before gpt-5.4',
    model: 'gpt-4o',
    units: { input_tokens: 1_000, output_tokens: 500 },
    context: { regional: true },
    // 1,000 × $2.50/M + 500 × $10/M
    listNanos: 7_500_000n,
  },
  {
    says: 'a regional host and priority',
    model: 'gpt-5.6-sol',
    units: MIXED,
    said: { serviceTier: 'priority' },
    context: { regional: true },
    // 27,800,000 × 2 × 1.1
    listNanos: 61_160_000n,
  },
  {
    says: 'a regional host, flex and long context',
    model: 'gpt-5.6-sol',
    units: LONG,
    said: { serviceTier: 'flex' },
    context: { regional: true },
    // 1,450,000,000 × 0.5 × 1.1
    listNanos: 797_500_000n,
  },
  {
    says: 'a regional host, priority, long context and a search',
    model: 'gpt-5.6-sol',
    units: { ...LONG, web_searches: 1 },
    said: { serviceTier: 'priority' },
    context: { regional: true },
    // 1,450,000,000 × 2 × 1.1 + $10 / 1,000 = 3,190,000,000 + 10,000,000
    listNanos: 3_200_000_000n,
  },
]

testExamples(CHAT, [...tiers, ...longContext, ...regional])
