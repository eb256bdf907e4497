import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { UsageReader } from '../../../src/providers/endpoint.ts'
import { runs } from '../../support/scale.ts'
import { test } from '../../support/suite.ts'
import { messageBody, plain } from './message-replies.ts'
import { type Json, meterBody, meterStream, type Outcome, part, streamOf, words } from './replies.ts'

/** Values that cannot be a count. */
const impossible: readonly unknown[] = [
  -1,
  -1e9,
  0.5,
  1.0000001,
  2 ** 63,
  2 ** 53,
  1e12 + 1,
  1e300,
  '5',
  '',
  true,
  {},
  [7],
]

function assertSane({ usage, outputTokensSeen, fault }: Outcome): void {
  for (const { quantities, promptTokens } of usage.parts) {
    assert.ok(Number.isSafeInteger(promptTokens) && promptTokens >= 0, `prompt of ${promptTokens}`)
    for (const [unit, count] of Object.entries(quantities)) {
      assert.ok(Number.isSafeInteger(count) && count > 0, `${unit} of ${count}`)
    }
  }
  assert.ok(Number.isSafeInteger(outputTokensSeen) && outputTokensSeen >= 0)
  assert.equal(fault, null)
}

interface Side {
  readonly reader: UsageReader
  readonly usage: Json
  readonly input: string
  readonly output: string
  readonly body: (usage: Json) => Json
  readonly stream: (usage: Json) => string
}

const chatBody = (usage: Json): Json => ({ id: 'c', model: 'm', choices: [], usage })
const responseBody = (usage: Json): Json => ({ id: 'r', model: 'm', status: 'completed', output: [], usage })

const sides: readonly Side[] = [
  {
    reader: 'messages',
    usage: plain,
    input: 'input_tokens',
    output: 'output_tokens',
    body: (usage) => messageBody({ usage }),
    stream: (usage) =>
      streamOf([
        { type: 'message_start', message: { ...messageBody({ usage }), stop_reason: null } },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
      ]),
  },
  {
    reader: 'chat',
    usage: { prompt_tokens: 100, completion_tokens: 40 },
    input: 'prompt_tokens',
    output: 'completion_tokens',
    body: chatBody,
    stream: (usage) => streamOf([chatBody(usage), '[DONE]']),
  },
  {
    reader: 'responses',
    usage: { input_tokens: 100, output_tokens: 40 },
    input: 'input_tokens',
    output: 'output_tokens',
    body: responseBody,
    stream: (usage) => streamOf([{ type: 'response.completed', response: responseBody(usage) }]),
  },
]

for (const { reader, usage, input, output, body, stream } of sides) {
  test(`an impossible total of ${reader} is dropped, and only its side is estimated`, () => {
    for (const wrong of impossible) {
      const spoiltInput = { ...usage, [input]: wrong }
      for (const metered of [
        meterBody(reader, body(spoiltInput)),
        meterStream(reader, stream(spoiltInput)),
      ]) {
        assertSane(metered)
        assert.equal(metered.inputKnown, false, String(wrong))
        assert.equal(metered.outputKnown, true)
        assert.deepEqual(metered.usage.parts, [words('out 40')])
        assert.equal(metered.usage.suspect, true)
      }
      const spoiltOutput = { ...usage, [output]: wrong }
      for (const metered of [
        meterBody(reader, body(spoiltOutput)),
        meterStream(reader, stream(spoiltOutput)),
      ]) {
        assertSane(metered)
        assert.equal(metered.inputKnown, true)
        assert.equal(metered.outputKnown, false, String(wrong))
        assert.deepEqual(metered.usage.parts, [words('in 100')])
        assert.equal(metered.usage.suspect, true)
      }
    }
  })

  test(`usage of ${reader} that is not an object is ignored, and suspect`, () => {
    for (const wrong of [7, '7', true, [usage]]) {
      for (const metered of [
        meterBody(reader, body(wrong as unknown as Json)),
        meterStream(reader, stream(wrong as unknown as Json)),
      ]) {
        assertSane(metered)
        assert.equal(metered.usage.suspect, true)
        assert.equal(metered.inputKnown || metered.outputKnown, false)
      }
    }
  })

  test(`duplicate members of ${reader} are suspect`, () => {
    const twice = (text: string): string => text.replace(`"${output}":40`, `"${output}":1,"${output}":40`)
    for (const metered of [
      meterBody(reader, twice(JSON.stringify(body(usage)))),
      meterStream(reader, twice(stream(usage))),
    ]) {
      assert.deepEqual(metered.usage.parts, [words('in 100 out 40')])
      assert.equal(metered.usage.suspect, true)
    }
  })

  test(`the maximum count of ${reader} is a trillion, and -0 is 0`, () => {
    const most = meterBody(reader, body({ ...usage, [input]: 1e12, [output]: 0 }))
    assert.deepEqual(most.usage.parts, [part({ input_tokens: 1e12 }, 1e12)])
    assert.equal(most.usage.suspect, false)
    const minus = meterBody(reader, JSON.stringify(body(usage)).replace(`"${input}":100`, `"${input}":-0`))
    assert.deepEqual(minus.usage.parts, [words('out 40')])
    assert.equal(minus.usage.suspect, false)
  })
}

test('an impossible part of a total is ignored, and the total is charged without it', () => {
  for (const wrong of impossible) {
    const chat = meterBody(
      'chat',
      chatBody({
        prompt_tokens: 100,
        completion_tokens: 40,
        prompt_tokens_details: { cached_tokens: wrong, audio_tokens: 10 },
      }),
    )
    assert.deepEqual(chat.usage.parts, [
      part({ input_tokens: 90, audio_input_tokens: 10, output_tokens: 40 }, 100),
    ])
    assert.equal(chat.usage.suspect, true)
    const message = meterBody(
      'messages',
      messageBody({ usage: { ...plain, cache_read_input_tokens: wrong } }),
    )
    assert.deepEqual(message.usage.parts, [words('in 100 out 40')])
    assert.equal(message.usage.suspect, true)
  }
})

test('a part that exceeds its total is capped at it, and suspect', () => {
  const details = {
    prompt_tokens_details: { cached_tokens: 500 },
    completion_tokens_details: { audio_tokens: 90 },
  }
  const { usage } = meterBody('chat', chatBody({ prompt_tokens: 100, completion_tokens: 40, ...details }))
  assert.deepEqual(usage.parts, [part({ cache_read_tokens: 100, audio_output_tokens: 40 }, 100)])
  assert.equal(usage.suspect, true)
})

test('decreasing totals keep their largest value, and are suspect', () => {
  const delta = (usage: Json): Json => ({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })
  const messages = meterStream(
    'messages',
    streamOf([
      { type: 'message_start', message: messageBody({ usage: plain }) },
      delta({ output_tokens: 50 }),
      delta({ input_tokens: 30, output_tokens: 20 }),
    ]),
  )
  assert.deepEqual(messages.usage.parts, [words('in 100 out 50')])
  assert.equal(messages.usage.suspect, true)
  const chunk = (prompt: number, completion: number): Json =>
    chatBody({ prompt_tokens: prompt, completion_tokens: completion })
  const chat = meterStream('chat', streamOf([chunk(9, 50), chunk(8, 60), '[DONE]']))
  assert.deepEqual(chat.usage.parts, [words('in 9 out 60')])
  assert.equal(chat.usage.suspect, true)
})

/** Values of any kind, for usage with valid names. */
const anything = fc.oneof(fc.constantFrom(...impossible, null, 0, 1, 7, 1e12), fc.nat(1000))
const names = [
  ...['input_tokens', 'output_tokens', 'prompt_tokens', 'completion_tokens', 'cached_tokens', 'seconds'],
  ...['cache_creation_input_tokens', 'cache_read_input_tokens'],
]
const detailNames = [
  ...['cached_tokens', 'cache_write_tokens', 'audio_tokens', 'image_tokens', 'text_tokens', 'ttl_12h_tokens'],
  ...['ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens', 'web_search_requests', 'cached_image_tokens'],
]
const details = fc.oneof(fc.dictionary(fc.constantFrom(...detailNames), anything), anything)
const flat = fc.dictionary(fc.constantFrom(...names), anything)
const nested = fc.record(
  {
    input_tokens_details: details,
    prompt_tokens_details: details,
    completion_tokens_details: details,
    output_tokens_details: details,
    cache_creation: details,
    cached_tokens_details: details,
    server_tool_use: details,
    iterations: fc.oneof(anything, fc.array(flat.map((entry) => ({ ...entry, type: 'message' })))),
    type: fc.constantFrom('duration', 'tokens', 7),
  },
  { requiredKeys: [] },
)
const anyUsage = fc.tuple(flat, nested).map(([some, more]): Json => ({ ...some, ...more }))

test('no usage object gives a negative, fractional or inexact count', () => {
  const readers: readonly UsageReader[] = [
    'messages',
    'chat',
    'responses',
    'embeddings',
    'images',
    'transcription',
  ]
  fc.assert(
    fc.property(anyUsage, fc.constantFrom(...readers), (usage, reader) => {
      const body = {
        type: 'message',
        model: 'm',
        status: 'completed',
        usage,
        svg_usage: usage,
        tool_usage: { image_gen: usage },
      }
      assertSane(meterBody(reader, body))
      const start = { type: 'message_start', message: body }
      const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }
      assertSane(
        meterStream(
          reader,
          streamOf([start, end, { ...body, type: undefined }, { type: 'response.failed', response: body }]),
        ),
      )
    }),
    { numRuns: runs(1000) },
  )
})
