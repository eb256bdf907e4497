import assert from 'node:assert/strict'
import { capturing } from '../../src/metering/json-place.ts'
import type { JsonMember, JsonScan, JsonScanLimits } from '../../src/metering/json-scan.ts'
import { JsonWalker, scanJson } from '../../src/metering/json-walker.ts'
import { test } from '../support/suite.ts'
import { inPieces } from './slices.ts'

const NAMES = ['model', 'stream', 'max_tokens', 'tools', '__proto__'] as const
type Name = (typeof NAMES)[number]
const PLACE = capturing(NAMES)

/** The answer for the whole text, which must also be the answer for single bytes and for pieces of seven. */
function scan(text: string | Uint8Array, limits: Partial<JsonScanLimits> = {}): JsonScan<Name> {
  const bytes = Buffer.from(text)
  const whole = scanJson(bytes, NAMES, limits)
  assert.deepEqual(inPieces(new JsonWalker(PLACE, { limits }), bytes, [1]), whole)
  assert.deepEqual(inPieces(new JsonWalker(PLACE, { limits }), bytes, [7]), whole)
  return whole
}

function found(
  text: string | Uint8Array,
  limits: Partial<JsonScanLimits> = {},
): Extract<JsonScan<Name>, { kind: 'object' }> {
  const answer = scan(text, limits)
  assert(answer.kind === 'object', `${answer.kind === 'unreadable' && answer.reason}: ${text}`)
  return answer
}

function member(text: string, name: Name = 'model'): JsonMember | undefined {
  return found(text).members.get(name)
}

function assertUnreadable(text: string | Uint8Array, reason: string, at: number): void {
  assert.deepEqual(scan(text), { kind: 'unreadable', reason, at }, Buffer.from(text).toString())
}

test('each kind of value is found with its meaning and its place', () => {
  const text =
    ' {"tools" : [1, {"model":2}] ,"model":"a\\u00e9","max_tokens":1.50e2,"stream":true,"__proto__":null}'
  const { members } = found(text)
  assert.deepEqual(
    [...members],
    [
      ['tools', { kind: 'array', json: '[1, {"model":2}]', nameStart: 2, start: 12, end: 28 }],
      ['model', { kind: 'string', value: 'a\u00e9', nameStart: 30, start: 38, end: 47 }],
      ['max_tokens', { kind: 'number', value: 150, raw: '1.50e2', nameStart: 48, start: 61, end: 67 }],
      ['stream', { kind: 'boolean', value: true, nameStart: 68, start: 77, end: 81 }],
      ['__proto__', { kind: 'null', nameStart: 82, start: 94, end: 98 }],
    ],
  )
})

test('a number keeps the text that its value cannot tell', () => {
  for (const raw of ['9223372036854775808', '9007199254740993', '-1', '1.0', '1e308', '1e400', '-0', '0.1']) {
    const number = member(`{"model":${raw}}`)
    assert(number?.kind === 'number')
    assert.equal(number.raw, raw)
    assert.equal(number.value, Number(raw))
  }
})

test('a member can be inserted before objectEnd', () => {
  for (const text of ['{}', ' {\n} ', '{"a":1}', '{"a":{"b":[]}\n}\n', '{"a":"}"  }']) {
    const { objectEnd, empty } = found(text)
    const longer = `${text.slice(0, objectEnd)}${empty ? '' : ','}"added":true${text.slice(objectEnd)}`
    assert.deepEqual(JSON.parse(longer), { ...JSON.parse(text), added: true })
  }
})

test('names are compared after their escapes are decoded', () => {
  for (const name of ['mod\\u0065l', '\\u006d\\u006f\\u0064\\u0065\\u006C', 'm\\u006Fdel']) {
    assert.equal(member(`{"${name}":"x"}`)?.kind, 'string', name)
  }
  assert.equal(scanJson(Buffer.from('{"\\ud83d\\ude00":1}'), ['😀']).kind === 'object', true)
  assert.equal(member('{"mod\\\\u0065l":"x","\\/model":1,"model\\n":2}'), undefined)
})

test('a name that occurs twice is reported, and its first value is kept', () => {
  const twice = found('{"model":"a","stream":true,"mod\\u0065l":"b","model":{"c":1},"x":1,"x":2}')
  assert.deepEqual(twice.duplicates, ['model'])
  const first = twice.members.get('model')
  assert(first?.kind === 'string')
  assert.equal(first.value, 'a')
})

test('members of nested values and text in strings are not found', () => {
  for (const text of [
    '{"a":{"model":"x"}}',
    '{"a":[{"model":"x"},{"a":{"model":1}}]}',
    '{"a":"\\",\\"model\\":\\"x"}',
    '{"a":"{\\"model\\":1}","b":"model","c":["model",":",1]}',
    `{"a":"${'\\\\'.repeat(300)}\\",\\"model\\":\\"x"}`,
  ]) {
    assert.equal(member(text), undefined, text)
  }
})

test('a long string ends at its own quote, wherever escapes fall in it', () => {
  for (let length = 230; length < 300; length++) {
    const run = 'x'.repeat(length)
    for (const inside of [
      `${run}\\"`,
      `${run}\\\\`,
      `${run}\\\\\\"`,
      `${run}\\u0022y`,
      `${run}${run}\\"${run}`,
      `${run}€`,
    ]) {
      const model = member(`{"a":"${inside}","b":["${inside}"],"model":"m"}`)
      assert(model?.kind === 'string', inside)
      assert.equal(model.value, 'm')
    }
  }
})

test('texts that are not JSON are refused where they cease to be', () => {
  const cases: [text: string, at: number][] = [
    ['{model:1}', 1],
    ["{'model':1}", 1],
    ['{"model"=1}', 8],
    ['{"model":}', 9],
    ['{"model":x}', 9],
    ['{"model":1,}', 11],
    ['{,"model":1}', 1],
    ['{"model":1 "stream":2}', 11],
    ['{"model" "x"}', 9],
    ['{"model":"a\nb"}', 11],
    ['{"mo\tdel":1}', 4],
    ['{"model":"\\x"}', 11],
    ['{"model":"\\u12"}', 14],
    ['{"a":"\\u","model":"x"}', 8],
    ['{"a":["\\ua"]}', 10],
    ['{"a":["\\q"]}', 8],
    ['{"model":01}', 10],
    ['{"model":-}', 10],
    ['{"model":+1}', 9],
    ['{"model":1.}', 11],
    ['{"model":.5}', 9],
    ['{"model":1e}', 11],
    ['{"model":0x1}', 10],
    ['{"model":NaN}', 9],
    ['{"model":True}', 9],
    ['{"model":truee}', 13],
    ['{"model":nul}', 12],
    ['{"a":[1}', 7],
    ['{"a":{"b":1]}', 11],
    ['{"a":[1,]}', 8],
    ['{"a":[,1]}', 6],
    ['{"a":[1 2]}', 8],
    ['{"a":[01]}', 7],
    ['{"a":{"b"}}', 9],
    ['{"a":{"b":1,}}', 12],
    ['{"a":{,}}', 6],
    ['{"a":["x"}', 9],
    ['{"a":[[]}', 8],
    ['{"a":[}', 6],
    ['{"a":{"b":"x"]', 13],
    ['{"a":{]', 6],
    ['{"a":1]', 6],
    ['{"a":{1:2}}', 6],
    ['{"a":[/*"*/1]}', 6],
    ['{"a":[\'"\']}', 6],
    ['{"a":1//\n}', 6],
    ['{"a":1\f}', 6],
    ['{"a":1\u00a0}', 6],
    ['{"a":1\0}', 6],
    ['#{}', 0],
    [' \ufeff{}', 1],
    ['\u00a0{}', 0],
  ]
  for (const [text, at] of cases) {
    assert.throws(() => JSON.parse(text), text)
    assertUnreadable(text, 'not_json', at)
  }
})

test('a text that is no object, or more than one, or not yet one, is told apart', () => {
  for (const text of ['', ' ', '\n\t\r ']) assertUnreadable(text, 'empty', text.length)
  for (const text of ['[]', '"model"', '1', '-1', 'true', 'false', 'null'])
    assertUnreadable(text, 'not_an_object', 0)
  for (const text of [
    '{',
    '{"model',
    '{"model"',
    '{"model":',
    '{"model":1',
    '{"model":[{}',
    '{"a":"\\',
    '{"a":"\\u00',
  ]) {
    assertUnreadable(text, 'truncated', text.length)
  }
  for (const rest of ['{}', 'x', '}', ',', '\0', '{"model":1}', '\ufeff']) {
    assertUnreadable(`{"model":"m"} ${rest}`, 'trailing_bytes', 14)
  }
})

test('bytes that are not UTF-8 are refused anywhere, and a byte order mark too', () => {
  const inString = (...bytes: number[]) =>
    Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')])
  assertUnreadable(inString(0xff), 'not_utf8', 6)
  assertUnreadable(inString(0x80), 'not_utf8', 6)
  assertUnreadable(inString(0xc0, 0xad), 'not_utf8', 6)
  assertUnreadable(inString(0xed, 0xa0, 0x80), 'not_utf8', 7)
  assertUnreadable(inString(0xe2, 0x82), 'not_utf8', 8)
  assertUnreadable(inString(0xf4, 0x90, 0x80, 0x80), 'not_utf8', 7)
  assertUnreadable(Buffer.from('{"mo\xffdel":1}', 'latin1'), 'not_utf8', 4)
  assertUnreadable(Buffer.from('{"model":1}', 'utf16le'), 'not_json', 1)
  assertUnreadable('\ufeff{"model":1}', 'byte_order_mark', 0)
  assertUnreadable(Buffer.from([0xff, 0xfe, 0x7b, 0]), 'not_utf8', 0)
  assertUnreadable(Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xe2, 0x82])]), 'truncated', 8)
})

test('of two faults the first counts, however near they are', () => {
  assertUnreadable(Buffer.concat([Buffer.from('{"a" 1,"'), Buffer.from([0xff])]), 'not_json', 5)
  assertUnreadable(
    Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('" 1')]),
    'not_utf8',
    6,
  )
})

test('a name that some parsers take for a watched one makes the body unreadable', () => {
  for (const name of [
    'Model',
    'MODEL',
    '\u017ftream',
    'Stream',
    'max_to\u212aens',
    '__PROTO__',
    'mod\\u0045l',
  ]) {
    assert.equal(kindOf(`{"${name}":"x","a":1}`), 'ambiguous_name', name)
  }
  for (const name of ['model\\u0000', '\\u0000', 'mo\\ud800del', '\\udc00']) {
    assert.equal(kindOf(`{"${name}":"x"}`), 'ambiguous_name', name)
  }
  for (const name of ['models', 'mode', ' model', 'modèl', 'Messages', '\\ud83d\\ude00', 'm\u043edel']) {
    assert.equal(kindOf(`{"${name}":"x"}`), 'object', name)
  }
  assert.equal(kindOf('{"a":{"Model":"x"}}'), 'object')
})

function kindOf(text: string): string {
  const answer = scan(text)
  return answer.kind === 'object' ? 'object' : answer.reason
}

test('control characters are refused in watched members, and in others move nothing', () => {
  assertUnreadable('{"tools":[{"a":"x\u0001"}]}', 'not_json', 17)
  assertUnreadable('{"tools":[{"a\n":"x"}]}', 'not_json', 13)
  for (let control = 0; control < 0x20; control++) {
    for (const before of ['', 'x', 'xx', 'xxx', 'x'.repeat(8), 'x'.repeat(300)]) {
      const inside = `${before}${String.fromCharCode(control)}yyyyyyyy`
      assertUnreadable(`{"model":"${inside}"}`, 'not_json', 10 + before.length)
      assertUnreadable(`{"${inside}":1}`, 'not_json', 2 + before.length)
    }
  }
  for (const length of [0, 3, 255, 256, 257, 700]) {
    const model = member(`{"a":["${'x'.repeat(length)}\n\0\u001f\\"${'y'.repeat(length)}"],"model":"m"}`)
    assert(model?.kind === 'string')
    assert.equal(model.value, 'm')
  }
})

test('a lone surrogate in a value stays what it is', () => {
  const model = member('{"model":"gpt\\ud800"}')
  assert(model?.kind === 'string')
  assert.equal(model.value, 'gpt\ud800')
})

test('nesting is counted from the top-level object and bounded without recursion', () => {
  const nested = (depth: number) => {
    const half = (depth - 1) >> 1
    const [open, close] = depth % 2 === 0 ? ['[', ']'] : ['', '']
    return `{"model":"m","a":${'[{"b":'.repeat(half)}${open}1${close}${'}]'.repeat(half)}}`
  }
  for (const depth of [510, 511, 512]) assert.equal(scan(nested(depth)).kind, 'object', `${depth}`)
  for (const depth of [513, 514]) assert.equal(kindOf(nested(depth)), 'too_deep', `${depth}`)
  assertUnreadable(`{"a":${'['.repeat(100_000)}`, 'too_deep', 5 + 511)
  assert.equal(scan('{"a":{"b":[]}}', { depthMax: 3 }).kind, 'object')
  assert.deepEqual(scan('{"a":{"b":[[]]}}', { depthMax: 3 }), {
    kind: 'unreadable',
    reason: 'too_deep',
    at: 11,
  })
})

test('a document may be as long as its limit and no longer', () => {
  assert.equal(scan('{"model":1}', { documentBytesMax: 11 }).kind, 'object')
  const tooLarge = { kind: 'unreadable', reason: 'too_large', at: 11 }
  assert.deepEqual(scan('{"model":1} ', { documentBytesMax: 11 }), tooLarge)
  assert.deepEqual(scan('{"model":123}', { documentBytesMax: 11 }), tooLarge)
})

test('a value longer than its limit is known by its type and place alone', () => {
  for (const [type, short, long] of [
    ['string', '"\u00e4bcd"', '"\u00e4bcde"'],
    ['number', '1234567', '12345678'],
    ['array', '[1,2,3]', '[1,2,34]'],
    ['object', '{"a":1}', '{"a":12}'],
  ] as const) {
    const limits = { captureBytesMax: 7 }
    assert.equal(found(`{"model":${short}}`, limits).members.get('model')?.kind, type)
    const end = 9 + Buffer.byteLength(long)
    const expected = { kind: 'too_long', type, nameStart: 1, start: 9, end }
    assert.deepEqual(found(`{"model":${long},"stream":null}`, limits).members.get('model'), expected)
    assert.equal(found(`{"model":${long},"stream":null}`, limits).members.get('stream')?.kind, 'null')
  }
  assert.equal(found('{"model":false}', { captureBytesMax: 0 }).members.get('model')?.kind, 'boolean')
})

test('names and their number are bounded', () => {
  assert.equal(scan('{"abcd":1,"model":1}', { nameBytesMax: 5 }).kind, 'object')
  const tooLong = { kind: 'unreadable', reason: 'name_too_long', at: 8 }
  assert.deepEqual(scan('{"abcdef":1}', { nameBytesMax: 5 }), tooLong)
  assert.equal(
    scan('{"a":{"abcdef":{"g":1,"h":2,"i":3}}}', { nameBytesMax: 5, membersMax: 1 }).kind,
    'object',
  )
  assert.equal(scan('{"a":1,"b":1}', { membersMax: 2 }).kind, 'object')
  const tooMany = { kind: 'unreadable', reason: 'too_many_members', at: 13 }
  assert.deepEqual(scan('{"a":1,"b":1,"c":1}', { membersMax: 2 }), tooMany)
})

test('what follows a fault is not looked at, and what follows the end is another text', () => {
  const scanner = new JsonWalker(PLACE)
  scanner.write(Buffer.from('{]'))
  scanner.write(Buffer.alloc(1 << 20, '{'))
  assert.deepEqual(scanner.end(), { kind: 'unreadable', reason: 'not_json', at: 1 })
  assert.deepEqual(scanner.end(), { kind: 'unreadable', reason: 'not_json', at: 1 })
  scanner.write(Buffer.from('{"model":"m"}'))
  const next = scanner.end()
  assert(next.kind === 'object')
  assert.equal(next.members.get('model')?.kind, 'string')
})

test('empty chunks and views into larger memory are read like any other', () => {
  const scanner = new JsonWalker(PLACE)
  const memory = Buffer.from('xxx{"model":"m"}yyy')
  scanner.write(Buffer.alloc(0))
  scanner.write(memory.subarray(3, 10))
  scanner.write(Buffer.alloc(0))
  scanner.write(memory.subarray(10, 16))
  const answer = scanner.end()
  assert(answer.kind === 'object')
  assert.deepEqual(answer.members.get('model'), {
    kind: 'string',
    value: 'm',
    nameStart: 1,
    start: 9,
    end: 12,
  })
})
