import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { UsageReader } from '../../../src/providers/endpoint.ts'
import { createMeter } from '../../../src/providers/surfaces.ts'
import { anyCharacter } from '../../support/any-character.ts'
import { runs } from '../../support/scale.ts'
import { test } from '../../support/suite.ts'
import { messageBody, messageStream, plain } from './message-replies.ts'
import {
  cutEvery,
  EVENTS,
  JSON_TYPE,
  meterBody,
  meterPieces,
  meterStream,
  part,
  streamOf,
} from './replies.ts'
import { sampleStreams } from './sample-streams.ts'

const own = [part({ input_tokens: 100, output_tokens: 40 }, 100)]

test('an event may be of any size as far as it is not read', () => {
  const blocks = Array.from({ length: 60_000 }, (_, i) => ({ type: 'x', id: `block ${i}`, list: [i, i, i] }))
  const huge = streamOf([{ type: 'content_block_start', index: 0, content_block: { type: 'text', blocks } }])
  assert.ok(huge.length > 2_000_000)
  const stream = messageStream({ usage: plain })
  const at = stream.indexOf('event: content_block_start')
  const metered = meterStream('messages', stream.slice(0, at) + huge + stream.slice(at))
  assert.deepEqual(metered.usage.parts, own)
  assert.deepEqual(metered.faults, [])
  assert.equal(metered.stage, 'over')
})

test('a document keeps its usage though its content is beyond all bounds', () => {
  const content = Array.from({ length: 40_000 }, (_, i) => ({ type: 'text', text: `${i}`, list: [i, i, i] }))
  const metered = meterBody('messages', messageBody({ usage: plain, content, stopReason: 'refusal' }))
  assert.deepEqual(metered.usage.parts, own)
  assert.deepEqual(metered.faults, ['too_large'])
  assert.equal(metered.usage.freeRefusal, false)
})

test('the last event of a response keeps its usage though its output is beyond all bounds', () => {
  const output = Array.from({ length: 40_000 }, (_, i) => ({
    id: `fs_${i}`,
    type: 'file_search_call',
    queries: ['x'],
  }))
  const usage = { input_tokens: 100, output_tokens: 40 }
  const done = { type: 'response.output_item.done', output_index: 0, item: output[0] }
  const completed = { type: 'response.completed', response: { status: 'completed', output, usage } }
  const metered = meterStream('responses', streamOf([done, completed]))
  assert.deepEqual(metered.usage.parts, [
    part({ input_tokens: 100, output_tokens: 40, file_searches: 10_000 }, 100),
  ])
  assert.deepEqual(metered.faults, ['too_large'])
  assert.equal(metered.usage.suspect, true)
})

test('a text of many megabytes in one piece is no reason to lose the usage behind it', () => {
  const text = 'word '.repeat(2_000_000)
  const metered = meterBody('messages', messageBody({ usage: plain, content: [{ type: 'text', text }] }))
  assert.deepEqual(metered.usage.parts, own)
  assert.deepEqual(metered.faults, [])
  const usage = { input_tokens: 100, output_tokens: 40 }
  const images = Array.from({ length: 5 }, (_, i) => ({
    id: `ig_${i}`,
    type: 'image_generation_call',
    result: 'iVBORw0KGgo'.repeat(200_000),
  }))
  const final = { status: 'completed', output: images, tool_usage: { image_gen: {} }, usage }
  const completed = { type: 'response.completed', response: final }
  const stream = meterPieces('responses', EVENTS, cutEvery(Buffer.from(streamOf([completed])), 65_536))
  assert.deepEqual(stream.usage.parts, own)
  assert.deepEqual(stream.faults, [])
})

test('an event that never ends costs no memory', () => {
  const meter = createMeter('messages', { status: 200, contentType: 'text/event-stream' })
  meter.write(Buffer.from('event: content_block_start\ndata: {"content_block":['))
  const chunk = Buffer.from('{"a":[1,2,3],"b":"'.repeat(3000))
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < 2000; i++) meter.write(chunk)
  assert.ok(process.memoryUsage().arrayBuffers - before < 32 * 1024 * 1024)
  assert.deepEqual(meter.end(false).faults, [])
})

test('an event that is no JSON is reported, unless it was cut off', () => {
  const broken = 'event: message_start\ndata: {"type":"message_start"\n\n'
  const stream = messageStream({ usage: plain })
  const metered = meterStream('messages', broken + stream)
  assert.deepEqual(metered.faults, ['not_json'])
  assert.deepEqual(metered.usage.parts, own)
  assert.deepEqual(meterStream('messages', 'data: {"type":', false).faults, [])
  assert.deepEqual(meterStream('messages', 'data: {"type":', true).faults, ['not_json'])
  assert.deepEqual(meterBody('messages', '{"type":').faults, ['not_json'])
  assert.deepEqual(meterPieces('messages', JSON_TYPE, [Buffer.from('{"type":')], false).faults, [])
  assert.deepEqual(meterBody('messages', '').faults, ['not_json'])
})

const readers: readonly UsageReader[] = [
  ...(['messages', 'chat', 'responses', 'embeddings', 'images', 'speech'] as const),
  ...(['transcription', 'decisions', 'compaction', 'completions', 'realtime'] as const),
]

test('no bytes make a meter fail', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.string({ unit: anyCharacter }).map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(
      fc.array(bytes, { maxLength: 6 }),
      fc.constantFrom(...readers),
      fc.boolean(),
      (pieces, reader, whole) => {
        for (const type of [EVENTS, JSON_TYPE, 'audio/mpeg']) {
          const { faults } = meterPieces(reader, type, pieces, whole)
          assert.ok(!faults.includes('failed'))
        }
      },
    ),
    { numRuns: runs(200) },
  )
})

test('no JSON in an event or a document makes a meter fail', () => {
  const members = [
    'type',
    'message',
    'usage',
    'delta',
    'choices',
    'response',
    'item',
    'output',
    'error',
    'content',
    'index',
  ]
  const value = fc.jsonValue({ maxDepth: 3 })
  const object = fc.dictionary(
    fc.constantFrom(...members),
    fc.oneof(value, fc.dictionary(fc.constantFrom(...members), value)),
  )
  const types = [
    'message_start',
    'content_block_start',
    'content_block_delta',
    'message_delta',
    'response.completed',
  ]
  fc.assert(
    fc.property(
      object,
      fc.constantFrom(...readers),
      fc.constantFrom(...types, null),
      (event, reader, type) => {
        const typed = type === null ? event : { ...event, type }
        assert.ok(!meterStream(reader, streamOf([typed, typed])).faults.includes('failed'))
        assert.ok(!meterBody(reader, typed).faults.includes('failed'))
      },
    ),
    { numRuns: runs(400) },
  )
})

test('bytes that are changed on the way make no meter fail, and are read the same wherever they are cut', () => {
  const streams = sampleStreams(['The', ' quick', '\n', ' grüßt', ' fox', ' 世界', '.', '"', ' ', 'x'])
  fc.assert(
    fc.property(
      fc.constantFrom(...streams),
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }),
      fc.option(fc.tuple(fc.nat(), fc.nat(), fc.nat(60))),
      ({ reader, stream }, changes, move) => {
        const bytes = Buffer.from(stream)
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte
        if (move !== null) {
          const [to, from, length] = move
          bytes.copyWithin(to % bytes.length, from % bytes.length, (from % bytes.length) + length)
        }
        const metered = meterPieces(reader, EVENTS, [bytes])
        assert.ok(!metered.faults.includes('failed'))
        assert.deepEqual(meterPieces(reader, EVENTS, cutEvery(bytes, 1)), metered)
      },
    ),
    { numRuns: runs(200) },
  )
})
