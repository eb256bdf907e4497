import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Quantities, Unit, Usage } from '../../src/kernel/usage.ts'
import { realtimeUsage, transcriptionUsage } from '../../src/providers/socket-usage.ts'
import { test } from '../support/suite.ts'

const MODEL = 'gpt-realtime'

function quantitiesOf(usage: Usage): Quantities {
  assert.equal(usage.parts.length, 1)
  return usage.parts[0]?.quantities ?? {}
}

const sumOf = (quantities: Quantities, ...units: readonly Unit[]) =>
  units.reduce((sum, unit) => sum + (quantities[unit] ?? 0), 0)

const read = (quantities: Quantities) =>
  sumOf(
    quantities,
    ...(['input_tokens', 'audio_input_tokens', 'image_input_tokens'] as const),
    ...(['cache_read_tokens', 'audio_cache_read_tokens', 'image_cache_read_tokens'] as const),
  )
const written = (quantities: Quantities) =>
  sumOf(quantities, 'output_tokens', 'audio_output_tokens', 'image_output_tokens')

test('usage of a Realtime response is split into text, audio, cached input and output', () => {
  const usage = realtimeUsage(
    {
      total_tokens: 5_800,
      input_tokens: 5_000,
      input_token_details: {
        ...{ text_tokens: 1_000, audio_tokens: 3_000, image_tokens: 1_000, cached_tokens: 2_600 },
        cached_tokens_details: { text_tokens: 600, audio_tokens: 1_500, image_tokens: 500 },
      },
      output_tokens: 800,
      output_token_details: { text_tokens: 200, audio_tokens: 600 },
    },
    MODEL,
  )
  assert.deepEqual(quantitiesOf(usage), {
    ...{ input_tokens: 400, cache_read_tokens: 600, output_tokens: 200 },
    ...{ audio_input_tokens: 1_500, audio_cache_read_tokens: 1_500, audio_output_tokens: 600 },
    ...{ image_input_tokens: 500, image_cache_read_tokens: 500 },
  })
  assert.equal(usage.parts[0]?.promptTokens, 5_000)
  assert.equal(usage.modelServed, MODEL)
  assert.equal(usage.suspect, false)
})

interface Contradiction {
  readonly says: string
  readonly usage: unknown
  readonly quantities: Quantities
}

const details = (text: number, audio: number, image = 0) => ({
  text_tokens: text,
  audio_tokens: audio,
  image_tokens: image,
})

const contradictions: readonly Contradiction[] = [
  {
    says: 'without details is all audio',
    usage: { input_tokens: 100, output_tokens: 50 },
    quantities: { audio_input_tokens: 100, audio_output_tokens: 50 },
  },
  {
    says: 'with details that explain a part is audio in the rest',
    usage: {
      ...{ input_tokens: 100, input_token_details: details(20, 30, 10) },
      ...{ output_tokens: 50, output_token_details: { text_tokens: 40 } },
    },
    quantities: {
      ...{ input_tokens: 20, audio_input_tokens: 70, image_input_tokens: 10 },
      ...{ output_tokens: 40, audio_output_tokens: 10 },
    },
  },
  {
    says: 'with cached tokens of unstated kind counts them as text and then as audio, never as more than there is',
    usage: {
      ...{ input_tokens: 100, input_token_details: { ...details(20, 80), cached_tokens: 50 } },
      ...{ output_tokens: 50, output_token_details: { text_tokens: 50 } },
    },
    quantities: {
      ...{ cache_read_tokens: 20, audio_cache_read_tokens: 30, audio_input_tokens: 50, output_tokens: 50 },
    },
  },
  {
    says: 'without a total on one side is the other side',
    usage: { total_tokens: 90, output_tokens: 30, output_token_details: details(30, 0) },
    quantities: { output_tokens: 30 },
  },
  { says: 'that is missing is nothing, and in doubt', usage: null, quantities: {} },
]
for (const { says, usage, quantities } of contradictions) {
  test(`usage of Realtime ${says}`, () => {
    const found = realtimeUsage(usage, MODEL)
    assert.deepEqual(quantitiesOf(found), quantities)
    assert.equal(found.suspect, true)
  })
}

const few = fc.nat({ max: 2_000 })
const odd = fc.oneof(
  few,
  fc.constantFrom(undefined, null, -1, 0.5, NaN, 1e300, '12', {}, [], true),
) as fc.Arbitrary<unknown>

function usageWith<T>(count: fc.Arbitrary<T>) {
  const kinds = { text_tokens: count, audio_tokens: count, image_tokens: count }
  return fc.record({
    total_tokens: count,
    input_tokens: count,
    output_tokens: count,
    input_token_details: fc.record({
      ...kinds,
      cached_tokens: count,
      cached_tokens_details: fc.record(kinds),
    }),
    output_token_details: fc.record({ text_tokens: count, audio_tokens: count }),
  })
}

const isCount = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0

test('no Realtime usage gives a negative or invalid count, or one below a plausible total', () => {
  fc.assert(
    fc.property(usageWith(odd), (stated) => {
      const quantities = quantitiesOf(realtimeUsage(stated, MODEL))
      for (const count of Object.values(quantities)) assert.ok(Number.isSafeInteger(count) && count > 0)
      const { input_tokens: input, output_tokens: output } = stated
      if (isCount(input) && input <= 2_000) assert.equal(read(quantities), input)
      if (isCount(output) && output <= 2_000) assert.equal(written(quantities), output)
    }),
  )
})

test('a transcription on a socket is read like one over HTTP', () => {
  const tokens = {
    type: 'tokens',
    input_tokens: 140,
    output_tokens: 20,
    input_token_details: details(10, 130),
  }
  const usage = transcriptionUsage(tokens, 'gpt-4o-transcribe')
  assert.deepEqual(quantitiesOf(usage), { input_tokens: 10, audio_input_tokens: 130, output_tokens: 20 })
  assert.equal(usage.parts[0]?.promptTokens, 140)
  assert.equal(usage.suspect, false)
  const duration = transcriptionUsage({ type: 'duration', seconds: 8.47 }, 'whisper-1')
  assert.deepEqual(quantitiesOf(duration), { audio_input_milliseconds: 8_470 })
  assert.equal(duration.suspect, false)
})
