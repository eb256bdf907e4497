import assert from 'node:assert/strict'
import type { UsagePart } from '../../../src/kernel/usage.ts'
import { IMAGE_TOOL } from '../../../src/kernel/usage.ts'
import { test } from '../../support/suite.ts'
import { type Json, meterBody, meterStream, part, streamOf, words } from './replies.ts'

const message: Json = {
  id: 'msg_1',
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [
    { type: 'output_text', text: 'Hello, world', annotations: [{ type: 'url_citation' }], logprobs: [] },
  ],
}

const usage: Json = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 30 },
  total_tokens: 140,
}

const response = (more: Json = {}): Json => ({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'gpt-6-2026-01-01',
  service_tier: 'flex',
  instructions: 'Say "usage":{"input_tokens":1}',
  tools: [],
  output: [message],
  usage,
  ...more,
})

function responseStream(final: Json): string {
  const items = Array.isArray(final['output']) ? (final['output'] as Json[]) : []
  const open = { ...final, status: 'in_progress', output: [], usage: null, tool_usage: undefined }
  const deltas = ['Hello', ', ', 'world'].map((delta, i) => ({
    type: 'response.output_text.delta',
    sequence_number: 4 + i,
    item_id: 'msg_1',
    output_index: 0,
    content_index: 0,
    delta,
    logprobs: [],
    obfuscation: 'x'.repeat(i),
  }))
  return streamOf([
    { type: 'response.created', sequence_number: 0, response: open },
    { type: 'response.in_progress', sequence_number: 1, response: open },
    ...items.flatMap((item, output_index) => [
      { type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress' } },
      ...(item === message ? deltas : []),
      { type: 'response.output_item.done', output_index, item },
    ]),
    { type: `response.${String(final['status'])}`, sequence_number: 9, response: final },
  ])
}

const search = (id: string, type = 'search'): Json => ({
  id,
  type: 'web_search_call',
  status: 'completed',
  action: { type, query: 'x' },
})
const shell = (id: string, environment: Json | null): Json => ({
  type: 'shell_call',
  id,
  environment,
  status: 'completed',
})
const fileSearch = (id: string): Json => ({
  id,
  type: 'file_search_call',
  status: 'completed',
  queries: ['x'],
  results: [],
})
const image = (id: string, more: Json = {}): Json => ({
  id,
  type: 'image_generation_call',
  status: 'completed',
  result: 'iVBORw0KGgo'.repeat(1000),
  ...more,
})
const imageTokens: Json = {
  input_tokens: 50,
  input_tokens_details: { text_tokens: 20, image_tokens: 30 },
  output_tokens: 400,
  total_tokens: 450,
}
const svg: Json = {
  model: 'gpt-6-svg',
  input_tokens: 7,
  output_tokens: 8,
  reasoning_tokens: 3,
  total_tokens: 15,
}

const own = words('in 100 out 40')

const examples: readonly (readonly [sentence: string, final: Json, parts: readonly UsagePart[]])[] = [
  ['input and output that includes reasoning', response(), [own]],
  [
    'tokens read from the cache and written to it, which are in the input',
    response({ usage: { ...usage, input_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 } } }),
    [words('in 10 read 60 w30m 30 out 40')],
  ],
  [
    'writes of both lifetimes',
    response({
      usage: {
        ...usage,
        input_tokens_details: {
          cached_tokens: 10,
          cache_write_tokens: 70,
          cache_write_tokens_details: { ttl_30m_tokens: 50, ttl_12h_tokens: 20 },
        },
      },
    }),
    [words('in 20 read 10 w30m 50 w12h 20 out 40')],
  ],
  [
    'more writes than their lifetimes state, which are of the short one',
    response({
      usage: {
        ...usage,
        input_tokens_details: { cache_write_tokens: 70, cache_write_tokens_details: { ttl_12h_tokens: 20 } },
      },
    }),
    [words('in 30 w30m 50 w12h 20 out 40')],
  ],
  [
    'searches that upstream charges for, be there more of them or not',
    response({
      output: [search('ws_1'), search('ws_2'), search('ws_3', 'open_page'), message],
      tool_usage: { image_gen: { input_tokens: 0, output_tokens: 0 }, web_search: { num_requests: 1 } },
    }),
    [words('in 100 out 40 webSearches 1')],
  ],
  [
    'searches where upstream does not say how many',
    response({
      output: [
        search('ws_1'),
        search('ws_2', 'find_in_page'),
        search('ws_3', 'open_page'),
        search('ws_4'),
        message,
      ],
    }),
    [words('in 100 out 40 webSearches 2')],
  ],
  [
    'file searches, which stand nowhere but among the items',
    response({ output: [fileSearch('fs_1'), fileSearch('fs_2'), message] }),
    [words('in 100 out 40 fileSearches 2')],
  ],
  [
    'machines that code and commands ran in, each once',
    response({
      output: [
        { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_1', status: 'completed' },
        { type: 'code_interpreter_call', id: 'ci_2', container_id: 'cntr_1', status: 'completed' },
        shell('sh_1', { type: 'container_reference', container_id: 'cntr_2' }),
        shell('sh_2', { type: 'container_reference', container_id: 'cntr_1' }),
        shell('sh_3', { type: 'local' }),
        shell('sh_4', null),
        message,
      ],
    }),
    [words('in 100 out 40 containers 2')],
  ],
  [
    'images that a tool drew, at the model that the tool was given',
    response({
      output: [image('ig_1'), message],
      tools: [{ type: 'web_search' }, { type: 'image_generation', model: 'gpt-image-1.5' }],
      tool_usage: { image_gen: imageTokens, web_search: { num_requests: 0 } },
    }),
    [own, words('in 20 imageIn 30 imageOut 400', 'gpt-image-1.5')],
  ],
  [
    'images that a tool drew at a model that nobody names, partly from the cache',
    response({
      output: [image('ig_1'), message],
      tools: [{ type: 'image_generation' }],
      tool_usage: {
        image_gen: {
          ...imageTokens,
          cached_tokens: 15,
          cached_tokens_details: { cached_text_tokens: 5, cached_image_tokens: 10 },
          output_tokens_details: { image_tokens: 390, text_tokens: 10 },
        },
      },
    }),
    [own, words('in 15 read 5 imageIn 20 imageRead 10 imageOut 390 out 10', IMAGE_TOOL)],
  ],
  [
    'vector images, which a second model writes',
    response({ output: [image('ig_1', { svg_usage: svg }), image('ig_2', { svg_usage: svg }), message] }),
    [own, words('in 7 out 8', 'gpt-6-svg'), words('in 7 out 8', 'gpt-6-svg')],
  ],
  ['a response that reached its limit', response({ status: 'incomplete' }), [own]],
  [
    'an answer that failed late enough to have usage',
    response({ status: 'failed', error: { code: 'server_error' } }),
    [own],
  ],
]

for (const [sentence, final, parts] of examples) {
  test(`a response and its stream give the same result for ${sentence}`, () => {
    for (const metered of [meterBody('responses', final), meterStream('responses', responseStream(final))]) {
      assert.deepEqual(metered.usage, {
        parts,
        modelServed: 'gpt-6-2026-01-01',
        serviceTier: 'flex',
        speed: null,
        geography: null,
        stopReason: final['status'],
        freeRefusal: false,
        suspect: false,
      })
      assert.equal(metered.inputKnown && metered.outputKnown, true)
      assert.equal(metered.stage, 'over')
      assert.equal(metered.objectId, 'resp_1')
      assert.equal(metered.error, final['error'] === undefined ? null : 'server_error')
      assert.equal(metered.fault, null)
      assert.equal(metered.output.text, 12)
    }
  })
}

test('images without stated tokens are estimated by size and quality, and flagged', () => {
  const sized = { size: '1024x1024', quality: 'low' }
  const tool = { type: 'image_generation', model: 'gpt-image-1.5', quality: 'medium', size: '1536x1024' }
  const output = [image('ig_1', sized), image('ig_2'), image('ig_3', { status: 'failed' }), message]
  for (const [tools, tokens, model] of [
    [[tool], 272 + 1_584, 'gpt-image-1.5'],
    [[{ type: 'image_generation' }], 272 + 6_240, IMAGE_TOOL],
  ] as const) {
    const final = response({ output, tools })
    for (const metered of [meterBody('responses', final), meterStream('responses', responseStream(final))]) {
      assert.deepEqual(metered.usage.parts, [own, part({ image_output_tokens: tokens }, 0, model)])
      assert.equal(metered.usage.suspect, true)
    }
  }
})

test('a stream cut before its last event keeps the searches it showed, and leaves tokens to be estimated', () => {
  const final = response({ output: [search('ws_1'), fileSearch('fs_1'), message] })
  const stream = responseStream(final)
  const metered = meterStream(
    'responses',
    stream.slice(0, stream.indexOf('event: response.completed')),
    false,
  )
  assert.deepEqual(metered.usage.parts, [words('webSearches 1 fileSearches 1')])
  assert.equal(metered.inputKnown || metered.outputKnown, false)
  assert.equal(metered.usage.modelServed, 'gpt-6-2026-01-01')
  assert.equal(metered.usage.serviceTier, 'flex')
  assert.equal(metered.objectId, 'resp_1')
  assert.equal(metered.stage, 'closing')
  assert.equal(metered.output.text, 12)
})

test('a container counts as soon as it appears, even if the stream is cut before its item is done', () => {
  const item = { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_1', status: 'in_progress' }
  const added = { type: 'response.output_item.added', output_index: 0, item }
  const done = { type: 'response.output_item.done', output_index: 0, item }
  for (const events of [[added], [added, done]])
    assert.deepEqual(meterStream('responses', streamOf(events), false).usage.parts, [words('containers 1')])
})

test('an item that appears twice counts once', () => {
  const done = { type: 'response.output_item.done', output_index: 0, item: fileSearch('fs_1') }
  const metered = meterStream('responses', streamOf([done, done]), false)
  assert.deepEqual(metered.usage.parts, [words('fileSearches 1')])
})

test('an error event is reported, flat or wrapped', () => {
  const flat = { type: 'error', code: 'rate_limit_exceeded', message: 'x', param: null, sequence_number: 3 }
  assert.equal(meterStream('responses', streamOf([flat])).error, 'rate_limit_exceeded')
  const wrapped = { type: 'error', error: { type: 'server_error', code: null } }
  assert.equal(meterStream('responses', streamOf([wrapped])).error, 'server_error')
  const failed = {
    type: 'response.failed',
    response: response({ status: 'failed', error: { code: 'x' }, usage: null }),
  }
  const metered = meterStream('responses', streamOf([failed]))
  assert.equal(metered.error, 'x')
  assert.equal(metered.outputKnown, false)
})

test('usage of compactions and decisions is read in the same way', () => {
  const compaction = meterBody('compaction', {
    id: 'resp_2',
    object: 'response.compaction',
    output: [message],
    usage,
  })
  assert.deepEqual(compaction.usage.parts, [own])
  assert.equal(compaction.usage.modelServed, null)
  const decision = meterBody('decisions', {
    answers: [{ type: 'predicate', probability: 0.5 }],
    model: 'gpt-6-luna',
    usage,
  })
  assert.deepEqual(decision.usage.parts, [own])
  assert.equal(decision.usage.modelServed, 'gpt-6-luna')
})

test('a queued response has unknown usage, not a cost of 0', () => {
  const metered = meterBody('responses', response({ status: 'queued', usage: null, output: [] }))
  assert.equal(metered.inputKnown || metered.outputKnown, false)
  assert.equal(metered.usage.stopReason, 'queued')
})
