import { CHAT, type Example, testExamples } from './worked-example.ts'

// A token at $1 per million costs 1,000 nanodollars: tokens × rate × 1,000.

const plain: readonly Example[] = [
  {
    says: 'gpt-4o: in and out',
    model: 'gpt-4o',
    units: { input_tokens: 1_000, output_tokens: 500 },
    // 1,000 × $2.50/M + 500 × $10/M = 2,500,000 + 5,000,000
    listNanos: 7_500_000n,
  },
  {
    says: 'gpt-4o by its dated alias',
    model: 'gpt-4o-2024-08-06',
    units: { input_tokens: 1_000 },
    // 1,000 × $2.50/M
    listNanos: 2_500_000n,
  },
  {
    says: 'gpt-4o-2024-05-13 is no alias, and dearer',
    model: 'gpt-4o-2024-05-13',
    units: { input_tokens: 1_000 },
    // 1,000 × $5/M
    listNanos: 5_000_000n,
  },
  {
    says: 'gpt-4o-mini: in and out',
    model: 'gpt-4o-mini',
    units: { input_tokens: 1_000, output_tokens: 1_000 },
    // 1,000 × $0.15/M + 1,000 × $0.60/M
    listNanos: 750_000n,
  },
  {
    says: 'o1-pro, the dearest of all',
    model: 'o1-pro',
    units: { input_tokens: 100, output_tokens: 10 },
    // 100 × $150/M + 10 × $600/M = 15,000,000 + 6,000,000
    listNanos: 21_000_000n,
  },
  {
    says: 'a fine-tuned model costs what its base costs when tuned',
    model: 'ft:gpt-4o-2024-08-06:acme::Abc123',
    units: { input_tokens: 1_000, output_tokens: 100 },
    // 1,000 × $3.75/M + 100 × $15/M = 3,750,000 + 1,500,000
    listNanos: 5_250_000n,
  },
  {
    says: 'a fine-tuned model by an alias of its base',
    model: 'ft:gpt-3.5-turbo-0125:acme:support:Abc123',
    units: { input_tokens: 1_000 },
    // 1,000 × $3/M
    listNanos: 3_000_000n,
  },
  {
    says: 'gpt-6-sol under a dated name without a price is rated as it was asked for',
    model: 'gpt-6-sol-2026-09-22',
    units: { input_tokens: 1_000 },
    context: { modelAsked: 'gpt-6-sol' },
    // 1,000 × $2/M
    listNanos: 2_000_000n,
    pricedAsRequested: true,
  },
]

const caches: readonly Example[] = [
  {
    says: 'a cached token costs half on gpt-4o',
    model: 'gpt-4o',
    units: { cache_read_tokens: 4_000 },
    // 4,000 × $1.25/M
    listNanos: 5_000_000n,
  },
  {
    says: 'a cached token costs a quarter on gpt-4.1',
    model: 'gpt-4.1',
    units: { cache_read_tokens: 10_000 },
    // 10,000 × $0.50/M
    listNanos: 5_000_000n,
  },
  {
    says: 'a cached token costs a quarter on o4-mini',
    model: 'o4-mini',
    units: { cache_read_tokens: 10_000 },
    // 10,000 × $0.275/M
    listNanos: 2_750_000n,
  },
  {
    says: 'a cached token costs half on o3-mini',
    model: 'o3-mini',
    units: { cache_read_tokens: 10_000 },
    // 10,000 × $0.55/M
    listNanos: 5_500_000n,
  },
  {
    says: 'a cached token costs a tenth on gpt-5',
    model: 'gpt-5-2025-08-07',
    units: { cache_read_tokens: 10_000 },
    // 10,000 × $0.125/M
    listNanos: 1_250_000n,
  },
  {
    says: 'a cached token costs a tenth on gpt-6-sol',
    model: 'gpt-6-sol',
    units: { cache_read_tokens: 10_000 },
    // 10,000 × $0.20/M
    listNanos: 2_000_000n,
  },
  {
    says: 'a cached token costs a twentieth on gpt-6.1-sol',
    model: 'gpt-6.1-sol',
    units: { cache_read_tokens: 10_000 },
    // 10,000 × $0.10/M
    listNanos: 1_000_000n,
  },
  {
    says: 'a cached token costs a twentieth on gpt-6.1-terra',
    model: 'gpt-6.1-terra',
    units: { cache_read_tokens: 10_000 },
    // 10,000 × $0.05/M
    listNanos: 500_000n,
  },
  {
    says: 'o3-pro lists no cached rate: its dearest input rate, flagged',
    model: 'o3-pro',
    units: { cache_read_tokens: 10_000 },
    // 10,000 × $20/M
    listNanos: 200_000_000n,
    unpriced: true,
  },
  {
    says: 'a write for 30 minutes costs 1.25 times input from gpt-5.6 on',
    model: 'gpt-5.6-sol',
    units: { cache_write_30m_tokens: 1_000 },
    // 1,000 × $5/M
    listNanos: 5_000_000n,
  },
  {
    says: 'a write costs no more than input before gpt-5.6',
    model: 'gpt-5.4',
    units: { input_tokens: 500, cache_write_30m_tokens: 1_000 },
    // 500 × $2.50/M + 1,000 × $2.50/M
    listNanos: 3_750_000n,
  },
  {
    says: 'a write for 12 hours has no list price: the dearest input rate, flagged',
    model: 'gpt-5.6-sol',
    units: { cache_write_30m_tokens: 1_000, cache_write_12h_tokens: 1_000 },
    // 1,000 × $5/M + 1,000 × $5/M
    listNanos: 10_000_000n,
    unpriced: true,
  },
  {
    says: 'uncached, cached, written and output together',
    model: 'gpt-5.6-sol',
    units: {
      input_tokens: 1_000,
      cache_read_tokens: 2_000,
      cache_write_30m_tokens: 3_000,
      output_tokens: 400,
    },
    // 1,000 × $4 + 2,000 × $0.40 + 3,000 × $5 + 400 × $20 = 4,000,000 + 800,000 + 15,000,000 + 8,000,000
    listNanos: 27_800_000n,
  },
]

const tools: readonly Example[] = [
  {
    says: 'two web searches of a Responses call',
    model: 'gpt-5.6-sol',
    units: { input_tokens: 1_000, web_searches: 2 },
    // 1,000 × $4/M + 2 × $10 / 1,000 = 4,000,000 + 20,000,000
    listNanos: 24_000_000n,
  },
  {
    says: 'four file searches',
    model: 'gpt-5.6-sol',
    units: { file_searches: 4 },
    // 4 × $2.50 / 1,000
    listNanos: 10_000_000n,
  },
  {
    says: 'a search of gpt-4o-search-preview at its own price',
    model: 'gpt-4o-search-preview',
    units: { web_searches_high: 1 },
    // 1 × $50 / 1,000
    listNanos: 50_000_000n,
  },
  {
    says: 'a search of gpt-4o-mini-search-preview at its own price',
    model: 'gpt-4o-mini-search-preview-2025-03-11',
    units: { web_searches_high: 1 },
    // 1 × $30 / 1,000
    listNanos: 30_000_000n,
  },
  {
    says: 'searches cost the same on every tier and every host',
    model: 'gpt-5.6-sol',
    units: { web_searches: 1, file_searches: 1 },
    said: { serviceTier: 'priority' },
    context: { regional: true },
    // $10 / 1,000 + $2.50 / 1,000
    listNanos: 12_500_000n,
  },
  {
    says: 'Anthropic lists no file search: nothing stands in for it, and it is flagged',
    model: 'claude-opus-5',
    units: { file_searches: 2 },
    listNanos: 0n,
    unpriced: true,
  },
]

const decisions: readonly Example[] = [
  {
    says: 'gpt-6-luna on Responses charges output',
    model: 'gpt-6-luna',
    units: { input_tokens: 10_000, output_tokens: 500 },
    context: { endpoint: '/v1/responses' },
    // 10,000 × $0.10/M + 500 × $0.50/M = 1,000,000 + 250,000
    listNanos: 1_250_000n,
  },
  {
    says: 'gpt-6-luna on Decisions charges input only',
    model: 'gpt-6-luna',
    units: { input_tokens: 10_000, output_tokens: 500 },
    context: { endpoint: '/v1/decisions' },
    // 10,000 × $0.10/M
    listNanos: 1_000_000n,
  },
  {
    says: 'gpt-6-luna on Decisions with a long prompt',
    model: 'gpt-6-luna',
    units: { input_tokens: 300_000, output_tokens: 500 },
    context: { endpoint: '/v1/decisions' },
    // 300,000 × $0.20/M
    listNanos: 60_000_000n,
  },
  {
    says: 'gpt-6-luna on Decisions lists no cached rate: input, flagged',
    model: 'gpt-6-luna',
    units: { cache_read_tokens: 10_000 },
    context: { endpoint: '/v1/decisions' },
    // 10,000 × $0.10/M
    listNanos: 1_000_000n,
    unpriced: true,
  },
  {
    says: 'another model on Decisions costs what it costs elsewhere',
    model: 'gpt-6-sol',
    units: { input_tokens: 1_000, output_tokens: 100 },
    context: { endpoint: '/v1/decisions' },
    // 1,000 × $2/M + 100 × $10/M
    listNanos: 3_000_000n,
  },
]

testExamples(CHAT, [...plain, ...caches, ...tools, ...decisions])
