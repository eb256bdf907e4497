import { CHAT, testExamples } from './worked-example.ts'

testExamples(
  CHAT,
  `
flex costs half: input, caches and output
  gpt-5.6-sol | 1,000 input, 2,000 cache_read, 3,000 cache_write_30m, 400 output | serviceTier flex | 13,900,000
    1,000 × $2 + 2,000 × $0.20 + 3,000 × $2.50 + 400 × $10 = 27,800,000 × 0.5
a batch costs half
  gpt-5.6-sol | 1,000 input, 2,000 cache_read, 3,000 cache_write_30m, 400 output | batch | 13,900,000
    27,800,000 × 0.5
priority costs twice on the current families
  gpt-5.6-sol | 1,000 input, 2,000 cache_read, 3,000 cache_write_30m, 400 output | serviceTier priority | 55,600,000
    1,000 × $8 + 2,000 × $0.80 + 3,000 × $10 + 400 × $40 = 27,800,000 × 2
fast is another word for priority
  gpt-5.6-sol | 1,000 input, 2,000 cache_read, 3,000 cache_write_30m, 400 output | serviceTier fast | 55,600,000
    27,800,000 × 2
priority costs 1.7 times on gpt-4o
  gpt-4o | 1,000 input, 1,000 cache_read, 500 output | serviceTier priority | 14,875,000
    1,000 × $4.25/M + 1,000 × $2.125/M + 500 × $17/M = 4,250,000 + 2,125,000 + 8,500,000
priority costs 1.8 times on gpt-5-mini
  gpt-5-mini | 1,000 input, 500 output | serviceTier priority | 2,250,000
    1,000 × $0.45/M + 500 × $3.60/M = 450,000 + 1,800,000
flex of gpt-5.4 lists its own cached rate
  gpt-5.4 | 10,000 cache_read | serviceTier flex | 1,300,000 | 10,000 × $0.13/M
a batch of o3 costs what flex costs
  o3 | 1,000 input, 100 output | batch | 1,400,000 | 1,000 × $1/M + 100 × $4/M
a batch of gpt-4o lists no cached rate: half the standard one
  gpt-4o | 1,000 cache_read | batch | 625,000 | 1,000 × $1.25/M / 2
ultrafast costs six times on gpt-6-astra
  gpt-6-astra | 1,000 input, 1,000 cache_read, 1,000 cache_write_30m, 500 output | serviceTier ultrafast | 291,000,000
    1,000 × $60 + 1,000 × $6 + 1,000 × $75 + 500 × $300 = 60,000,000 + 6,000,000 + 75,000,000 + 150,000,000
ultrafast of a model that lists none is six times the standard rate, as the newest that lists it
  gpt-5.6-sol | 1,000 input | serviceTier ultrafast | 24,000,000 | 1,000 × $4/M × 6
priority of a model that lists none is twice the standard rate, as the newest model lists it
  gpt-5.4-nano | 1,000 input | serviceTier priority | 400,000 | 1,000 × $0.20/M × 2
priority of o3-mini is twice the standard rate, as the newest model lists it
  o3-mini | 1,000 input, 1,000 cache_read, 500 output | serviceTier priority | 7,700,000
    (1,000 × $1.10/M + 1,000 × $0.55/M + 500 × $4.40/M) × 2
flex of a model that lists none is half the standard rate
  chat-latest | 1,000 input, 500 output | serviceTier flex | 10,000,000 | (1,000 × $5/M + 500 × $30/M) / 2
a tier that is derived has its long prompts too
  gpt-daybreak-blue-latest | 272,001 input | serviceTier priority | 4,352,016,000 | 272,001 × $8/M × 2
a compaction states no tier, and is rated at the one that was asked for
  gpt-5.6-sol | 1,000 input, 500 output | endpoint /v1/responses/compact, tierAsked flex | 7,000,000
    (1,000 × $4/M + 500 × $20/M) / 2
a compaction that states its tier is rated at that one
  gpt-5.6-sol | 1,000 input, 500 output | serviceTier default, endpoint /v1/responses/compact, tierAsked priority | 14,000,000
    1,000 × $4/M + 500 × $20/M
the default tier is the standard one
  gpt-5.6-sol | 1,000 input, 2,000 cache_read, 3,000 cache_write_30m, 400 output | serviceTier default | 27,800,000
the scale tier is prepaid capacity, and its list cost is the standard one
  gpt-5.6-sol | 1,000 input, 2,000 cache_read, 3,000 cache_write_30m, 400 output | serviceTier scale | 27,800,000
a tier nobody knows is rated as standard and flagged
  gpt-5.6-sol | 1,000 input, 2,000 cache_read, 3,000 cache_write_30m, 400 output | serviceTier warp, unpriced | 27,800,000
the smallest listed rate: a million cached tokens of gpt-5-nano on flex
  gpt-5-nano | 1,000,000 cache_read | serviceTier flex | 2,500,000 | 1,000,000 × $0.0025/M
the smallest listed rate: one token is two and a half nanodollars, and half goes to even
  gpt-5-nano | 1 cache_read | serviceTier flex | 2 | 1 × $0.0025/M = 2.5
the smallest listed rate: three tokens
  gpt-5-nano | 3 cache_read | serviceTier flex | 8 | 3 × $0.0025/M = 7.5
`,
)

testExamples(
  CHAT,
  `
gpt-5.4: exactly 272,000 tokens is a short prompt
  gpt-5.4 | 272,000 input, 1,000 output | | 695,000,000 | 272,000 × $2.50/M + 1,000 × $15/M = 680,000,000 + 15,000,000
gpt-5.4: one token more, and the whole request is re-rated
  gpt-5.4 | 272,001 input, 1,000 output | | 1,382,505,000 | 272,001 × $5/M + 1,000 × $22.50/M = 1,360,005,000 + 22,500,000
gpt-5.6-sol: caches count for the length and are re-rated
  gpt-5.6-sol | 100,000 input, 150,000 cache_read, 50,000 cache_write_30m, 1,000 output | | 1,450,000,000
gpt-5.4-pro has no cached rate: a long prompt read from the cache costs its highest input rate, flagged
  gpt-5.4-pro | 300,000 cache_read | unpriced | 18,000,000,000 | 300,000 × $60/M
gpt-4.1 is flat to a million tokens
  gpt-4.1 | 1,000,000 input | | 2,000,000,000 | 1,000,000 × $2/M
flex and long context
  gpt-5.6-sol | 100,000 input, 150,000 cache_read, 50,000 cache_write_30m, 1,000 output | serviceTier flex | 725,000,000
    1,450,000,000 × 0.5
batch and long context
  gpt-5.6-sol | 100,000 input, 150,000 cache_read, 50,000 cache_write_30m, 1,000 output | batch | 725,000,000
    1,450,000,000 × 0.5
priority and long context
  gpt-5.6-sol | 100,000 input, 150,000 cache_read, 50,000 cache_write_30m, 1,000 output | serviceTier priority | 2,900,000,000
    1,450,000,000 × 2
ultrafast and long context
  gpt-6-astra | 300,000 input, 1,000 output | serviceTier ultrafast | 36,450,000,000
    300,000 × $120/M + 1,000 × $450/M = 36,000,000,000 + 450,000,000
flex and long context of gpt-5.4 from its own cached rate
  gpt-5.4 | 300,000 cache_read | serviceTier flex | 75,000,000 | 300,000 × $0.25/M
`,
)

testExamples(
  CHAT,
  `
a regional host costs 1.1 times
  gpt-5.4 | 1,000 input, 500 output | regional | 11,000,000 | (1,000 × $2.50/M + 500 × $15/M) × 1.1 = 10,000,000 × 1.1
a regional host costs nothing extra before gpt-5.4
  gpt-4o | 1,000 input, 500 output | regional | 7,500,000 | 1,000 × $2.50/M + 500 × $10/M
a regional host and priority
  gpt-5.6-sol | 1,000 input, 2,000 cache_read, 3,000 cache_write_30m, 400 output | serviceTier priority, regional | 61,160,000
    27,800,000 × 2 × 1.1
a regional host, flex and long context
  gpt-5.6-sol | 100,000 input, 150,000 cache_read, 50,000 cache_write_30m, 1,000 output | serviceTier flex, regional | 797,500,000
    1,450,000,000 × 0.5 × 1.1
a regional host, priority, long context and a search
  gpt-5.6-sol | 100,000 input, 150,000 cache_read, 50,000 cache_write_30m, 1,000 output, 1 web_searches | serviceTier priority, regional | 3,200,000,000
    1,450,000,000 × 2 × 1.1 + $10 / 1,000 = 3,190,000,000 + 10,000,000
`,
)
