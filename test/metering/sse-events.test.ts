import assert from 'node:assert/strict'
import fc from 'fast-check'
import { EVENT_BYTES_MAX, SseEvents } from '../../src/metering/sse-events.ts'
import { anyCharacter } from '../support/any-character.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'

interface Seen {
  readonly name: string
  readonly data: string
}

/** All events in these chunks. The bytes to pass on are all of them, since nothing is removed. */
function scan(pieces: readonly Buffer[]): Seen[] {
  const seen: Seen[] = []
  let long: Buffer[] = []
  const events = new SseEvents({
    event(name, data) {
      seen.push({ name, data: data.toString() })
      return 'pass'
    },
    longData: (bytes) => long.push(Buffer.from(bytes)),
    longEvent(name) {
      seen.push({ name, data: Buffer.concat(long).toString() })
      long = []
    },
  })
  const passed: Buffer[] = []
  for (const piece of pieces) {
    const chunk = Buffer.from(piece)
    passed.push(Buffer.from(events.write(chunk) ?? ''))
    // The owner of the chunk may reuse its memory.
    chunk.fill('x')
  }
  passed.push(events.end() ?? Buffer.of())
  assert.deepEqual(Buffer.concat(passed), Buffer.concat(pieces))
  return seen
}

const unnamed = (...data: string[]): Seen[] => data.map((text) => ({ name: '', data: text }))

const examples: readonly (readonly [sentence: string, text: string, seen: readonly Seen[]])[] = [
  ['lines end with LF', 'event: a\ndata: 1\n\ndata: 2\n\n', [{ name: 'a', data: '1' }, ...unnamed('2')]],
  [
    'lines end with CRLF',
    'event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n',
    [{ name: 'a', data: '1' }, ...unnamed('2')],
  ],
  ['lines end with CR', 'event: a\rdata: 1\r\rdata: 2\r\r', [{ name: 'a', data: '1' }, ...unnamed('2')]],
  ['lines end as they like', 'data: 1\r\n\ndata: 2\n\rdata: 3\r\r\n', unnamed('1', '2', '3')],
  ['a byte order mark is part of a field', '\ufeffdata: 1\ndata: 2\n\n', unnamed('2')],
  ['comments say nothing', ': hello\n\n:\ndata: 1\n: data: 2\n\n', unnamed('1')],
  ['data of several lines is joined', 'data: {\ndata:\ndata: }\n\n', unnamed('{\n\n}')],
  ['one space behind the colon does not count', 'data:1\n\ndata:  2\n\n', unnamed('1', ' 2')],
  ['a field may have no colon', 'data\ndata\n\n', unnamed('\n')],
  ['other fields say nothing', 'id: 7\nretry: 3\ndatax: 1\ndat: 2\nevents: e\ndata: 3\n\n', unnamed('3')],
  ['field names are case-sensitive', 'Data: 1\nDATA: 2\n\n', []],
  ['an event without data is ignored', 'event: a\n\nevent: b\nid: 1\n\ndata: 1\n\n', unnamed('1')],
  ['the last name counts', 'event: a\nevent: b\ndata: 1\n\n', [{ name: 'b', data: '1' }]],
  [
    'a name holds for one event',
    'event: a\ndata: 1\n\ndata: 2\n\n',
    [{ name: 'a', data: '1' }, ...unnamed('2')],
  ],
  [
    'the last event may lack its blank line',
    'data: 1\n\nevent: a\ndata: 2\n',
    [...unnamed('1'), { name: 'a', data: '2' }],
  ],
  ['the last line may lack its end', 'data: 1\n\ndata: 2', unnamed('1', '2')],
  ['blank lines may be many', '\n\n\ndata: 1\n\n\n\r\n\ndata: 2\n\n', unnamed('1', '2')],
  ['a line end escaped within data ends no line', 'data: "a\\n\\ndata: 2"\n\n', unnamed('"a\\n\\ndata: 2"')],
  [
    'other control characters end no line',
    'data: a\u0000\u000b\u000c\u0085\u2028b\n\n',
    unnamed('a\u0000\u000b\u000c\u0085\u2028b'),
  ],
]

for (const [sentence, text, seen] of examples) {
  test(`events are found where ${sentence}, in any chunks`, () => {
    const bytes = Buffer.from(text)
    assert.deepEqual(scan([bytes]), seen)
    for (let size = 1; size < Math.min(bytes.length, 16); size++) {
      const pieces: Buffer[] = []
      for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
      assert.deepEqual(scan(pieces), seen, `in pieces of ${size} bytes`)
    }
  })
}

test('an empty chunk between CR and LF does not split the line end', () => {
  const pieces = ['data: 1\r', '', '\ndata: 2\r\n\r', '', '\n'].map((text) => Buffer.from(text))
  assert.deepEqual(scan(pieces), unnamed('1\n2'))
})

test('an overlong event is passed on as it arrives, in any chunks', () => {
  const data = `{"a":"${'x'.repeat(EVENT_BYTES_MAX)}"}`
  const bytes = Buffer.from(`data: 1\n\nevent: long\ndata: ${data}\n\ndata: 2\n\n`)
  const seen = [...unnamed('1'), { name: 'long', data }, ...unnamed('2')]
  for (const size of [1_000, 65_536, EVENT_BYTES_MAX - 1, EVENT_BYTES_MAX + 40, bytes.length]) {
    const pieces: Buffer[] = []
    for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
    assert.deepEqual(scan(pieces), seen, `in pieces of ${size} bytes`)
  }
})

const line = fc.oneof(
  fc.constantFrom(
    'data: {"a":1}',
    'data:',
    'data',
    'event: e',
    ': c',
    '',
    '',
    'id: 1',
    'data:  x',
    '\ufeff',
    'ev',
    'é€😀',
  ),
  fc.string({ unit: anyCharacter, maxLength: 12 }),
)
const ending = fc.constantFrom('\n', '\r', '\r\n')
const stream = fc.array(fc.tuple(line, ending)).map((lines) => Buffer.from(lines.flat().join('')))

test('any bytes give the same events in any chunks', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(200), { maxLength: 12 }), (bytes, cuts) => {
      const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
      const pieces = at.slice(1).map((to, i) => bytes.subarray(at[i], to))
      assert.deepEqual(scan(pieces), scan([bytes]))
    }),
    { numRuns: runs(500) },
  )
})
