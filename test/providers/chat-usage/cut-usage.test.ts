import assert from 'node:assert/strict'
import { EVENT_BYTES_MAX } from '../../../src/metering/sse-events.ts'
import { test } from '../../support/suite.ts'
import { UsageCutter } from './two-versions.ts'

function through(...chunks: Buffer[]): string {
  const cutter = new UsageCutter()
  const out = chunks.map((chunk) => cutter.write(chunk))
  out.push(cutter.end())
  return Buffer.concat(out.filter((piece) => piece !== null)).toString('latin1')
}

function cut(stream: string, step = stream.length): string {
  const bytes = Buffer.from(stream, 'latin1')
  const count = Math.ceil(bytes.length / step)
  return through(...Array.from({ length: count }, (_, i) => bytes.subarray(i * step, (i + 1) * step)))
}

/** Events as upstream sends them, and as the client gets them; one string if both are equal. */
const EVENTS: Readonly<Record<string, string | readonly [string, string]>> = {
  'the usage chunk': ['data: {"choices":[],"usage":{"total_tokens":3}}\n\n', ''],
  'the same with a blank in its choices': ['data: {"choices":[ ],"usage":{}}\n\n', ''],
  'the same with its members the other way round': ['data: {"usage":{"a":[]},"choices":[]}\n\n', ''],
  'the same with more fields': ['event: x\nid: 1\ndata: {"choices":[],"usage":{}}\nretry: 5\n\n', ''],
  'the same over several lines': ['data: {"choices":\ndata: [],\ndata: "usage":{}}\n\n', ''],
  'a comment before it, already sent': [': c\ndata: {"choices":[],"usage":{}}\n\n', ': c\n'],
  'choices empty, usage null': ['data: {"choices":[],"usage":null}\n\n', 'data: {"choices":[]}\n\n'],
  'choices empty, no usage': 'data: {"choices":[],"prompt_filter_results":["usage"]}\n\n',
  'usage beside choices': ['data: {"choices":[1],"usage":{"a":{}}}\n\n', 'data: {"choices":[1]}\n\n'],
  'usage without choices': ['data: {"id":"x","usage":{"a":1}}\n\n', 'data: {"id":"x"}\n\n'],
  'usage as the first member': ['data: {"usage":null,"id":1}\n\n', 'data: {"id":1}\n\n'],
  'usage as the only member': ['data: {"usage":null}\n\n', 'data: {}\n\n'],
  'blanks everywhere': [
    'data:  { "id" : 1 , "usage" : null , "b" : 2 } \n\n',
    'data:  { "id" : 1 , "b" : 2 } \n\n',
  ],
  'blanks, and usage first': ['data: { "usage" : null , "b" : 2 }\n\n', 'data: { "b" : 2 }\n\n'],
  'blanks, and usage last': ['data: {"id": 1, "usage": null}\n\n', 'data: {"id": 1}\n\n'],
  'no blank behind the colon': ['data:{"id":1,"usage":null}\n\n', 'data:{"id":1}\n\n'],
  'a tab behind the colon': ['data:\t{"id":1,"usage":null}\n\n', 'data:\t{"id":1}\n\n'],
  'usage as text': 'data: {"choices":[{"delta":{"content":"\\"usage\\":null,"}}]}\n\n',
  'usage as text, and as a member': [
    'data: {"a":"\\\\\\",\\"usage\\":null","usage":null,"b":"usage"}\n\n',
    'data: {"a":"\\\\\\",\\"usage\\":null","b":"usage"}\n\n',
  ],
  'usage deeper in': 'data: {"choices":[{"usage":null,"delta":{"usage":{"usage":1}}}]}\n\n',
  'usage deeper in, and as a member': [
    'data: {"choices":[{"usage":null}],"usage":null}\n\n',
    'data: {"choices":[{"usage":null}]}\n\n',
  ],
  'a name with an escape': ['data: {"id":1,"us\\u0061ge":null}\n\n', 'data: {"id":1}\n\n'],
  'a name that is entirely escaped': [
    'data: {"\\u0075\\u0073\\u0061\\u0067\\u0065":{},"\\u0063hoices":[]}\n\n',
    '',
  ],
  'an escaped name that differs from it': 'data: {"\\\\u0075sage":null,"\\u0055sage":1}\n\n',
  'names that only resemble it': 'data: {"Usage":null,"usages":null,"usage ":1,"":2,"xusage":3}\n\n',
  'usage twice, which no server sends': 'data: {"usage":null,"a":1,"usage":{"b":2}}\n\n',
  'two members named choices, the last empty': ['data: {"choices":[1],"choices":[],"usage":{}}\n\n', ''],
  'usage that is a string with braces': [
    'data: {"a":1,"usage":"}\\"]","b":2}\n\n',
    'data: {"a":1,"b":2}\n\n',
  ],
  'a name split by a line end, which is invalid JSON': 'data: {"us\ndata: age":null}\n\n',
  'a named event': ['event: chunk\ndata: {"a":1,"usage":null}\n\n', 'event: chunk\ndata: {"a":1}\n\n'],
  'bytes that are not UTF-8': ['data: {"a":"\xff\xc3","usage":null}\n\n', 'data: {"a":"\xff\xc3"}\n\n'],
  'an error': 'data: {"error":{"message":"usage","usage":null}}\n\n',
  'the end': 'data: [DONE]\n\n',
  'an array': 'data: [{"usage":null}]\n\n',
  'no JSON: a word': 'data: usage\n\n',
  'no JSON: a bare word in it': 'data: {"a":tru,"usage":null}\n\n',
  'no JSON: a comma too many': 'data: {"a":1,"usage":null,}\n\n',
  'no JSON: cut short': 'data: {"a":1,"usage":null\n\n',
  'no JSON: more behind it': 'data: {"a":1,"usage":null}{}\n\n',
  'no JSON: a raw tab in a string': 'data: {"a":"\t","usage":null}\n\n',
  'no JSON: single quotes': "data: {'usage':null}\n\n",
  'not the data field': 'datax: {"usage":null}\ndat: {"usage":null}\nDATA: {"usage":null}\n\n',
  'a field without a colon': 'data {"a":1,"usage":null}\n\n',
  'a field with a blank before the colon': 'data : {"usage":null}\n\n',
  'a comment that looks like data': ':data: {"usage":null}\n\n',
  'empty lines': '\n\n\r\n\r\r\n\n',
  'lines without data': 'event: usage\nid: {"usage":null}\nretry: 1\n\n',
}

for (const [name, event] of Object.entries(EVENTS)) {
  test(`${name}: ${typeof event === 'string' ? 'passes unchanged' : 'loses only its usage'}`, () => {
    const [sent, expected] = typeof event === 'string' ? [event, event] : event
    for (const eol of ['\n', '\r\n', '\r']) {
      const usesOwnEnds = sent.includes('\r')
      if (usesOwnEnds && eol !== '\n') continue
      const withEnds = (text: string): string => (usesOwnEnds ? text : text.replaceAll('\n', eol))
      const around = withEnds('data: {"first":1}\n\n')
      const stream = Buffer.from(`${around}${withEnds(sent)}${around}`, 'latin1')
      const rest = `${around}${withEnds(expected)}${around}`
      for (let at = 0; at < stream.length; at++) {
        const place = `line end ${JSON.stringify(eol)}, cut in two at ${at}`
        assert.equal(through(stream.subarray(0, at), stream.subarray(at)), rest, place)
      }
      for (const step of [1, 2, 3, 7]) {
        assert.equal(
          cut(stream.toString('latin1'), step),
          rest,
          `line end ${JSON.stringify(eol)}, step ${step}`,
        )
      }
    }
  })
}

/** The last bytes of a stream, and what the client gets of them. */
const UNFINISHED: readonly (readonly [string, string])[] = [
  ['data: [DONE]', 'data: [DONE]'],
  ['data: [DO', 'data: [DO'],
  ['data: {"a":1,"usage":null}', 'data: {"a":1}'],
  ['data: {"a":1,"usage":null}\r', 'data: {"a":1}\r'],
  ['data: {"choices":[],"usage":{"a":1}}', ''],
  ['data: {"choices":[],"usage":{"a":1}}\n', ''],
  ['data: {"choices":[],"usage":{"a', ''],
  ['data: {"choices":[],"us', ''],
  ['data: {"choices":[', ''],
  ['data: {"id":"x","obj', ''],
  ['data: ', ''],
  ['dat', ''],
  ['e', ''],
  ['even', ''],
  ['i', ''],
  ['retr', ''],
  ['id: 1\nr', ''],
  ['id: 1\n: c\nev', ''],
  ['evil', 'evil'],
  ['event: chunk\nid: 1\nda', ''],
  ['data: {"choices":[{"delta":{"content":"a', 'data: {"choices":[{"delta":{"content":"a'],
  ['data: {"choices":[{}],"usage":nul', 'data: {"choices":[{}]'],
  ['data: {"choices":[{}],"usage":{"total_tokens":7', 'data: {"choices":[{}]'],
  ['data: {"choices":[{}],"us', 'data: {"choices":[{}]'],
  ['data: {"choices":[{}],', 'data: {"choices":[{}]'],
  ['data: {"choices":[{}],"usage":null,"obfuscation":"a', 'data: {"choices":[{}]'],
  ['data: {"usage":{"a":1},"choices":[{"index":', 'data: {'],
  ['data: {"choices":[{}],"us\\u0061ge":{"a"', 'data: {"choices":[{}]'],
  ['data: {"error":{"message":"no', 'data: {"error":{"message":"no'],
  ['upstream connect error', 'upstream connect error'],
  ['event: x\nsome text\nusage', 'event: x\nsome text\nusage'],
  [': a comm', ': a comm'],
  ['\xef\xbb', '\xef\xbb'],
]

test('a stream that ends within an event passes the rest of it, but never usage', () => {
  for (const [sent, expected] of UNFINISHED) {
    for (const before of ['', 'data: {"first":1}\n\n']) {
      for (const step of [1, 5, 10_000])
        assert.equal(cut(`${before}${sent}`, step), `${before}${expected}`, sent)
    }
  }
})

function said(cutter: UsageCutter, text: string): string | null {
  return cutter.write(Buffer.from(text))?.toString() ?? null
}

test('bytes that cannot need a change do not wait for the end of their event', () => {
  const cutter = new UsageCutter()
  assert.equal(said(cutter, ': keep'), ': keep')
  assert.equal(said(cutter, '-alive'), '-alive')
  assert.equal(said(cutter, '\n'), '\n')
  assert.equal(said(cutter, '\n'), '\n')
  assert.equal(said(cutter, 'data: {"a":1,'), null)
  assert.equal(said(cutter, '"usage":null}\n'), null)
  assert.equal(said(cutter, '\n: x'), 'data: {"a":1}\n\n: x')
  assert.equal(said(cutter, '\ndata: {'), '\n')
  assert.equal(said(cutter, '"usage":null}\r\r'), null, 'a CR at the end waits for its LF')
  assert.equal(said(cutter, '\ndata: {"choices":[],"usage":1}\r\n\r\n'), 'data: {}\r\r\n')
  assert.equal(cutter.end(), null)
})

test('an event longer than the limit passes unchanged, in any chunks', () => {
  const long = `data: {"a":"${'x'.repeat(EVENT_BYTES_MAX)}","usage":null}\n\n`
  const stream = `${long}data: {"a":1,"usage":null}\n\ndata: [DONE]\n\n`
  for (const step of [1_000, 65_536])
    assert.equal(cut(stream, step), `${long}data: {"a":1}\n\ndata: [DONE]\n\n`)
})
