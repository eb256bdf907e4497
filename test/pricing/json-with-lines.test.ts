import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readJsonWithLines } from '../../src/pricing/json-with-lines.ts'

test('reads what JSON.parse reads', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.constantFrom(0, 2), (compact, indent) => {
      const text = JSON.stringify(JSON.parse(compact), null, indent)
      const read = readJsonWithLines(text)
      assert.equal(read.kind, 'json')
      assert.deepEqual(JSON.parse(JSON.stringify(read.value)), JSON.parse(text))
    }),
  )
})

test('refuses what JSON.parse refuses, and two equal members beside', () => {
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 3 }),
      fc.nat(),
      fc.constantFrom('"', '}', ',', ' ', '\\', '\u0007', '01'),
      (json, at, noise) => {
        const cut = at % (json.length + 1)
        const text = json.slice(0, cut) + noise + json.slice(cut)
        let parses = true
        try {
          JSON.parse(text)
        } catch {
          parses = false
        }
        const read = readJsonWithLines(text)
        if (!parses) assert.equal(read.kind, 'bad', text)
        else if (read.kind === 'bad') assert.match(read.message, /given twice/, text)
      },
    ),
  )
})

test('knows the line of every member and element, and of the nearest owner of what is missing', () => {
  const read = readJsonWithLines('{\n  "a": [\n    1,\n    {"b":\n      2}\n  ],\n  "c": {}\n}')
  assert.equal(read.kind, 'json')
  const lines: readonly [path: PropertyKey[], line: number][] = [
    [[], 1],
    [['a'], 2],
    [['a', 0], 3],
    [['a', 1], 4],
    [['a', 1, 'b'], 4],
    [['c'], 7],
    [['c', 'missing', 'deeper'], 7],
    [['a', 9], 2],
  ]
  for (const [path, line] of lines) assert.equal(read.lineOf(path), line, path.join('.'))
})

const bad: readonly [text: string, line: number, message: RegExp][] = [
  ['', 1, /ends too early/],
  ['{\n"a": 1,\n}', 3, /member name/],
  ['{\n"a" 1}', 2, /colon/],
  ['[1\n2]', 2, /comma or a closing bracket/],
  ['{"a":1\n"b":2}', 2, /comma or a closing brace/],
  ['{"a":1,\n"a":2}', 2, /"a" is given twice/],
  ['\n\nnope', 3, /not a JSON value/],
  ['{}\n{}', 2, /more after the end/],
  ['["a\nb"]', 1, /does not end/],
  ['[01]', 1, /comma or a closing bracket/],
]
for (const [text, line, message] of bad) {
  test(`refuses ${JSON.stringify(text)} at line ${line}`, () => {
    const read = readJsonWithLines(text)
    assert.equal(read.kind, 'bad')
    assert.equal(read.line, line)
    assert.match(read.message, message)
  })
}

test('a document that is nested without end is refused, not followed', () => {
  const read = readJsonWithLines('['.repeat(100_000))
  assert.equal(read.kind, 'bad')
  assert.match(read.message, /nested deeper/)
})

test('a long string full of escapes is read in one go', () => {
  const read = readJsonWithLines(JSON.stringify('\n"'.repeat(500_000)))
  assert.equal(read.kind, 'json')
  assert.equal(read.value, '\n"'.repeat(500_000))
})

test('a member called __proto__ is a member', () => {
  const read = readJsonWithLines('{"__proto__": {"x": 1}}')
  assert.equal(read.kind, 'json')
  assert.deepEqual(Object.keys(read.value as object), ['__proto__'])
})

test('a byte order mark before the document means nothing', () => {
  assert.equal(readJsonWithLines('\u{feff}{}').kind, 'json')
})
