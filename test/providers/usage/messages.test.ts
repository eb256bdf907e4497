import assert from 'node:assert/strict'
import type { Usage, UsagePart } from '../../../src/kernel/usage.ts'
import { test } from '../../support/suite.ts'
import {
  entry,
  fallback,
  type MessageReply,
  messageBody,
  messageStream,
  plain,
  text,
} from './message-replies.ts'
import { type Json, meterBody, meterStream, words } from './replies.ts'

type Example = readonly [
  sentence: string,
  usage: Json,
  parts: readonly UsagePart[],
  reply?: Omit<MessageReply, 'usage'>,
  expected?: Partial<Usage>,
]

const OWN = words('in 100 out 40')
const OPUS = 'claude-opus-5'
const FABLE = 'claude-fable-5'
const fellBack = (...content: readonly Json[]) => ({ model: OPUS, content })
const CODE = words('in 100 out 40 code 1')
const REFUSED = { content: [], stopReason: 'refusal' }
const FREE = { freeRefusal: true }

const examples: readonly Example[] = [
  ['input and output', {}, [OWN]],
  ['thinking, which output includes', { output_tokens_details: { thinking_tokens: 30 } }, [OWN]],
  [
    'cache reads and writes of both lifetimes, none of them in the input',
    {
      cache_read_input_tokens: 1000,
      cache_creation_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
    },
    [words('in 100 read 1000 w5m 100 w1h 200 out 40')],
  ],
  [
    'writes without a split, which live five minutes',
    { cache_creation_input_tokens: 300, cache_creation: null },
    [words('in 100 w5m 300 out 40')],
  ],
  [
    'nulls where there is nothing',
    { cache_creation_input_tokens: null, cache_read_input_tokens: null, cache_creation: null },
    [OWN],
  ],
  [
    'a cache that is only warmed: no output',
    { cache_creation_input_tokens: 50, cache_creation: null, output_tokens: 0 },
    [words('in 100 w5m 50')],
    { content: [] },
  ],
  [
    'web searches, and fetches, which are free',
    { server_tool_use: { web_search_requests: 3, web_fetch_requests: 5 } },
    [words('in 100 out 40 webSearches 3')],
  ],
  [
    'tier, speed and place',
    { service_tier: 'batch', speed: 'fast', inference_geo: 'us' },
    [OWN],
    {},
    { serviceTier: 'batch', speed: 'fast', geography: 'us' },
  ],
  ['explicit zeros', { input_tokens: 0, output_tokens: 0 }, [words('')]],
  [
    'a tool loop, whose entries are what the totals are made of',
    { iterations: [entry('message', null, 40, 10), entry('message', null, 60, 30)] },
    [OWN],
  ],
  [
    'a compaction, which comes on top',
    { iterations: [entry('compaction', null, 5000, 200), entry('message', null, 100, 40)] },
    [words('in 5000 out 200'), OWN],
  ],
  [
    'a compaction that is all there is',
    { iterations: [entry('compaction', null, 5000, 200)] },
    [OWN, words('in 5000 out 200')],
  ],
  [
    'an advisor at its own model, with its own cache',
    {
      server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
      iterations: [
        entry('message', null, 60, 10),
        entry('advisor_message', OPUS, 900, 80, {
          cache_creation_input_tokens: 50,
          cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 50 },
        }),
        entry('message', null, 40, 30),
      ],
    },
    [words('in 100 out 40 webSearches 1'), words('in 900 w1h 50 out 80', OPUS)],
  ],
  [
    'a fallback after a decline before any output, which is free',
    { iterations: [entry('message', FABLE, 90, 0), entry('fallback_message', OPUS, 100, 40)] },
    [OWN],
    fellBack(fallback(FABLE, OPUS), text),
  ],
  [
    'a fallback that was declined in its turn, which is free as well',
    {
      iterations: [
        entry('message', FABLE, 90, 0),
        entry('fallback_message', 'claude-mythos-5', 95, 0),
        entry('compaction', null, 500, 0),
        entry('fallback_message', OPUS, 100, 40),
      ],
    },
    [words('in 500', FABLE), OWN],
    fellBack(fallback(FABLE, 'claude-mythos-5'), fallback('claude-mythos-5', OPUS), text),
  ],
  [
    'a last fallback that wrote nothing because there was nothing to write, which is paid',
    {
      output_tokens: 0,
      iterations: [entry('message', FABLE, 90, 7), entry('fallback_message', OPUS, 100, 0)],
    },
    [words('in 90 out 7', FABLE), words('in 100')],
    fellBack(text, fallback(FABLE, OPUS)),
  ],
  [
    'a fallback in the middle of the output, where each attempt pays at its own model',
    {
      iterations: [
        entry('message', FABLE, 90, 7),
        entry('message', OPUS, 95, 5),
        entry('fallback_message', OPUS, 100, 40),
      ],
    },
    [words('in 90 out 7', FABLE), words('in 195 out 45')],
    fellBack(text, fallback(FABLE, OPUS), text),
  ],
  [
    'a compaction before a fallback, at the model that was asked for',
    {
      iterations: [
        entry('compaction', null, 5000, 200),
        entry('message', FABLE, 90, 0),
        entry('fallback_message', OPUS, 100, 40),
      ],
    },
    [words('in 5000 out 200', FABLE), OWN],
    fellBack(fallback(FABLE, OPUS), text),
  ],
  ...['code_execution', 'bash_code_execution', 'text_editor_code_execution'].flatMap((name): Example[] => [
    [
      `a call of ${name}, whose time is not stated`,
      {},
      [CODE],
      { content: [{ type: 'server_tool_use', id: 's', name }, text] },
    ],
    [
      `what came of ${name}`,
      {},
      [CODE],
      { content: [{ type: `${name}_tool_result`, tool_use_id: 's', content: {} }, text] },
    ],
  ]),
  ['an unused container', {}, [CODE], { container: { id: 'container_1', expires_at: 'soon' } }],
  [
    'tools that run no code, of upstream and of the client',
    {},
    [OWN],
    {
      content: [
        { type: 'server_tool_use', id: 's', name: 'web_fetch' },
        { type: 'tool_use', id: 't', name: 'code_execution' },
        text,
      ],
    },
  ],
  [
    'searches before a refusal, which the reply counts though it has no content',
    { output_tokens: 0, server_tool_use: { web_search_requests: 2 } },
    [words('in 100 webSearches 2')],
    REFUSED,
    FREE,
  ],
  [
    'a refusal before any output, which is free though it reports tokens',
    { output_tokens: 0 },
    [words('in 100')],
    REFUSED,
    FREE,
  ],
  [
    'a refusal of every model in turn, which is free as well',
    { output_tokens: 0, iterations: [entry('message', FABLE, 90, 0), entry('message', OPUS, 100, 0)] },
    [],
    { ...fellBack(fallback(FABLE, OPUS)), stopReason: 'refusal' },
    FREE,
  ],
  ['a refusal mid-output, which is billed', {}, [OWN], { stopReason: 'refusal' }],
]

const usual: Usage = {
  parts: [],
  modelServed: 'claude-sonnet-5',
  serviceTier: 'standard',
  speed: null,
  geography: 'global',
  stopReason: 'end_turn',
  freeRefusal: false,
  suspect: false,
}

for (const [sentence, usage, parts, more = {}, figures = {}] of examples) {
  test(`a message and its stream give the same result for ${sentence}`, () => {
    const reply = { usage: { ...plain, ...usage }, ...more }
    const { model: modelServed = usual.modelServed, stopReason = usual.stopReason } = more
    const expected = { ...usual, parts, modelServed, stopReason, ...figures }
    const fromBody = meterBody('messages', messageBody(reply))
    const fromStream = meterStream('messages', messageStream(reply))
    assert.deepEqual(fromBody.usage, expected)
    assert.deepEqual(fromStream.usage, expected)
    for (const metered of [fromBody, fromStream]) {
      assert.equal(metered.inputKnown, true)
      assert.equal(metered.outputKnown, true)
      assert.equal(metered.stage, 'over')
      assert.equal(metered.objectId, 'msg_01')
      assert.equal(metered.fault, null)
      assert.equal(metered.error, null)
    }
    assert.deepEqual(fromStream.output, fromBody.output)
  })
}

test('a block whose type or name is not a string is ignored, and the usage beside it is read', () => {
  const odd = { toString: 1, valueOf: 1 }
  const content = [{ type: odd }, { type: 'server_tool_use', name: odd }, text]
  for (const metered of [
    meterBody('messages', messageBody({ usage: plain, content })),
    meterStream('messages', messageStream({ usage: plain, content })),
  ]) {
    assert.deepEqual(metered.usage.parts, [OWN])
    assert.equal(metered.fault, null)
  }
})
