import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Metered } from '../../src/metering/meter.ts'
import { parseSmall } from '../../src/metering/reply-meter.ts'
import { createMeter } from '../../src/providers/surfaces.ts'

const USAGE = '"usage":{"input_tokens":7,"output_tokens":9}'

function meterMessage(text: string, more = ''): Metered {
  const meter = createMeter('messages', { status: 200, contentType: 'application/json' })
  const content = `"content":[{"type":"text","text":"${text}"}]`
  meter.write(
    Buffer.from(`{"type":"message","model":"m",${content},"stop_reason":"end_turn",${USAGE}${more}}`),
  )
  return meter.end(true)
}

const LONG_TEXT = 'a word and a line\\n'.repeat(1000)

test('a long text is delivered whole, though the figures are read without it', () => {
  const metered = meterMessage(LONG_TEXT)
  assert.deepEqual(metered.faults, [])
  assert.deepEqual(metered.usage.parts[0]?.quantities, { input_tokens: 7, output_tokens: 9 })
  assert.equal(metered.output.bytes.text, 18_000)
  assert.deepEqual(metered.output.texts(), ['a word and a line\n'.repeat(1000)])
})

test('a long text that is no JSON string makes the reply one that cannot be read', () => {
  for (const wrong of ['\\x', '\\u12g4', '\\u12"', '\\']) {
    for (const text of [LONG_TEXT + wrong, wrong + LONG_TEXT, LONG_TEXT + wrong + LONG_TEXT]) {
      const { faults, inputKnown, output } = meterMessage(text)
      assert.deepEqual(faults, ['not_json'], JSON.stringify(wrong))
      assert.equal(inputKnown, false)
      assert.equal(output.bytes.text, 0)
    }
  }
})

test('a control character in a text is no reason not to read the usage', () => {
  for (const text of [`a\nb`, `${LONG_TEXT}\0`]) {
    const { faults, usage, output } = meterMessage(text)
    assert.deepEqual(faults, [])
    assert.deepEqual(usage.parts[0]?.quantities, { input_tokens: 7, output_tokens: 9 })
    assert.ok(output.bytes.text >= 3)
  }
})

test('a long string counts as little for a name as any that is too long for one', () => {
  const { usage } = meterMessage('short', `,"model":"${'m'.repeat(5000)}"`)
  assert.equal(usage.modelServed, null)
  assert.equal(usage.suspect, true, 'the name is given twice')
})

test('text that was cut off for its length is delivered up to there', () => {
  const { output, outputKnown } = meterMessage('x'.repeat(300_000))
  assert.equal(output.bytes.text, 128 * 1024)
  assert.equal(outputKnown, true)
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

const parse = (text: string) => parseSmall(Buffer.from(text))

const space = fc.constantFrom('', '', '', ' ', '\n  ', '\t\r\n')

/** A name as it may be written: plain, or with its first character escaped. */
const spelled = fc
  .tuple(fc.constantFrom(...NAMES), fc.integer({ min: 0, max: 9 }))
  .map(([name, way]) => (way > 0 || name === '' ? JSON.stringify(name) : `"${escaped(name)}"`))

function escaped(name: string): string {
  const first = name.charCodeAt(0).toString(16).padStart(4, '0')
  return `\\u${first}${JSON.stringify(name.slice(1)).slice(1, -1)}`
}

/** Values as text, so that a name may be given twice. */
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

/** Meters pieces, each of which is overwritten once it was seen, as the next read of a socket does. */
function meter(
  reader: Reader,
  pieces: readonly Uint8Array[],
  whole = true,
  contentType = 'application/json',
): object {
  const metering = createMeter(reader, { status: 200, contentType })
  for (const piece of pieces) {
    const chunk = Buffer.from(piece)
    metering.write(chunk)
    chunk.fill(0x7b)
  }
  const metered: Metered = metering.end(whole)
  return { ...metered, output: { bytes: metered.output.bytes, texts: metered.output.texts() } }
}

test('a reply in one piece is metered like the same in two, whatever follows it', () => {
  const tail = fc.constantFrom('', '', '\n', ' ', '{}', '}', '\0')
  const fault = fc.tuple(fc.nat(), fc.constantFrom(0xff, 0xc3, 0x80, 0x22, 0x00))
  const broken = fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fault })
  let small = 0
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
        if (parseSmall(bytes) !== null) small += 1
        const all = Buffer.concat([bytes, Buffer.from(end)])
        const cut = 1 + (at % (bytes.length - 1))
        const inTwo = meter(reader, [all.subarray(0, cut), all.subarray(cut)], whole)
        assert.deepEqual(meter(reader, [all], whole), inTwo)
        assert.deepEqual(meter(reader, [bytes, Buffer.from(end)], whole), inTwo)
        assert.deepEqual(meter(reader, [Buffer.alloc(0), all], whole), inTwo)
      },
    ),
    { numRuns: 2_000 },
  )
  assert.ok(small > 300, `only ${small} of them are parsed at once`)
})

test('a text that gives a name twice, at any depth, is never parsed at once', () => {
  const name = fc.constantFrom(...NAMES.filter((each) => each !== ''))
  fc.assert(
    fc.property(anyObject, name, anyValue, anyValue, (object, twice, first, second) => {
      for (const again of [JSON.stringify(twice), `"${escaped(twice)}"`]) {
        const pair = `{${JSON.stringify(twice)}:${first},${again} : ${second}}`
        for (const text of [pair, `{"a":${pair},"b":${object}}`, `{"b":${object},"a":[[${pair}]]}`])
          assert.equal(parse(text), null, text)
      }
    }),
    { numRuns: 1_000 },
  )
})

/** Names that any of the readers looks for. */
const LOOKED_FOR = [
  ...MEMBERS,
  ...MORE,
  ...[
    'status',
    'duration',
    'svg_usage',
    'tools',
    'tool_usage',
    'container',
    'delta',
    'item',
    'response',
    'code',
  ],
  ...['background', 'index', 'finish_reason', 'name', 'input', 'action', 'seconds', 'container_id', 'speed'],
]

test('no reader finds more in a reply that is parsed at once than in one that is walked', () => {
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
      const bytes = Buffer.from(JSON.stringify(reply))
      const walked = meter(reader, [bytes.subarray(0, 1), bytes.subarray(1)])
      assert.deepEqual(meter(reader, [bytes]), walked)
    }),
    { numRuns: 2_000 },
  )
})

const EVENT_TYPES = [
  ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta'],
  ...['response.created', 'response.output_item.done', 'response.completed', 'response.output_text.delta'],
  ...['image_generation.completed', 'speech.audio.done', 'transcript.text.delta', 'transcript.text.done'],
]

test('an event in one piece is metered like the same in two, and so is what follows it', () => {
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
    { numRuns: 1_000 },
  )
})

test('what is usual is parsed at once', () => {
  const content = [
    { type: 'text', text: 'She said: "no".\n', citations: [{ a: 1 }] },
    { type: 'tool_use', input: '{"city":"Ulm", "unit": "C"}' },
  ]
  const reply = { id: 'msg_1', role: 'assistant', content, usage: { input_tokens: 1 } }
  for (const text of [JSON.stringify(reply), `${JSON.stringify(reply, null, 2)}\n`])
    assert.deepEqual(parse(text)?.value, reply)
})

test('what is more than one document, not whole or too long is not', () => {
  const others = ['', ' ', '{', '}', '[]', '"a"', '{}{}', '{"a":1', '{"a":1},', '{"a":NaN}', '\ufeff{}']
  for (const text of others) assert.equal(parse(text), null, text)
  const long = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`
  assert.notEqual(parse(long(4096)), null)
  assert.equal(parse(long(4097)), null)
})

test('no name with a backslash gets where JSON.parse would take other names for it', () => {
  for (const name of ['"\\\\u007"', '"\\u005cu007"', '"\\u005Cu007"']) {
    const usage = '"\\u0075sage":{"input_tokens":7,"output_tokens":9}'
    const reply = `{"bar":{"bar":0,${name}:{}},${usage}}`
    const { usage: read } = meter('messages', [Buffer.from(reply)]) as Metered
    assert.deepEqual(read.parts[0]?.quantities, { input_tokens: 7, output_tokens: 9 }, reply)
  }
})
