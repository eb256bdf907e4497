import assert from 'node:assert/strict'
import type { Usage } from '../../../src/kernel/usage.ts'
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
import { meterBody, meterStream, part } from './replies.ts'

const examples: readonly (readonly [sentence: string, reply: MessageReply, expected: Partial<Usage>])[] = [
  ['input and output', { usage: plain }, { parts: [part({ input_tokens: 100, output_tokens: 40 }, 100)] }],
  [
    'thinking, which is output already counted',
    { usage: { ...plain, output_tokens_details: { thinking_tokens: 30 } } },
    { parts: [part({ input_tokens: 100, output_tokens: 40 }, 100)] },
  ],
  [
    'cache reads and writes of both lifetimes, none of them in the input',
    {
      usage: {
        ...plain,
        cache_read_input_tokens: 1000,
        cache_creation_input_tokens: 300,
        cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
      },
    },
    {
      parts: [
        part(
          {
            input_tokens: 100,
            cache_read_tokens: 1000,
            cache_write_5m_tokens: 100,
            cache_write_1h_tokens: 200,
            output_tokens: 40,
          },
          1400,
        ),
      ],
    },
  ],
  [
    'writes without a split, which live five minutes',
    { usage: { ...plain, cache_creation_input_tokens: 300, cache_creation: null } },
    { parts: [part({ input_tokens: 100, cache_write_5m_tokens: 300, output_tokens: 40 }, 400)] },
  ],
  [
    'nulls where there is nothing',
    {
      usage: {
        ...plain,
        cache_creation_input_tokens: null,
        cache_read_input_tokens: null,
        cache_creation: null,
      },
    },
    { parts: [part({ input_tokens: 100, output_tokens: 40 }, 100)] },
  ],
  [
    'a cache that is only warmed: no output',
    {
      usage: { ...plain, cache_creation_input_tokens: 50, cache_creation: null, output_tokens: 0 },
      content: [],
    },
    { parts: [part({ input_tokens: 100, cache_write_5m_tokens: 50 }, 150)] },
  ],
  [
    'web searches, and fetches, which are free',
    { usage: { ...plain, server_tool_use: { web_search_requests: 3, web_fetch_requests: 5 } } },
    { parts: [part({ input_tokens: 100, output_tokens: 40, web_searches: 3 }, 100)] },
  ],
  [
    'tier, speed and place',
    { usage: { ...plain, service_tier: 'batch', speed: 'fast', inference_geo: 'us' } },
    {
      parts: [part({ input_tokens: 100, output_tokens: 40 }, 100)],
      serviceTier: 'batch',
      speed: 'fast',
      geography: 'us',
    },
  ],
  ['explicit zeros', { usage: { ...plain, input_tokens: 0, output_tokens: 0 } }, { parts: [part({}, 0)] }],
  [
    'a tool loop, whose entries are what the totals are made of',
    { usage: { ...plain, iterations: [entry('message', null, 40, 10), entry('message', null, 60, 30)] } },
    { parts: [part({ input_tokens: 100, output_tokens: 40 }, 100)] },
  ],
  [
    'a compaction, which comes on top',
    {
      usage: {
        ...plain,
        iterations: [entry('compaction', null, 5000, 200), entry('message', null, 100, 40)],
      },
    },
    {
      parts: [
        part({ input_tokens: 5000, output_tokens: 200 }, 5000),
        part({ input_tokens: 100, output_tokens: 40 }, 100),
      ],
    },
  ],
  [
    'a compaction that is all there is',
    { usage: { ...plain, iterations: [entry('compaction', null, 5000, 200)] } },
    {
      parts: [
        part({ input_tokens: 100, output_tokens: 40 }, 100),
        part({ input_tokens: 5000, output_tokens: 200 }, 5000),
      ],
    },
  ],
  [
    'an advisor at its own model, with its own cache',
    {
      usage: {
        ...plain,
        server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
        iterations: [
          entry('message', null, 60, 10),
          entry('advisor_message', 'claude-opus-5', 900, 80, {
            cache_creation_input_tokens: 50,
            cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 50 },
          }),
          entry('message', null, 40, 30),
        ],
      },
    },
    {
      parts: [
        part({ input_tokens: 100, output_tokens: 40, web_searches: 1 }, 100),
        part({ input_tokens: 900, cache_write_1h_tokens: 50, output_tokens: 80 }, 950, 'claude-opus-5'),
      ],
    },
  ],
  [
    'a fallback after a decline before any output, which is free',
    {
      model: 'claude-opus-5',
      usage: {
        ...plain,
        iterations: [
          entry('message', 'claude-fable-5', 90, 0),
          entry('fallback_message', 'claude-opus-5', 100, 40),
        ],
      },
      content: [fallback('claude-fable-5', 'claude-opus-5'), text],
    },
    { parts: [part({ input_tokens: 100, output_tokens: 40 }, 100)], modelServed: 'claude-opus-5' },
  ],
  [
    'a fallback that was declined in its turn, which is free as well',
    {
      model: 'claude-opus-5',
      usage: {
        ...plain,
        iterations: [
          entry('message', 'claude-fable-5', 90, 0),
          entry('fallback_message', 'claude-mythos-5', 95, 0),
          entry('compaction', null, 500, 0),
          entry('fallback_message', 'claude-opus-5', 100, 40),
        ],
      },
      content: [
        fallback('claude-fable-5', 'claude-mythos-5'),
        fallback('claude-mythos-5', 'claude-opus-5'),
        text,
      ],
    },
    {
      parts: [
        part({ input_tokens: 500 }, 500, 'claude-fable-5'),
        part({ input_tokens: 100, output_tokens: 40 }, 100),
      ],
      modelServed: 'claude-opus-5',
    },
  ],
  [
    'a last fallback that wrote nothing because there was nothing to write, which is paid',
    {
      model: 'claude-opus-5',
      usage: {
        ...plain,
        output_tokens: 0,
        iterations: [
          entry('message', 'claude-fable-5', 90, 7),
          entry('fallback_message', 'claude-opus-5', 100, 0),
        ],
      },
      content: [text, fallback('claude-fable-5', 'claude-opus-5')],
    },
    {
      parts: [
        part({ input_tokens: 90, output_tokens: 7 }, 90, 'claude-fable-5'),
        part({ input_tokens: 100 }, 100),
      ],
      modelServed: 'claude-opus-5',
    },
  ],
  ...['code_execution', 'bash_code_execution', 'text_editor_code_execution'].flatMap(
    (name): (typeof examples)[number][] => [
      [
        `a call of ${name}, whose time is not stated`,
        { usage: plain, content: [{ type: 'server_tool_use', id: 's', name }, text] },
        { parts: [part({ input_tokens: 100, output_tokens: 40, code_executions: 1 }, 100)] },
      ],
      [
        `what came of ${name}`,
        { usage: plain, content: [{ type: `${name}_tool_result`, tool_use_id: 's', content: {} }, text] },
        { parts: [part({ input_tokens: 100, output_tokens: 40, code_executions: 1 }, 100)] },
      ],
    ],
  ),
  [
    'a machine that code could run in',
    { usage: plain, container: { id: 'container_1', expires_at: '2026-11-15T00:00:00Z' } },
    { parts: [part({ input_tokens: 100, output_tokens: 40, code_executions: 1 }, 100)] },
  ],
  [
    'tools that run no code, of upstream and of the client',
    {
      usage: plain,
      content: [
        { type: 'server_tool_use', id: 's', name: 'web_fetch' },
        { type: 'tool_use', id: 't', name: 'code_execution' },
        text,
      ],
    },
    { parts: [part({ input_tokens: 100, output_tokens: 40 }, 100)] },
  ],
  [
    'searches before a refusal, which the reply counts though it has no content',
    {
      usage: { ...plain, output_tokens: 0, server_tool_use: { web_search_requests: 2 } },
      content: [],
      stopReason: 'refusal',
    },
    { parts: [part({ input_tokens: 100, web_searches: 2 }, 100)], freeRefusal: true, stopReason: 'refusal' },
  ],
  [
    'a fallback in the middle of the output, where each attempt pays at its own model',
    {
      model: 'claude-opus-5',
      usage: {
        ...plain,
        iterations: [
          entry('message', 'claude-fable-5', 90, 7),
          entry('message', 'claude-opus-5', 95, 5),
          entry('fallback_message', 'claude-opus-5', 100, 40),
        ],
      },
      content: [text, fallback('claude-fable-5', 'claude-opus-5'), text],
    },
    {
      parts: [
        part({ input_tokens: 90, output_tokens: 7 }, 90, 'claude-fable-5'),
        part({ input_tokens: 195, output_tokens: 45 }, 195),
      ],
      modelServed: 'claude-opus-5',
    },
  ],
  [
    'a compaction before a fallback, at the model that was asked for',
    {
      model: 'claude-opus-5',
      usage: {
        ...plain,
        iterations: [
          entry('compaction', null, 5000, 200),
          entry('message', 'claude-fable-5', 90, 0),
          entry('fallback_message', 'claude-opus-5', 100, 40),
        ],
      },
      content: [fallback('claude-fable-5', 'claude-opus-5'), text],
    },
    {
      parts: [
        part({ input_tokens: 5000, output_tokens: 200 }, 5000, 'claude-fable-5'),
        part({ input_tokens: 100, output_tokens: 40 }, 100),
      ],
      modelServed: 'claude-opus-5',
    },
  ],
  [
    'a refusal before any output, which is free though it reports tokens',
    { usage: { ...plain, output_tokens: 0 }, content: [], stopReason: 'refusal' },
    { parts: [part({ input_tokens: 100 }, 100)], freeRefusal: true, stopReason: 'refusal' },
  ],
  [
    'a refusal of every model in turn, which is free as well',
    {
      usage: {
        ...plain,
        output_tokens: 0,
        iterations: [entry('message', 'claude-fable-5', 90, 0), entry('message', 'claude-opus-5', 100, 0)],
      },
      content: [fallback('claude-fable-5', 'claude-opus-5')],
      model: 'claude-opus-5',
      stopReason: 'refusal',
    },
    { parts: [], freeRefusal: true, stopReason: 'refusal', modelServed: 'claude-opus-5' },
  ],
  [
    'a refusal in the middle of the output, which is not',
    { usage: plain, stopReason: 'refusal' },
    { parts: [part({ input_tokens: 100, output_tokens: 40 }, 100)], stopReason: 'refusal' },
  ],
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

for (const [sentence, reply, expected] of examples) {
  test(`a message and its stream say the same of ${sentence}`, () => {
    const fromBody = meterBody('messages', messageBody(reply))
    const fromStream = meterStream('messages', messageStream(reply))
    assert.deepEqual(fromBody.usage, { ...usual, ...expected })
    assert.deepEqual(fromStream.usage, { ...usual, ...expected })
    for (const metered of [fromBody, fromStream]) {
      assert.equal(metered.inputKnown, true)
      assert.equal(metered.outputKnown, true)
      assert.equal(metered.stage, 'over')
      assert.equal(metered.objectId, 'msg_01')
      assert.deepEqual(metered.faults, [])
      assert.equal(metered.error, null)
    }
    assert.deepEqual(fromStream.output, fromBody.output)
  })
}

test('a block whose type or name is no word says nothing, and the usage beside it is read', () => {
  const odd = { toString: 1, valueOf: 1 }
  const content = [{ type: odd }, { type: 'server_tool_use', name: odd }, text]
  for (const metered of [
    meterBody('messages', messageBody({ usage: plain, content })),
    meterStream('messages', messageStream({ usage: plain, content })),
  ]) {
    assert.deepEqual(metered.usage.parts, [part({ input_tokens: 100, output_tokens: 40 }, 100)])
    assert.deepEqual(metered.faults, [])
  }
})
