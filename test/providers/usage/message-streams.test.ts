import assert from 'node:assert/strict'
import { test } from '../../support/suite.ts'
import { entry, fallback, messageBody, messageStream, plain, text } from './message-replies.ts'
import { EVENTS, type Json, meterBody, meterPieces, meterStream, streamOf, words } from './replies.ts'

test('if another model takes over mid-stream, it is the model served', () => {
  const stream = messageStream({
    usage: { ...plain, iterations: [entry('message', 'a', 90, 7), entry('fallback_message', 'b', 100, 40)] },
    model: 'a',
    content: [text, fallback('a', 'b'), text],
  })
  const { usage } = meterStream('messages', stream)
  assert.equal(usage.modelServed, 'b')
  assert.deepEqual(usage.parts, [words('in 90 out 7', 'a'), words('in 100 out 40')])
  const cut = meterStream('messages', stream.slice(0, stream.indexOf('event: message_delta')), false)
  assert.equal(cut.usage.modelServed, 'b')
})

test('each message_delta replaces the earlier totals and does not add to them', () => {
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
  assert.deepEqual(usage.parts, [words('in 150 out 60 webSearches 2')])
  assert.equal(usage.suspect, false)
})

test('a stream cut before its end has known input and leaves the output to be estimated', () => {
  const whole = messageStream({ usage: { ...plain, cache_read_input_tokens: 7 } })
  const metered = meterStream('messages', whole.slice(0, whole.indexOf('event: message_delta')), false)
  assert.deepEqual(metered.usage.parts, [words('in 100 read 7')])
  assert.equal(metered.usage.serviceTier, 'standard')
  assert.equal(metered.inputKnown, true)
  assert.equal(metered.outputKnown, false)
  assert.equal(metered.outputTokensSeen, 1)
  assert.equal(metered.output.text, 12)
  assert.equal(metered.fault, null)
})

test('a stream cut after a running total has at least that much output', () => {
  const metered = meterStream(
    'messages',
    streamOf([
      { type: 'message_start', message: messageBody({ usage: plain }) },
      { type: 'message_delta', delta: { stop_reason: null }, usage: { output_tokens: 20 } },
    ]),
    false,
  )
  assert.deepEqual(metered.usage.parts, [words('in 100')])
  assert.equal(metered.outputKnown, false)
  assert.equal(metered.outputTokensSeen, 20)
})

test('an error mid-stream is reported with the usage so far', () => {
  const whole = messageStream({ usage: plain })
  const error = streamOf([{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }])
  const metered = meterStream('messages', whole.slice(0, whole.indexOf('event: message_delta')) + error)
  assert.equal(metered.error, 'overloaded_error')
  assert.equal(metered.outputKnown, false)
  assert.deepEqual(metered.usage.parts, [words('in 100')])
})

test('the stage is "closing" between and after content blocks, and "content" within them', () => {
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

test('text, thinking and tool input are counted separately', () => {
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

test('a reply without usage leaves both sides to be estimated and names its model', () => {
  const { usage: _, ...body } = messageBody({ usage: plain })
  const metered = meterBody('messages', body)
  assert.equal(metered.inputKnown, false)
  assert.equal(metered.outputKnown, false)
  assert.deepEqual(metered.usage.parts, [words('')])
  assert.equal(metered.usage.modelServed, 'claude-sonnet-5')
  assert.equal(metered.output.text, 12)
})

test('a redeemed fallback credit moves tokens from cache writes to cache reads', () => {
  const { usage } = meterStream(
    'messages',
    streamOf([
      {
        type: 'message_start',
        message: messageBody({ usage: { ...plain, cache_creation_input_tokens: 1_000 } }),
      },
      { type: 'message_delta', delta: { stop_reason: null }, usage: { output_tokens: 5 } },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: {
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 1_000,
          output_tokens: 9,
          fallback_credit: { status: 'redeemed' },
        },
      },
      { type: 'message_stop' },
    ]),
  )
  assert.deepEqual(usage.parts, [words('in 100 read 1000 out 9')])
})

test('usage is read however deep the tool input of a long reply is nested', () => {
  const input = `${'{"a":'.repeat(600)}"${'x'.repeat(50_000)}"${'}'.repeat(600)}`
  const body = JSON.stringify(messageBody({ usage: { ...plain, output_tokens: 4_000 } }))
  const { usage, outputKnown } = meterBody(
    'messages',
    `{"content":[{"type":"tool_use","input":${input}}],${body.slice(1)}`,
  )
  assert.deepEqual(usage.parts, [words('in 100 out 4000')])
  assert.equal(outputKnown, true)
})
