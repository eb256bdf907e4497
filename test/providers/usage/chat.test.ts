import assert from 'node:assert/strict'
import type { Quantities } from '../../../src/kernel/usage.ts'
import { test } from '../../support/suite.ts'
import { type Json, meterBody, meterStream, part, streamOf } from './replies.ts'

const head = { id: 'chatcmpl-1', created: 1, model: 'gpt-6-2026-01-01', service_tier: 'default' }

const chunk = (choices: readonly Json[], more: Json = {}): Json => ({
  ...head,
  object: 'chat.completion.chunk',
  choices,
  usage: null,
  ...more,
})
const choice = (delta: Json, finish: string | null = null, index = 0): Json => ({
  index,
  delta,
  logprobs: null,
  finish_reason: finish,
})

const completion = (usage: unknown): Json => ({
  ...head,
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hello, world', refusal: null },
      finish_reason: 'stop',
    },
  ],
  usage,
})

const completionStream = (usage: unknown): string =>
  streamOf([
    chunk([choice({ role: 'assistant', content: '', refusal: null })]),
    ...['Hello', ', ', 'world'].map((content) => chunk([choice({ content })])),
    chunk([choice({}, 'stop')]),
    chunk([], { usage }),
    '[DONE]',
  ])

const examples: readonly (readonly [sentence: string, usage: Json, expected: Quantities, prompt: number])[] =
  [
    [
      'input and output',
      { prompt_tokens: 9, completion_tokens: 12, total_tokens: 21 },
      { input_tokens: 9, output_tokens: 12 },
      9,
    ],
    ['explicit zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, {}, 0],
    [
      'cached tokens, which are in the prompt',
      { prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 64 } },
      { input_tokens: 36, cache_read_tokens: 64, output_tokens: 5 },
      100,
    ],
    [
      'tokens written to the cache, which are in the prompt too',
      {
        prompt_tokens: 100,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 70 },
      },
      { input_tokens: 10, cache_read_tokens: 20, cache_write_30m_tokens: 70, output_tokens: 5 },
      100,
    ],
    [
      'tokens both read and written, which count once',
      {
        prompt_tokens: 100,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 70 },
      },
      { cache_read_tokens: 30, cache_write_30m_tokens: 70, output_tokens: 5 },
      100,
    ],
    [
      'audio and images in the prompt, audio in the answer',
      {
        prompt_tokens: 100,
        completion_tokens: 50,
        prompt_tokens_details: { cached_tokens: 10, audio_tokens: 30, image_tokens: 40, text_tokens: 30 },
        completion_tokens_details: { audio_tokens: 35, text_tokens: 15 },
      },
      {
        input_tokens: 20,
        cache_read_tokens: 10,
        audio_input_tokens: 30,
        image_input_tokens: 40,
        audio_output_tokens: 35,
        output_tokens: 15,
      },
      100,
    ],
    [
      'cached audio, which upstream counts as cached and as audio',
      {
        prompt_tokens: 100,
        completion_tokens: 0,
        prompt_tokens_details: { cached_tokens: 60, audio_tokens: 80 },
      },
      { cache_read_tokens: 60, audio_input_tokens: 40 },
      100,
    ],
    [
      'reasoning and predictions, which are output already counted',
      {
        prompt_tokens: 9,
        completion_tokens: 500,
        completion_tokens_details: {
          reasoning_tokens: 300,
          accepted_prediction_tokens: 50,
          rejected_prediction_tokens: 60,
          audio_tokens: 0,
        },
      },
      { input_tokens: 9, output_tokens: 500 },
      9,
    ],
  ]

for (const [sentence, usage, quantities, prompt] of examples) {
  test(`a completion and its chunks give the same result for ${sentence}`, () => {
    for (const metered of [
      meterBody('chat', completion(usage)),
      meterStream('chat', completionStream(usage)),
      meterBody('completions', completion(usage)),
      meterStream('completions', completionStream(usage)),
    ]) {
      assert.deepEqual(metered.usage, {
        parts: [part(quantities, prompt)],
        modelServed: 'gpt-6-2026-01-01',
        serviceTier: 'default',
        speed: null,
        geography: null,
        stopReason: 'stop',
        freeRefusal: false,
        suspect: false,
      })
      assert.equal(metered.inputKnown && metered.outputKnown, true)
      assert.equal(metered.stage, 'over')
      assert.equal(metered.objectId, 'chatcmpl-1')
      assert.equal(metered.fault, null)
      assert.equal(metered.output.text, 12)
    }
  })
}

const usage = { prompt_tokens: 9, completion_tokens: 12, total_tokens: 21 }

test('a stream without a usage chunk leaves both sides to be estimated', () => {
  const metered = meterStream('chat', completionStream(null))
  assert.deepEqual(metered.usage.parts, [part({}, 0)])
  assert.equal(metered.inputKnown || metered.outputKnown, false)
  assert.equal(metered.stage, 'over')
  assert.equal(metered.usage.modelServed, 'gpt-6-2026-01-01')
  assert.equal(metered.output.text, 12)
})

test('running totals are final only after every choice has finished', () => {
  const running = (completion: number): Json => ({
    usage: { prompt_tokens: 9, completion_tokens: completion },
  })
  const events = [
    chunk([choice({ content: 'a' })], running(1)),
    chunk([choice({ content: 'b' })], running(2)),
    chunk([choice({}, 'stop')], running(3)),
  ]
  const cut = meterStream('chat', streamOf(events.slice(0, 2)), false)
  assert.deepEqual(cut.usage.parts, [part({ input_tokens: 9, output_tokens: 2 }, 9)])
  assert.equal(cut.outputKnown, false)
  assert.equal(cut.outputTokensSeen, 2)
  const whole = meterStream('chat', streamOf(events))
  assert.deepEqual(whole.usage.parts, [part({ input_tokens: 9, output_tokens: 3 }, 9)])
  assert.equal(whole.outputKnown, true)
  assert.equal(whole.usage.suspect, false)
})

test('parallel choices are distinguished, and the last to finish ends the content', () => {
  const events = [
    chunk([choice({ role: 'assistant', content: '' }, null, 0)]),
    chunk([choice({ role: 'assistant', content: '' }, null, 1)]),
    chunk([choice({ content: 'left ' }, null, 0)]),
    chunk([choice({ content: 'right ' }, null, 1)]),
    chunk([choice({ content: 'left' }, null, 0)]),
    chunk([choice({ content: 'right' }, null, 1)]),
    chunk([choice({}, 'length', 1)]),
    chunk([choice({ content: '!' }, null, 0)]),
    chunk([choice({}, 'stop', 0)]),
  ]
  const stages = events.map((_, i) => meterStream('chat', streamOf(events.slice(0, i + 1)), false).stage)
  assert.deepEqual(stages, [...Array(8).fill('content'), 'closing'])
  const metered = meterStream('chat', streamOf([...events, chunk([], { usage })]))
  assert.equal(metered.output.text, 21)
  assert.equal(metered.usage.stopReason, 'stop')
  assert.equal(metered.stage, 'closing')
})

test('tool arguments, refusals, transcripts and legacy completions count as text', () => {
  const call = (args: string): Json => ({ tool_calls: [{ index: 0, function: { arguments: args } }] })
  const metered = meterStream(
    'chat',
    streamOf([
      chunk([
        choice({
          tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }],
        }),
      ]),
      ...['{"a"', ':1}'].map((args) => chunk([choice(call(args))])),
      chunk([choice({ refusal: 'No.' })]),
      chunk([choice({ audio: { transcript: 'Yes.', data: 'UklGRg==' } })]),
      chunk([choice({ reasoning_content: 'Hm.' })]),
      chunk([{ index: 0, text: 'Once', finish_reason: null }]),
    ]),
    false,
  )
  assert.deepEqual(metered.output, { text: 11, thinking: 3, tool: 7 })
})

test('the service tier is that of the last chunk', () => {
  const metered = meterStream(
    'chat',
    streamOf([
      chunk([choice({ content: 'a' })], { service_tier: null }),
      chunk([], { usage, service_tier: 'priority' }),
    ]),
  )
  assert.equal(metered.usage.serviceTier, 'priority')
})

test('an error within a stream or a document with status 200 is reported', () => {
  const error = { error: { message: 'x', type: 'server_error', code: 'server_is_overloaded' } }
  assert.equal(meterStream('chat', streamOf([error])).error, 'server_is_overloaded')
  assert.equal(
    meterBody('chat', { error: { message: 'x', type: 'server_error', code: null } }).error,
    'server_error',
  )
})
