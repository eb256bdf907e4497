import { CHAT, testExamples } from './worked-example.ts'

testExamples(
  CHAT,
  `
gpt-4o: in and out
  gpt-4o | 1,000 input, 500 output | | 7,500,000 | 1,000 × $2.50/M + 500 × $10/M = 2,500,000 + 5,000,000
gpt-4o by its dated alias
  gpt-4o-2024-08-06 | 1,000 input | | 2,500,000 | 1,000 × $2.50/M
gpt-4o-2024-05-13 is no alias, and dearer
  gpt-4o-2024-05-13 | 1,000 input | | 5,000,000 | 1,000 × $5/M
gpt-4o-mini: in and out
  gpt-4o-mini | 1,000 input, 1,000 output | | 750,000 | 1,000 × $0.15/M + 1,000 × $0.60/M
o1-pro, the most expensive of all
  o1-pro | 100 input, 10 output | | 21,000,000 | 100 × $150/M + 10 × $600/M = 15,000,000 + 6,000,000
a fine-tuned model costs what its base costs when tuned
  ft:gpt-4o-2024-08-06:acme::Abc123 | 1,000 input, 100 output | | 5,250,000 | 1,000 × $3.75/M + 100 × $15/M = 3,750,000 + 1,500,000
a fine-tuned model by an alias of its base
  ft:gpt-3.5-turbo-0125:acme:support:Abc123 | 1,000 input | | 3,000,000 | 1,000 × $3/M
gpt-6-sol under a dated name without a price is rated as it was asked for
  gpt-6-sol-2026-09-22 | 1,000 input | modelAsked gpt-6-sol, pricedAsRequested | 2,000,000 | 1,000 × $2/M
`,
)

testExamples(
  CHAT,
  `
a cached token costs half on gpt-4o
  gpt-4o | 4,000 cache_read | | 5,000,000 | 4,000 × $1.25/M
a cached token costs a quarter on gpt-4.1
  gpt-4.1 | 10,000 cache_read | | 5,000,000 | 10,000 × $0.50/M
a cached token costs a quarter on o4-mini
  o4-mini | 10,000 cache_read | | 2,750,000 | 10,000 × $0.275/M
a cached token costs half on o3-mini
  o3-mini | 10,000 cache_read | | 5,500,000 | 10,000 × $0.55/M
a cached token costs a tenth on gpt-5
  gpt-5-2025-08-07 | 10,000 cache_read | | 1,250,000 | 10,000 × $0.125/M
a cached token costs a tenth on gpt-6-sol
  gpt-6-sol | 10,000 cache_read | | 2,000,000 | 10,000 × $0.20/M
a cached token costs a twentieth on gpt-6.1-sol
  gpt-6.1-sol | 10,000 cache_read | | 1,000,000 | 10,000 × $0.10/M
a cached token costs a twentieth on gpt-6.1-terra
  gpt-6.1-terra | 10,000 cache_read | | 500,000 | 10,000 × $0.05/M
o3-pro lists no cached rate: its highest input rate, flagged
  o3-pro | 10,000 cache_read | unpriced | 200,000,000 | 10,000 × $20/M
a write for 30 minutes costs 1.25 times input from gpt-5.6 on
  gpt-5.6-sol | 1,000 cache_write_30m | | 5,000,000 | 1,000 × $5/M
a write costs no more than input before gpt-5.6
  gpt-5.4 | 500 input, 1,000 cache_write_30m | | 3,750,000 | 500 × $2.50/M + 1,000 × $2.50/M
a write for 12 hours has no list price: the highest input rate, flagged
  gpt-5.6-sol | 1,000 cache_write_30m, 1,000 cache_write_12h | unpriced | 10,000,000 | 1,000 × $5/M + 1,000 × $5/M
uncached, cached, written and output together
  gpt-5.6-sol | 1,000 input, 2,000 cache_read, 3,000 cache_write_30m, 400 output | | 27,800,000 | 1,000 × $4 + 2,000 × $0.40 + 3,000 × $5 + 400 × $20 = 4,000,000 + 800,000 + 15,000,000 + 8,000,000
`,
)

testExamples(
  CHAT,
  `
two web searches of a Responses call
  gpt-5.6-sol | 1,000 input, 2 web_searches | | 24,000,000 | 1,000 × $4/M + 2 × $10 / 1,000 = 4,000,000 + 20,000,000
four file searches
  gpt-5.6-sol | 4 file_searches | | 10,000,000 | 4 × $2.50 / 1,000
a search of gpt-4o-search-preview at its own price
  gpt-4o-search-preview | 1 web_searches_high | | 50,000,000 | 1 × $50 / 1,000
a search of gpt-4o-mini-search-preview at its own price
  gpt-4o-mini-search-preview-2025-03-11 | 1 web_searches_high | | 30,000,000 | 1 × $30 / 1,000
searches cost the same on every tier and every host
  gpt-5.6-sol | 1 web_searches, 1 file_searches | serviceTier priority, regional | 12,500,000
    $10 / 1,000 + $2.50 / 1,000
Anthropic lists no file search: nothing stands in for it, and it is flagged
  claude-opus-5 | 2 file_searches | unpriced | 0
`,
)

testExamples(
  CHAT,
  `
gpt-6-luna on Responses charges output
  gpt-6-luna | 10,000 input, 500 output | endpoint /v1/responses | 1,250,000
    10,000 × $0.10/M + 500 × $0.50/M = 1,000,000 + 250,000
gpt-6-luna on Decisions charges input only
  gpt-6-luna | 10,000 input, 500 output | endpoint /v1/decisions | 1,000,000 | 10,000 × $0.10/M
gpt-6-luna on Decisions with a long prompt
  gpt-6-luna | 300,000 input, 500 output | endpoint /v1/decisions | 60,000,000 | 300,000 × $0.20/M
gpt-6-luna on Decisions lists no cached rate: input
  gpt-6-luna | 10,000 cache_read | endpoint /v1/decisions | 1,000,000 | 10,000 × $0.10/M
another model on Decisions costs what it costs elsewhere
  gpt-6-sol | 1,000 input, 100 output | endpoint /v1/decisions | 3,000,000 | 1,000 × $2/M + 100 × $10/M
`,
)
