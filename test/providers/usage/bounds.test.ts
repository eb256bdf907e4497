import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { UsageReader } from '../../../src/providers/endpoint.ts'
import { createMeter } from '../../../src/providers/surfaces.ts'
import { anyCharacter } from '../../support/any-character.ts'
import { runs } from '../../support/scale.ts'
import { test } from '../../support/suite.ts'
import { messageStream, plain } from './message-replies.ts'
import { cutEvery, EVENTS, JSON_TYPE, meterPieces, meterStream, part, streamOf } from './replies.ts'
import { sampleStreams } from './sample-streams.ts'

const own = [part({ input_tokens: 100, output_tokens: 40 }, 100)]

test('the last event of a response keeps its usage even if its output exceeds every limit', () => {
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
    part({ input_tokens: 100, output_tokens: 40, file_searches: 20_000 }, 100),
  ])
  assert.equal(metered.usage.suspect, true)
})

test('an event that never ends uses constant memory', () => {
  const meter = createMeter('messages', 'text/event-stream')
  meter.write(Buffer.from('event: content_block_start\ndata: {"content_block":['))
  const chunk = Buffer.from('{"a":[1,2,3],"b":"'.repeat(3000))
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < 2000; i++) meter.write(chunk)
  assert.ok(process.memoryUsage().arrayBuffers - before < 32 * 1024 * 1024)
  assert.equal(meter.end(false).fault, null)
})

test('an event that is not JSON is skipped', () => {
  const broken = 'event: message_start\ndata: {"type":"message_start"\n\n'
  const stream = messageStream({ usage: plain })
  const metered = meterStream('messages', broken + stream)
  assert.deepEqual(metered.usage.parts, own)
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
          const { fault } = meterPieces(reader, type, pieces, whole)
          assert.equal(fault, null)
        }
      },
    ),
    { numRuns: runs(200) },
  )
})

test('corrupted bytes make no meter fail, and give the same result in any chunks', () => {
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
        assert.equal(metered.fault, null)
        assert.deepEqual(meterPieces(reader, EVENTS, cutEvery(bytes, 1)), metered)
      },
    ),
    { numRuns: runs(200) },
  )
})
