import assert from 'node:assert/strict'
import fc from 'fast-check'
import { objectShape, VALUE } from '../../src/metering/json-shape.ts'
import type { Metered } from '../../src/metering/meter.ts'
import { readJson } from '../../src/metering/meter.ts'
import { createMeter } from '../../src/providers/surfaces.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { words } from '../support/words.ts'

const USAGE = '"usage":{"input_tokens":7,"output_tokens":9}'

function meterMessage(text: string, more = ''): Metered {
  const meter = createMeter('messages', 'application/json')
  const content = `"content":[{"type":"text","text":"${text}"}]`
  meter.write(
    Buffer.from(`{"type":"message","model":"m",${content},"stop_reason":"end_turn",${USAGE}${more}}`),
  )
  return meter.end(true)
}

const LONG_TEXT = 'a word and a line\\n'.repeat(1000)

test('the bytes of text are counted, and the usage is read', () => {
  const metered = meterMessage(LONG_TEXT)
  assert.equal(metered.fault, null)
  assert.deepEqual(metered.usage.parts[0]?.quantities, { input_tokens: 7, output_tokens: 9 })
  assert.equal(metered.output.text, 18_000)
})

test('an invalid JSON string makes the reply unreadable', () => {
  for (const wrong of ['\\x', '\\u12g4', '\\u12"', '\\']) {
    for (const text of [LONG_TEXT + wrong, wrong + LONG_TEXT, LONG_TEXT + wrong + LONG_TEXT]) {
      const { inputKnown, output } = meterMessage(text)
      assert.equal(inputKnown, false, JSON.stringify(wrong))
      assert.equal(output.text, 0)
    }
  }
})

test('a message that is cut anywhere counts the text that came, and never a part of a number', () => {
  for (const text of ['wörter ', `${LONG_TEXT}wörter\\u00e9`.repeat(2)]) {
    const whole = Buffer.from(
      `{"id":"a","stop_reason":"end_turn","content":[{"type":"text","text":"${text}"}],${USAGE}}`,
    )
    const start = whole.indexOf(text)
    const bytes = Buffer.byteLength(text)
    for (let cut = whole.length; cut > 0; cut -= cut > start + bytes - 20 ? 1 : 777) {
      const meter = createMeter('messages', 'application/json')
      meter.write(whole.subarray(0, cut))
      const { output, inputKnown, usage } = meter.end(false)
      assert.equal(output.text, Math.min(Math.max(cut - start, 0), bytes), `cut at ${cut}`)
      assert.equal(inputKnown, cut >= whole.length - 1)
      assert.equal(usage.stopReason, inputKnown ? 'end_turn' : null)
      if (inputKnown) assert.deepEqual(usage.parts[0]?.quantities, { input_tokens: 7, output_tokens: 9 })
    }
  }
})

test('a duplicate name makes the usage suspect', () => {
  const { usage } = meterMessage('short', `,"model":"${'m'.repeat(5000)}"`)
  assert.equal(usage.modelServed, null)
  assert.equal(usage.suspect, true)
})

type Reader = Parameters<typeof createMeter>[0]

const READERS: readonly Reader[] = [
  ...(['messages', 'chat', 'completions', 'responses', 'compaction', 'decisions'] as const),
  ...(['embeddings', 'images', 'speech', 'transcription'] as const),
]
const MEMBERS =
  'type id model stop_reason content usage error choices message output text input_tokens'.split(' ')
const MORE =
  'output_tokens prompt_tokens completion_tokens service_tier iterations citations parameters'.split(' ')
const LONG = 'n'.repeat(254)
const NAMES = [
  ...MEMBERS,
  ...MORE,
  '__proto__',
  '0',
  '',
  ':',
  '"',
  'kö😀',
  `${LONG}ab`,
  `${LONG}abc`,
  `${LONG}abd`,
]
const TEXTS = [
  '',
  ':',
  ' ":',
  '\\":',
  'end_turn',
  'text',
  'error',
  'a\nb',
  '\\',
  '"',
  '{"a":1}',
  'She: "no": ',
  'ä',
]

const space = fc.constantFrom('', '', '', ' ', '\n  ', '\t\r\n')

/** Spellings of a name: plain, or with its first character escaped. */
const spelled = fc
  .tuple(fc.constantFrom(...NAMES), fc.integer({ min: 0, max: 9 }))
  .map(([name, way]) => (way > 0 || name === '' ? JSON.stringify(name) : `"${escaped(name)}"`))

function escaped(name: string): string {
  const first = name.charCodeAt(0).toString(16).padStart(4, '0')
  return `\\u${first}${JSON.stringify(name.slice(1)).slice(1, -1)}`
}

/** Values as text, so that a name may be duplicated. */
const { value: anyValue, object: anyObject } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom('null', 'true', '0', '7', '412', '-1', '1.5', '1e309'),
    fc.constantFrom(...TEXTS).map((text) => JSON.stringify(text)),
    fc.array(tie('value'), { maxLength: 4 }).map((values) => `[${values.join(',')}]`),
    tie('object'),
  ),
  object: fc
    .array(fc.tuple(spelled, space, space, tie('value')), { maxLength: 8 })
    .map((members) => `{${members.map((parts) => memberText(...parts)).join(',')}}`),
}))

function memberText(name: string, before: string, after: string, value: string): string {
  return `${name}${before}:${after}${value}`
}

/** Meters chunks, each overwritten afterwards, as the next read of a socket does. */
function meter(
  reader: Reader,
  pieces: readonly Uint8Array[],
  whole = true,
  contentType = 'application/json',
): Metered {
  const metering = createMeter(reader, contentType)
  for (const piece of pieces) {
    const chunk = Buffer.from(piece)
    metering.write(chunk)
    chunk.fill(0x7b)
  }
  return metering.end(whole)
}

test('a reply in one chunk gives the same result as in two, whatever follows it', () => {
  const tail = fc.constantFrom('', '', '\n', ' ', '{}', '}', '\0')
  const fault = fc.tuple(fc.nat(), fc.constantFrom(0xff, 0xc3, 0x80, 0x22, 0x00))
  const broken = fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fault })
  fc.assert(
    fc.property(
      fc.constantFrom(...READERS),
      anyObject,
      broken,
      tail,
      fc.nat(),
      fc.boolean(),
      (reader, object, change, end, at, whole) => {
        const bytes = Buffer.from(object)
        if (change !== null) bytes[change[0] % bytes.length] = change[1]
        const all = Buffer.concat([bytes, Buffer.from(end)])
        const cut = 1 + (at % (bytes.length - 1))
        const inTwo = meter(reader, [all.subarray(0, cut), all.subarray(cut)], whole)
        assert.deepEqual(meter(reader, [all], whole), inTwo)
        assert.deepEqual(meter(reader, [bytes, Buffer.from(end)], whole), inTwo)
        assert.deepEqual(meter(reader, [Buffer.alloc(0), all], whole), inTwo)
      },
    ),
    { numRuns: runs(1_000) },
  )
})

test('a duplicate name is always noticed, and no other reply is suspect for its names', () => {
  const shape = objectShape({ usage: VALUE, a: objectShape({ usage: VALUE }) })
  const read = (text: string) => {
    const document = readJson(shape, Buffer.from(text))
    assert.ok(document !== null, text)
    return document
  }
  fc.assert(
    fc.property(anyObject, anyValue, anyValue, fc.jsonValue(), (object, first, second, json) => {
      for (const padding of ['', PADDING]) {
        const end = `,"padding":"${padding}"}`
        for (const again of ['"usage"', `"${escaped('usage')}"`]) {
          const pair = `"usage":${first},${again} : ${second}`
          for (const text of [`{${pair}`, `{"a":{${pair}},"b":${object}`])
            assert.ok(read(text + end).repeatsNames(), text)
        }
        const once = `{"usage":${JSON.stringify({ json })},"b":[{"c":${JSON.stringify(json)}}]`
        assert.equal(read(once + end).repeatsNames(), false, once)
      }
    }),
    { numRuns: runs(150) },
  )
})

/** Names that any reader looks for. */
const LOOKED_FOR = [
  ...MEMBERS,
  ...MORE,
  ...words(`
    status duration svg_usage tools tool_usage container delta item response code
  `),
  ...['background', 'index', 'finish_reason', 'name', 'input', 'action', 'seconds', 'container_id', 'speed'],
]

test('every reader gets the same result from a parsed reply and from one too long to parse', () => {
  const { object } = fc.letrec<{ value: unknown; object: object }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom<unknown>(7, 1.5, true, null, 'image_generation', 'text', '9'),
      fc.array(tie('value'), { maxLength: 2 }),
      tie('object'),
    ),
    object: fc.dictionary(fc.constantFrom(...LOOKED_FOR), tie('value'), {
      minKeys: 1,
      maxKeys: 12,
      size: 'max',
    }),
  }))
  fc.assert(
    fc.property(fc.constantFrom(...READERS), object, (reader, reply) => {
      const long = Buffer.from(JSON.stringify({ ...reply, padding: PADDING }))
      const { output: _text, ...walked } = meter(reader, [long])
      const { output: _all, ...parsed } = meter(reader, [Buffer.from(JSON.stringify(reply))])
      assert.deepEqual(walked, parsed)
    }),
    { numRuns: runs(500) },
  )
})

const PADDING = 'x'.repeat(256 * 1024)

const EVENT_TYPES = [
  ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta'],
  ...['response.created', 'response.output_item.done', 'response.completed', 'response.output_text.delta'],
  ...['image_generation.completed', 'speech.audio.done', 'transcript.text.delta', 'transcript.text.done'],
]

test('an event in one chunk gives the same result as in two, and so do the next events', () => {
  const event = fc.tuple(fc.constantFrom(...EVENT_TYPES), anyObject).map(([type, object]) => {
    const data = object === '{}' ? `{"type":"${type}"}` : `{"type":"${type}",${object.slice(1)}`
    return `event: ${type}\ndata: ${data.replaceAll(/[\r\n]/g, ' ')}\n\n`
  })
  fc.assert(
    fc.property(
      fc.constantFrom(...READERS),
      fc.array(event, { minLength: 1, maxLength: 4 }),
      fc.nat(),
      (reader, events, at) => {
        const all = Buffer.from(events.join(''))
        const cut = 1 + (at % (all.length - 1))
        const whole = meter(reader, [all], true, 'text/event-stream')
        const inTwo = [all.subarray(0, cut), all.subarray(cut)]
        const singly = Array.from(all, (byte) => Buffer.of(byte))
        assert.deepEqual(meter(reader, inTwo, true, 'text/event-stream'), whole)
        assert.deepEqual(meter(reader, singly, true, 'text/event-stream'), whole)
      },
    ),
    { numRuns: runs(1_000) },
  )
})

test('in a reply too long to parse, text is counted and tool results are not', () => {
  const blocks = [
    { type: 'text', text: 'y'.repeat(1_000) },
    { type: 'text', text: 'short' },
    { type: 'tool_use', input: { a: 'z'.repeat(500) } },
    { type: 'web_search_tool_result', content: [{ url: 'x', encrypted_content: PADDING }] },
  ]
  const message = { type: 'message', content: blocks, usage: { input_tokens: 7, output_tokens: 9 } }
  assert.deepEqual(meter('messages', [Buffer.from(JSON.stringify(message))]).output, {
    text: 1_005,
    thinking: 0,
    tool: 508,
  })
})
