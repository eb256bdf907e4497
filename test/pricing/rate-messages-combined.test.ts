import { MESSAGES, testExamples } from './worked-example.ts'

testExamples(
  MESSAGES,
  `
batch and cache read
  claude-opus-5 | 10,000 cache_read | serviceTier batch | 2,500,000 | 10,000 × $0.25/M
batch and both cache writes
  claude-opus-5 | 2,000 cache_write_5m, 2,000 cache_write_1h | serviceTier batch | 16,250,000
    2,000 × $3.125/M + 2,000 × $5/M = 6,250,000 + 10,000,000
batch in the US
  claude-opus-5 | 1,000 input, 500 output | serviceTier batch, geography us | 9,625,000
    (1,000 × $2.50/M + 500 × $12.50/M) × 1.1 = 8,750,000 × 1.1
batch in the US with caches
  claude-opus-5 | 10,000 cache_read, 2,000 cache_write_5m, 2,000 cache_write_1h | serviceTier batch, geography us | 20,625,000
    (10,000 × $0.25 + 2,000 × $3.125 + 2,000 × $5) × 1.1 = 18,750,000 × 1.1
there is no fast mode in a batch
  claude-opus-5 | 1,000 input, 500 output | serviceTier batch, speed fast | 8,750,000
    1,000 × $2.50/M + 500 × $12.50/M
fast with caches: the cache multipliers are on the fast input rate
  claude-opus-5 | 10,000 cache_read, 2,000 cache_write_5m, 2,000 cache_write_1h | speed fast | 75,000,000
    10,000 × $1/M + 2,000 × $12.50/M + 2,000 × $20/M = 10,000,000 + 25,000,000 + 40,000,000
fast with a cache read of claude-opus-5-5
  claude-opus-5-5 | 10,000 cache_read | speed fast | 4,000,000 | 10,000 × $0.40/M
fast in the US
  claude-opus-5 | 1,000 input, 500 output | speed fast, geography us | 38,500,000
    (1,000 × $10/M + 500 × $50/M) × 1.1 = 35,000,000 × 1.1
fast in the US with caches
  claude-opus-5 | 10,000 cache_read, 2,000 cache_write_5m, 2,000 cache_write_1h | speed fast, geography us | 82,500,000
    75,000,000 × 1.1
priority in the US
  claude-opus-5 | 1,000 input | serviceTier priority, geography us | 5,500,000 | 1,000 × $5/M × 1.1
a web search costs the same in a batch in the US
  claude-opus-5 | 1,000 input, 3 web_searches | serviceTier batch, geography us | 32,750,000
    1,000 × $2.50/M × 1.1 + 3 × $10 / 1,000 = 2,750,000 + 30,000,000
a web search costs the same in fast mode
  claude-opus-5 | 1,000 input, 3 web_searches | speed fast | 40,000,000 | 1,000 × $10/M + 3 × $10 / 1,000
`,
)

testExamples(
  MESSAGES,
  `
claude-haiku-5-5: exactly 100,000 tokens is a short prompt
  claude-haiku-5-5 | 100,000 input, 1,000 output | | 10,500,000 | 100,000 × $0.10/M + 1,000 × $0.50/M = 10,000,000 + 500,000
claude-haiku-5-5: one token more, and the whole request costs five times
  claude-haiku-5-5 | 100,001 input, 1,000 output | | 52,500,500 | 100,001 × $0.50/M + 1,000 × $2.50/M = 50,000,500 + 2,500,000
claude-haiku-5-5: cached tokens make a prompt long, and cost five times too
  claude-haiku-5-5 | 1,000 input, 150,000 cache_read, 10,000 cache_write_5m, 5,000 cache_write_1h, 2,000 output | | 24,250,000 | 1,000 × $0.50 + 150,000 × $0.05 + 10,000 × $0.625 + 5,000 × $1 + 2,000 × $2.50 = 500,000 + 7,500,000 + 6,250,000 + 5,000,000 + 5,000,000
claude-haiku-5-5: long in a batch
  claude-haiku-5-5 | 100,001 input, 1,000 output | serviceTier batch | 26,250,250
    100,001 × $0.25/M + 1,000 × $1.25/M = 25,000,250 + 1,250,000
claude-haiku-5-5: long in the US
  claude-haiku-5-5 | 100,001 input, 1,000 output | geography us | 57,750,550 | 52,500,500 × 1.1
claude-haiku-5-5: long in a batch in the US
  claude-haiku-5-5 | 100,001 input, 1,000 output | serviceTier batch, geography us | 28,875,275 | 26,250,250 × 1.1
claude-haiku-5-5: long in a batch with caches
  claude-haiku-5-5 | 150,000 cache_read, 10,000 cache_write_5m, 5,000 cache_write_1h | serviceTier batch | 9,375,000
    150,000 × $0.025/M + 10,000 × $0.3125/M + 5,000 × $0.50/M = 3,750,000 + 3,125,000 + 2,500,000
Claude 4.6 and later are flat to a million tokens
  claude-sonnet-4-6 | 900,000 input | | 2,700,000,000 | 900,000 × $3/M
the former dearer rates of claude-sonnet-4-5 above 200,000 tokens are history
  claude-sonnet-4-5 | 250,000 input | | 750,000,000 | 250,000 × $3/M
`,
)

testExamples(
  MESSAGES,
  `
one cached token of claude-haiku-5-5 is ten nanodollars
  claude-haiku-5-5 | 1 cache_read | | 10 | 1 × $0.01/M
half a nanodollar goes to the even side, up
  claude-haiku-5-5 | 1 cache_read | serviceTier batch, geography us | 6 | 1 × $0.005/M × 1.1 = 5.5
half a nanodollar goes to the even side, down
  claude-haiku-5-5 | 3 cache_read | serviceTier batch, geography us | 16 | 3 × $0.005/M × 1.1 = 16.5
two halves make a whole before anything is rounded
  claude-haiku-5-5 | 1 cache_read, 1 cache_write_5m | serviceTier batch, geography us | 74
    1 × $0.005/M × 1.1 + 1 × $0.0625/M × 1.1 = 5.5 + 68.75 = 74.25
`,
)
