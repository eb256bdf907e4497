import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { JsonCondenser } from '../../src/metering/json-condenser.ts'
import {
  type Condensed,
  type CondenseLimits,
  NameSet,
  readDocument,
} from '../../src/metering/json-document.ts'

const rules = { keep: new NameSet(['a', 'b', 'usage']), drop: new NameSet(['drop', 'logprobs']) }

function condense(pieces: readonly Buffer[], limits: Partial<CondenseLimits> = {}): Condensed {
  const condenser = new JsonCondenser(rules, limits)
  for (const piece of pieces) {
    const padded = Buffer.concat([Buffer.from('pad"'), piece, Buffer.from('"pad')])
    condenser.write(padded, 4, 4 + piece.length)
    // Whoever owns the chunk may use it again.
    padded.fill('x')
  }
  return condenser.take()
}

function textOf(condensed: Condensed): string {
  return condensed.kind === 'json' ? condensed.text : condensed.kind
}

const condenseText = (text: string, limits: Partial<CondenseLimits> = {}): string =>
  textOf(condense([Buffer.from(text)], limits))

function inPieces(bytes: Buffer, size: number): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
  return pieces
}

const short = { textBytesMax: 8, longStringBytesMax: 4 }

const examples: readonly (readonly [string, string, string, Partial<CondenseLimits>?])[] = [
  [
    'members that matter stay as they are',
    ' {"a": [1, {"x": "y"}] , "b":null} ',
    ' {"a": [1, {"x": "y"}] , "b":null} ',
  ],
  [
    'other members become null',
    '{"x":[1,{"a":2}],"a":1,"y":"}","z":-1.5e3}',
    '{"x":null,"a":1,"y":null,"z":null}',
  ],
  [
    'names count by what they say',
    '{"\\u0061":1,"\\u0078":2,"us\\u0061ge":{}}',
    '{"\\u0061":1,"\\u0078":null,"us\\u0061ge":{}}',
  ],
  [
    'names to drop count at any depth but the first',
    '{"a":{"drop":[{"b":[]}],"c":[{"logprobs":"x","d":1}]},"drop":1}',
    '{"a":{"drop":null,"c":[{"logprobs":null,"d":1}]},"drop":null}',
  ],
  [
    'a name is no value and a value is no name',
    '{"a":["drop",{"x":"drop"}],"b":"usage"}',
    '{"a":["drop",{"x":"drop"}],"b":"usage"}',
  ],
  [
    'brackets and quotes in strings are text',
    '{"x":"\\"}],{[:","a":"\\\\","b":"]}\\""}',
    '{"x":null,"a":"\\\\","b":"]}\\""}',
  ],
  ['empty containers are whole values', '{"a":{},"x":[],"b":[[],{}]}', '{"a":{},"x":null,"b":[[],{}]}'],
  ['what is no object passes as it is', '[DONE]', '[DONE]'],
  ['lists at the top are gone through too', '[{"drop":1,"x":2}]', '[{"drop":null,"x":2}]'],
  [
    'strings are kept until they add up, then cut',
    '{"a":"123456789","b":"123456789"}',
    '{"a":"12345678","b":"1234"}',
    short,
  ],
  ['no escape is cut', '{"a":"1234567\\u00e9x","b":"123\\n4"}', '{"a":"1234567\\u00e9","b":"123\\n"}', short],
  ['no character is cut', '{"a":"1234567é8","b":"1😀5"}', '{"a":"1234567é","b":"1😀"}', short],
  ['names are cut too', '{"a":{"0123456":1}}', '{"a":{"0123":1}}', short],
  [
    'a member that is too long becomes null',
    '{"a":[1,2,3,4,5,6,7],"b":[1]}',
    '{"a":null,"b":[1]}',
    { memberBytesMax: 8 },
  ],
  [
    'a member that is given up takes no room from the strings behind it',
    '{"a":["123456","123456"],"b":"123456789"}',
    '{"a":null,"b":"12345678"}',
    { ...short, memberBytesMax: 12 },
  ],
  [
    'a member of a member is given up alone',
    '{"a":{"x":[1,2,3,4,5],"usage":{"n":1}},"b":1}',
    '{"a":{"x":null,"usage":{"n":1}},"b":1}',
    { memberBytesMax: 8 },
  ],
]

for (const [sentence, text, expected, limits] of examples) {
  test(`${sentence}, however the bytes are cut`, () => {
    const bytes = Buffer.from(text)
    assert.equal(textOf(condense([bytes], limits)), expected)
    for (let size = 1; size < bytes.length; size++) {
      assert.equal(textOf(condense(inPieces(bytes, size), limits)), expected, `in pieces of ${size} bytes`)
    }
  })
}

test('a document that is too long for its bound says so and nothing else, and the next one is read', () => {
  const condenser = new JsonCondenser(rules, { documentBytesMax: 16, memberBytesMax: 16 })
  const long = Buffer.from('{"a":1,"b":2,"a":3,"b":4}')
  condenser.write(long, 0, long.length)
  assert.deepEqual(condenser.take(), { kind: 'too_large' })
  const next = Buffer.from('{"a":1}')
  condenser.write(next, 0, next.length)
  assert.equal(textOf(condenser.take()), '{"a":1}')
})

test('a document left in the middle of a string leaves nothing behind for the next one', () => {
  const condenser = new JsonCondenser(rules)
  for (const text of ['{"a":{"drop":["', '{"a":"\\', '{"x":[[', '{"\\u00']) {
    condenser.write(Buffer.from(text), 0, text.length)
    condenser.take()
    condenser.write(Buffer.from('{"a":"b","x":1}'), 0, 15)
    assert.equal(textOf(condenser.take()), '{"a":"b","x":null}')
  }
})

test('a member that is nested more deeply than anybody sends becomes null, and what is beside it stays', () => {
  const deep = (depth: number) => '{"drop":['.repeat(depth / 2) + ']}'.repeat(depth / 2)
  for (const depth of [500, 1000, 20_000]) {
    for (const size of [1, 7, 300, 100_000]) {
      const read = (text: string) => {
        const condensed = condense(inPieces(Buffer.from(text), size))
        assert.equal(
          condensed.kind === 'json' && condensed.overflow,
          !text.startsWith('{"x"'),
          text.slice(0, 40),
        )
        return textOf(condensed)
      }
      const kept = '['.repeat(depth) + ']'.repeat(depth)
      assert.equal(read(`{"b":1,"a":${kept},"usage":{"n":1}}`), '{"b":1,"a":null,"usage":{"n":1}}')
      assert.equal(read(`{"a":{"c":${kept},"d":2},"b":"]"}`), '{"a":{"c":null,"d":2},"b":"]"}')
      assert.equal(read(`{"x":${deep(depth)},"usage":1}`), '{"x":null,"usage":1}')
    }
  }
  assert.equal(condenseText('['.repeat(1000)), 'too_large')
})

test('a hundred megabytes of what does not matter leave next to nothing', () => {
  const condenser = new JsonCondenser(rules)
  const write = (text: string): void => condenser.write(Buffer.from(text), 0, Buffer.byteLength(text))
  write('{"data":[')
  const numbers = Buffer.from('0.0123456,'.repeat(100_000))
  for (let i = 0; i < 50; i++) condenser.write(numbers, 0, numbers.length)
  write('1],"a":{"image":"')
  const image = Buffer.alloc(1_000_000, 'base64')
  for (let i = 0; i < 50; i++) condenser.write(image, 0, image.length)
  write('"},"usage":{"n":1}}')
  const { value, overflow } = parsed(condenser.take())
  assert.deepEqual(value['usage'], { n: 1 })
  assert.equal(value['data'], null)
  assert.equal(String((value['a'] as Record<string, unknown>)['image']).length, 128 * 1024)
  assert.equal(overflow, false)
})

function parsed(condensed: Condensed): {
  value: Record<string, unknown>
  overflow: boolean
  repeats: boolean
} {
  const document = readDocument(condensed)
  assert.ok(typeof document !== 'string', String(document))
  return {
    value: document.value as Record<string, unknown>,
    overflow: document.overflow,
    repeats: document.repeatsNames(),
  }
}

test('members given twice are noticed at any depth, unless they do not matter', () => {
  const repeats = (text: string): boolean => parsed(condense([Buffer.from(text)])).repeats
  assert.equal(repeats('{"a":1,"b":{"a":1},"usage":[{"a":1},{"a":1}]}'), false)
  assert.equal(repeats('{"a":1,"b":2,"a":1}'), true)
  assert.equal(repeats('{"usage":{"n":1,"m":2,"n":3}}'), true)
  assert.equal(repeats('{"usage":{"n":1,"\\u006e":3}}'), true)
  assert.equal(repeats('{"x":{"n":1,"n":2},"a":{"drop":{"n":1,"n":2}}}'), false)
})

test('a member that was given up is told, one that did not matter is not', () => {
  const limits = { memberBytesMax: 8 }
  const overflow = (text: string): boolean => parsed(condense([Buffer.from(text)], limits)).overflow
  assert.equal(overflow('{"a":[1,2,3,4,5,6,7]}'), true)
  assert.equal(overflow('{"x":[1,2,3,4,5,6,7],"a":1}'), false)
})

const json = fc.json({ maxDepth: 5, stringUnit: 'binary' })
const object = fc.dictionary(
  fc.constantFrom('a', 'b', 'x', 'usage', 'drop', 'é', ''),
  fc.jsonValue({ maxDepth: 4 }),
)

/** What the condenser is to do, done to the value. */
function expectedOf(value: unknown, depth = 1): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((inner) => expectedOf(inner, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const matters = depth === 1 ? rules.keep.has(name) : !rules.drop.has(name)
      return [name, matters ? expectedOf(inner, depth + 1) : null]
    }),
  )
}

test('what is parsed of the copy is what is parsed of the text, but for what does not matter', () => {
  fc.assert(
    fc.property(object, fc.constantFrom(0, 1, 2), (value, indent) => {
      const document = parsed(condense([Buffer.from(JSON.stringify(value, null, indent))]))
      assert.deepEqual(document.value, expectedOf(JSON.parse(JSON.stringify(value))))
      assert.equal(document.repeats, false)
    }),
    { numRuns: 500 },
  )
})

const TIGHT = { textBytesMax: 0, longStringBytesMax: 1, memberBytesMax: 4, documentBytesMax: 20 }

const copyOf = (condensed: ReturnType<typeof condense>) => (condensed.kind === 'json' ? condensed.text : '')

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

test('where a text is cut makes no difference, be it JSON or not, be it too long or not', () => {
  const garbage = fc.string({ unit: fc.constantFrom(...'{}[]:,"\\u0aé😀 \n'), maxLength: 60 })
  const text = fc.oneof(
    json,
    object.map((value) => JSON.stringify(value)),
    garbage,
  )
  const limits = fc.record({
    textBytesMax: fc.constantFrom(0, 3, 1000),
    longStringBytesMax: fc.constantFrom(1, 4, 1000),
    memberBytesMax: fc.constantFrom(4, 12, 1000),
    documentBytesMax: fc.constantFrom(20, 1000),
  })
  fc.assert(
    fc.property(text, limits, fc.integer({ min: 1, max: 9 }), (source, bounds, size) => {
      const bytes = Buffer.from(source)
      const [cut, whole] = [condense(inPieces(bytes, size), bounds), condense([bytes], bounds)]
      // Of what is not JSON the copies may differ, as long as nobody takes either for JSON.
      if (isJson(source) || isJson(copyOf(cut)) || isJson(copyOf(whole))) assert.deepEqual(cut, whole)
    }),
    { numRuns: 2000, examples: [['{:\na é{', TIGHT, 1]] },
  )
})

test('of two copies one has no long strings and is JSON in the same way as the other', () => {
  const [first, second, third] = ['x'.repeat(5000), `${'y\\n'.repeat(3000)}\\"`, 'é'.repeat(4000)]
  const text = `{"content":["${first}","${second}"],"usage":["${third}","short"],"model":"m"}`
  // The first member is too long even with its strings cut, and what was known of it is forgotten with it.
  for (const [memberBytesMax, brief] of [
    [100_000, '{"content":["",""],"usage":["","short"],"model":"m"}'],
    [10_000, '{"content":null,"usage":["","short"],"model":"m"}'],
  ] as const) {
    for (const size of [1, 1000, text.length * 2]) {
      const condenser = new JsonCondenser(
        { keep: new NameSet(['content', 'usage', 'model']), drop: new NameSet([]) },
        { memberBytesMax },
      )
      const bytes = Buffer.from(text)
      const whole = memberBytesMax === 10_000 ? text.replace(/\[.*?\]/, 'null') : text
      for (const turn of ['first', 'second']) {
        for (let i = 0; i < bytes.length; i += size) {
          const piece = Buffer.from(bytes.subarray(i, i + size))
          condenser.write(piece, 0, piece.length)
        }
        const two = condenser.takeTwo()
        assert.equal(textOf(two.brief), brief, `in pieces of ${size}, the ${turn} time`)
        assert.equal(textOf(two.whole), whole)
      }
    }
  }
})
