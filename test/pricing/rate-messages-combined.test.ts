import { type Example, MESSAGES, testExamples } from './worked-example.ts'

const CACHES = { cache_read_tokens: 10_000, cache_write_5m_tokens: 2_000, cache_write_1h_tokens: 2_000 }

const combinations: readonly Example[] = [
  {
    says: 'batch and cache read',
    model: 'claude-opus-5',
    units: { cache_read_tokens: 10_000 },
    said: { serviceTier: 'batch' },
    // 10,000 × $0.25/M
    listNanos: 2_500_000n,
  },
  {
    says: 'batch and both cache writes',
    model: 'claude-opus-5',
    units: { cache_write_5m_tokens: 2_000, cache_write_1h_tokens: 2_000 },
    said: { serviceTier: 'batch' },
    // 2,000 × $3.125/M + 2,000 × $5/M = 6,250,000 + 10,000,000
    listNanos: 16_250_000n,
  },
  {
    says: 'batch in the US',
    model: 'claude-opus-5',
    units: { input_tokens: 1_000, output_tokens: 500 },
    said: { serviceTier: 'batch', geography: 'us' },
    // (1,000 × $2.50/M + 500 × $12.50/M) × 1.1 = 8,750,000 × 1.1
    listNanos: 9_625_000n,
  },
  {
    says: 'batch in the US with caches',
    model: 'claude-opus-5',
    units: CACHES,
    said: { serviceTier: 'batch', geography: 'us' },
    // (10,000 × $0.25 + 2,000 × $3.125 + 2,000 × $5) × 1.1 = 18,750,000 × 1.1
    listNanos: 20_625_000n,
  },
  {
    says: 'there is no fast mode in a batch',
    model: 'claude-opus-5',
    units: { input_tokens: 1_000, output_tokens: 500 },
    said: { serviceTier: 'batch', speed: 'fast' },
    // 1,000 × $2.50/M + 500 × $12.50/M
    listNanos: 8_750_000n,
  },
  {
    says: 'fast with caches: the cache multipliers are on the fast input rate',
    model: 'claude-opus-5',
    units: CACHES,
    said: { speed: 'fast' },
    // 10,000 × $1/M + 2,000 × $12.50/M + 2,000 × $20/M = 10,000,000 + 25,000,000 + 40,000,000
    listNanos: 75_000_000n,
  },
  {
    says: 'fast with a cache read of claude-opus-5-5',
    model: 'claude-opus-5-5',
    units: { cache_read_tokens: 10_000 },
    said: { speed: 'fast' },
    // 10,000 × $0.40/M
    listNanos: 4_000_000n,
  },
  {
    says: 'fast in the US',
    model: 'claude-opus-5',
    units: { input_tokens: 1_000, output_tokens: 500 },
    said: { speed: 'fast', geography: 'us' },
    // (1,000 × $10/M + 500 × $50/M) × 1.1 = 35,000,000 × 1.1
    listNanos: 38_500_000n,
  },
  {
    says: 'fast in the US with caches',
    model: 'claude-opus-5',
    units: CACHES,
    said: { speed: 'fast', geography: 'us' },
    // 75,000,000 × 1.1
    listNanos: 82_500_000n,
  },
  {
    says: 'priority in the US',
    model: 'claude-opus-5',
    units: { input_tokens: 1_000 },
    said: { serviceTier: 'priority', geography: 'us' },
    // 1,000 × $5/M × 1.1
    listNanos: 5_500_000n,
  },
  {
    says: 'a web search costs the same in a batch in the US',
    model: 'claude-opus-5',
    units: { input_tokens: 1_000, web_searches: 3 },
    said: { serviceTier: 'batch', geography: 'us' },
    // 1,000 × $2.50/M × 1.1 + 3 × $10 / 1,000 = 2,750,000 + 30,000,000
    listNanos: 32_750_000n,
  },
  {
    says: 'a web search costs the same in fast mode',
    model: 'claude-opus-5',
    units: { input_tokens: 1_000, web_searches: 3 },
    said: { speed: 'fast' },
    // 1,000 × $10/M + 3 × $10 / 1,000
    listNanos: 40_000_000n,
  },
]

const longContext: readonly Example[] = [
  {
    says: 'claude-haiku-5-5: exactly 100,000 tokens is a short prompt',
    model: 'claude-haiku-5-5',
    units: { input_tokens: 100_000, output_tokens: 1_000 },
    // 100,000 × $0.10/M + 1,000 × $0.50/M = 10,000,000 + 500,000
    listNanos: 10_500_000n,
  },
  {
    says: 'claude-haiku-5-5: one token more, and the whole request costs five times',
    model: 'claude-haiku-5-5',
    units: { input_tokens: 100_001, output_tokens: 1_000 },
    // 100,001 × $0.50/M + 1,000 × $2.50/M = 50,000,500 + 2,500,000
    listNanos: 52_500_500n,
  },
  {
    says: 'claude-haiku-5-5: cached tokens make a prompt long, and cost five times too',
    model: 'claude-haiku-5-5',
    units: {
      input_tokens: 1_000,
      cache_read_tokens: 150_000,
      cache_write_5m_tokens: 10_000,
      cache_write_1h_tokens: 5_000,
      output_tokens: 2_000,
    },
    // 1,000 × $0.50 + 150,000 × $0.05 + 10,000 × $0.625 + 5,000 × $1 + 2,000 × $2.50
    // = 500,000 + 7,500,000 + 6,250,000 + 5,000,000 + 5,000,000
    listNanos: 24_250_000n,
  },
  {
    says: 'claude-haiku-5-5: long in a batch',
    model: 'claude-haiku-5-5',
    units: { input_tokens: 100_001, output_tokens: 1_000 },
    said: { serviceTier: 'batch' },
    // 100,001 × $0.25/M + 1,000 × $1.25/M = 25,000,250 + 1,250,000
    listNanos: 26_250_250n,
  },
  {
    says: 'claude-haiku-5-5: long in the US',
    model: 'claude-haiku-5-5',
    units: { input_tokens: 100_001, output_tokens: 1_000 },
    said: { geography: 'us' },
    // 52,500,500 × 1.1
    listNanos: 57_750_550n,
  },
  {
    says: 'claude-haiku-5-5: long in a batch in the US',
    model: 'claude-haiku-5-5',
    units: { input_tokens: 100_001, output_tokens: 1_000 },
    said: { serviceTier: 'batch', geography: 'us' },
    // 26,250,250 × 1.1
    listNanos: 28_875_275n,
  },
  {
    says: 'claude-haiku-5-5: long in a batch with caches',
    model: 'claude-haiku-5-5',
    units: { cache_read_tokens: 150_000, cache_write_5m_tokens: 10_000, cache_write_1h_tokens: 5_000 },
    said: { serviceTier: 'batch' },
    // 150,000 × $0.025/M + 10,000 × $0.3125/M + 5,000 × $0.50/M = 3,750,000 + 3,125,000 + 2,500,000
    listNanos: 9_375_000n,
  },
  {
    says: 'Claude 4.6 and later are flat to a million tokens',
    model: 'claude-sonnet-4-6',
    units: { input_tokens: 900_000 },
    // 900,000 × $3/M
    listNanos: 2_700_000_000n,
  },
  {
    says: 'the former dearer rates of claude-sonnet-4-5 above 200,000 tokens are history',
    model: 'claude-sonnet-4-5',
    units: { input_tokens: 250_000 },
    // 250,000 × $3/M
    listNanos: 750_000_000n,
  },
]

const fractions: readonly Example[] = [
  {
    says: 'one cached token of claude-haiku-5-5 is ten nanodollars',
    model: 'claude-haiku-5-5',
    units: { cache_read_tokens: 1 },
    // 1 × $0.01/M
    listNanos: 10n,
  },
  {
    says: 'half a nanodollar goes to the even side, up',
    model: 'claude-haiku-5-5',
    units: { cache_read_tokens: 1 },
    said: { serviceTier: 'batch', geography: 'us' },
    // 1 × $0.005/M × 1.1 = 5.5
    listNanos: 6n,
  },
  {
    says: 'half a nanodollar goes to the even side, down',
    model: 'claude-haiku-5-5',
    units: { cache_read_tokens: 3 },
    said: { serviceTier: 'batch', geography: 'us' },
    // 3 × $0.005/M × 1.1 = 16.5
    listNanos: 16n,
  },
  {
    says: 'two halves make a whole before anything is rounded',
    model: 'claude-haiku-5-5',
    units: { cache_read_tokens: 1, cache_write_5m_tokens: 1 },
    said: { serviceTier: 'batch', geography: 'us' },
    // 1 × $0.005/M × 1.1 + 1 × $0.0625/M × 1.1 = 5.5 + 68.75 = 74.25
    listNanos: 74n,
  },
]

testExamples(MESSAGES, [...combinations, ...longContext, ...fractions])
