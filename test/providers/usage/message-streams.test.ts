import assert from 'node:assert/strict'
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
import { EVENTS, type Json, meterBody, meterPieces, meterStream, part, streamOf } from './replies.ts'

test('a model that took over in mid-stream is the one that served, though the stream began with another', () => {
  const stream = messageStream({
    usage: { ...plain, iterations: [entry('message', 'a', 90, 7), entry('fallback_message', 'b', 100, 40)] },
    model: 'a',
    content: [text, fallback('a', 'b'), text],
  })
  const { usage } = meterStream('messages', stream)
  assert.equal(usage.modelServed, 'b')
  assert.deepEqual(usage.parts, [
    part({ input_tokens: 90, output_tokens: 7 }, 90, 'a'),
    part({ input_tokens: 100, output_tokens: 40 }, 100),
  ])
  const cut = meterStream('messages', stream.slice(0, stream.indexOf('event: message_delta')), false)
  assert.equal(cut.usage.modelServed, 'b')
})

test('writes that a stream began without are of five minutes, and the rest stays as it was split', () => {
  const reply: MessageReply = {
    usage: { ...plain, input_tokens: 10_682, cache_creation_input_tokens: 900 },
    startUsage: {
      ...plain,
      input_tokens: 2679,
      cache_creation_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
    },
  }
  const { usage } = meterStream('messages', messageStream(reply))
  assert.deepEqual(usage.parts, [
    part(
      { input_tokens: 10_682, cache_write_5m_tokens: 700, cache_write_1h_tokens: 200, output_tokens: 40 },
      11_582,
    ),
  ])
  assert.equal(usage.suspect, false)
})

test('writes that a stream began without are split as its entries say, where they account for all of them', () => {
  const split = (five: number, hour: number): Json => ({
    cache_creation: { ephemeral_5m_input_tokens: five, ephemeral_1h_input_tokens: hour },
    cache_creation_input_tokens: five + hour,
  })
  const { usage } = meterStream(
    'messages',
    messageStream({
      usage: {
        ...plain,
        cache_creation_input_tokens: 900,
        iterations: [
          entry('message', null, 50, 20, split(0, 300)),
          entry('message', null, 50, 20, split(100, 500)),
        ],
      },
      startUsage: { ...plain, ...split(0, 300) },
    }),
  )
  assert.deepEqual(usage.parts, [
    part(
      { input_tokens: 100, cache_write_5m_tokens: 100, cache_write_1h_tokens: 800, output_tokens: 40 },
      1000,
    ),
  ])
})

test('each message_delta replaces what was said before and adds nothing to it', () => {
  const { usage } = meterStream(
    'messages',
    streamOf([
      { type: 'message_start', message: messageBody({ usage: plain }) },
      {
        type: 'message_delta',
        delta: { stop_reason: null },
        usage: { input_tokens: 150, output_tokens: 20 },
      },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { input_tokens: null, output_tokens: 60, server_tool_use: { web_search_requests: 2 } },
      },
      { type: 'message_stop' },
    ]),
  )
  assert.deepEqual(usage.parts, [part({ input_tokens: 150, output_tokens: 60, web_searches: 2 }, 150)])
  assert.equal(usage.suspect, false)
})

test('a stream cut before its end knows its input and leaves the output to be counted', () => {
  const whole = messageStream({ usage: { ...plain, cache_read_input_tokens: 7 } })
  const metered = meterStream('messages', whole.slice(0, whole.indexOf('event: message_delta')), false)
  assert.deepEqual(metered.usage.parts, [part({ input_tokens: 100, cache_read_tokens: 7 }, 107)])
  assert.equal(metered.usage.serviceTier, 'standard')
  assert.equal(metered.inputKnown, true)
  assert.equal(metered.outputKnown, false)
  assert.equal(metered.outputTokensSeen, 1)
  assert.equal(metered.output.text, 12)
  assert.deepEqual(metered.faults, [])
})

test('a stream cut after a running total knows that there was at least so much output', () => {
  const metered = meterStream(
    'messages',
    streamOf([
      { type: 'message_start', message: messageBody({ usage: plain }) },
      { type: 'message_delta', delta: { stop_reason: null }, usage: { output_tokens: 20 } },
    ]),
    false,
  )
  assert.deepEqual(metered.usage.parts, [part({ input_tokens: 100 }, 100)])
  assert.equal(metered.outputKnown, false)
  assert.equal(metered.outputTokensSeen, 20)
})

test('a stream cut after entries that came before its end leaves the output to be counted', () => {
  const iterations = [entry('compaction', null, 5000, 200), entry('message', null, 100, 20)]
  const metered = meterStream(
    'messages',
    streamOf([
      { type: 'message_start', message: messageBody({ usage: plain }) },
      { type: 'message_delta', delta: { stop_reason: null }, usage: { output_tokens: 20, iterations } },
    ]),
    false,
  )
  assert.deepEqual(metered.usage.parts, [
    part({ input_tokens: 5000 }, 5000),
    part({ input_tokens: 100 }, 100),
  ])
  assert.equal(metered.outputKnown, false)
})

test('an error in mid-stream is reported, with what was known until then', () => {
  const whole = messageStream({ usage: plain })
  const error = streamOf([{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }])
  const metered = meterStream('messages', whole.slice(0, whole.indexOf('event: message_delta')) + error)
  assert.equal(metered.error, 'overloaded_error')
  assert.equal(metered.outputKnown, false)
  assert.deepEqual(metered.usage.parts, [part({ input_tokens: 100 }, 100)])
})

test('the stage follows the blocks, so that leaving between them differs from leaving after the last', () => {
  const events = messageStream({ usage: plain, content: [text, { type: 'text', text: 'more' }] }).split(
    /(?<=\n\n)/,
  )
  const seen: string[] = []
  for (let count = 1; count <= events.length; count++) {
    const name = /^event: (.*)/.exec(events[count - 1] ?? '')?.[1]
    const { stage } = meterPieces(
      'messages',
      EVENTS,
      events.slice(0, count).map((event) => Buffer.from(event)),
      false,
    )
    if (name !== 'content_block_delta') seen.push(`${name} ${stage}`)
  }
  assert.deepEqual(seen, [
    'message_start content',
    'ping content',
    'content_block_start content',
    'content_block_stop closing',
    'content_block_start content',
    'content_block_stop closing',
    'message_delta closing',
    'message_stop over',
  ])
})

test('text, thinking and what is written for tools are distinguished', () => {
  const delta = (index: number, more: Json): Json => ({ type: 'content_block_delta', index, delta: more })
  const metered = meterStream(
    'messages',
    streamOf([
      delta(0, { type: 'thinking_delta', thinking: 'Let me ' }),
      delta(0, { type: 'thinking_delta', thinking: 'see' }),
      delta(0, { type: 'signature_delta', signature: 'EqQBCgIYAhIM' }),
      delta(1, { type: 'text_delta', text: 'Zürich ' }),
      delta(1, { type: 'text_delta', text: '"ist"\n' }),
      delta(1, { type: 'citations_delta', citation: { cited_text: 'no output' } }),
      delta(2, { type: 'input_json_delta', partial_json: '{"city":' }),
      delta(2, { type: 'input_json_delta', partial_json: '"Zürich"}' }),
    ]),
    false,
  )
  assert.deepEqual(metered.output, { text: 14, thinking: 10, tool: 18 })
})

test('a reply without usage leaves both sides to be counted and names what it can', () => {
  const { usage: _, ...body } = messageBody({ usage: plain })
  const metered = meterBody('messages', body)
  assert.equal(metered.inputKnown, false)
  assert.equal(metered.outputKnown, false)
  assert.deepEqual(metered.usage.parts, [part({}, 0)])
  assert.equal(metered.usage.modelServed, 'claude-sonnet-5')
  assert.equal(metered.output.text, 12)
})

test('a context that was summed up is work that the answer does not show, on either surface', () => {
  const block = (type: string) =>
    streamOf([{ type: 'content_block_start', index: 0, content_block: { type } }])
  const item = (type: string) =>
    streamOf([{ type: 'response.output_item.added', output_index: 0, item: { type } }])
  assert.equal(meterStream('messages', block('text'), false).shown.toolsRan, false)
  assert.equal(meterStream('messages', block('compaction'), false).shown.toolsRan, true)
  assert.equal(meterStream('responses', item('message'), false).shown.toolsRan, false)
  assert.equal(meterStream('responses', item('compaction'), false).shown.toolsRan, true)
})
