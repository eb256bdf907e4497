import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { learnTemplate } from '../../src/metering/event-template.ts'
import { OutputText } from '../../src/metering/output-text.ts'

const noise = new Set(['n', 'pad'])
const path = ['d', 0, 'text']

const eventOf = (text: string, n = 7, pad = 'ab', end = '\n\n'): Buffer =>
  Buffer.from(`event: x\ndata: {"n":${n},"d":[{"text":${JSON.stringify(text)},"i":0}],"pad":"${pad}"}${end}`)

interface Taken {
  readonly behind: number
  readonly texts: readonly string[]
}

/** Learns a template from one event and takes another event, which begins at an odd place in its chunk. */
function learnAndTake(learnt: Buffer, text: string, shown: Buffer, before = 'zz'): Taken | null {
  const output = new OutputText()
  const template = learnTemplate(learnt, { path, text, channel: output.channel('text', 0) }, noise)
  if (template === null) return null
  learnt.fill(0)
  const chunk = Buffer.concat([Buffer.from(before), shown, Buffer.from('after')])
  const words = new DataView(chunk.buffer, chunk.byteOffset, chunk.length)
  const behind = template.take(chunk, words, before.length)
  return { behind: behind < 0 ? behind : behind - before.length, texts: output.delivered().texts() }
}

test('an event that differs in its text and in what says nothing is known, and its text is taken', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: 'grapheme', minLength: 1 }),
      fc.nat(),
      (a, b, n) => {
        const shown = eventOf(b, n, 'x'.repeat(n % 20))
        assert.deepEqual(learnAndTake(eventOf(a), a, shown), { behind: shown.length, texts: [b] })
      },
    ),
  )
})

test('an event that differs in any other byte, or is not all there, is not known', () => {
  const shown = eventOf('text')
  const text = shown.indexOf('"text"', shown.indexOf('"text"') + 6)
  const pad = shown.indexOf('"ab"')
  for (let at = 0; at < shown.length; at++) {
    const isHole = (at > text && at < text + 5) || (at > pad && at < pad + 3) || shown[at] === 0x37
    const changed = Buffer.from(shown)
    changed[at] = shown[at] === 0x35 ? 0x36 : 0x35
    assert.equal(
      learnAndTake(eventOf('other'), 'other', changed)?.behind,
      isHole ? shown.length : -1,
      `byte ${at}`,
    )
    const cut = learnAndTake(eventOf('other'), 'other', shown.subarray(0, at))
    assert.deepEqual(cut, { behind: -1, texts: [] })
  }
})

test('a text that ends early, has a bad escape or a control character is not known', () => {
  const shown = (inside: string): Buffer =>
    Buffer.from(eventOf('text').toString().replace('"text":"text"', `"text":"${inside}"`))
  for (const inside of [
    'a"b',
    'a\\',
    '\\x',
    '\\u12',
    '\\u12g4',
    'a\nb',
    'a\rb',
    'a\tb',
    '"',
    '","i":0}],"d":[{"text":"',
  ]) {
    assert.deepEqual(
      learnAndTake(eventOf('other'), 'other', shown(inside)),
      { behind: -1, texts: [] },
      inside,
    )
  }
  for (const [inside, text] of [
    ['\\n\\"\\\\\\u00e9\\/', '\n"\\é/'],
    ['\\ud83d\\ude00', '😀'],
    ['😀', '😀'],
  ] as const) {
    assert.deepEqual(learnAndTake(eventOf('other'), 'other', shown(inside))?.texts, [text])
  }
})

test('a number that says nothing may have any digits that a number can have, and only those', () => {
  const shown = (n: string): Buffer => Buffer.from(eventOf('text').toString().replace('"n":7', `"n":${n}`))
  for (const n of ['0', '10', '123456789012345']) {
    assert.equal(learnAndTake(eventOf('a'), 'a', shown(n))?.behind, shown(n).length, n)
  }
  for (const n of ['', '01', '00', '-1', '1.5', '1e3', '1234567890123456', 'null', '"7"', '[7]']) {
    assert.equal(learnAndTake(eventOf('a'), 'a', shown(n))?.behind, -1, n)
  }
})

test('lines may end as they like, and no other template is made of an event than one that fits it', () => {
  for (const end of ['\r\n', '\r']) {
    const event = (text: string): Buffer => Buffer.from(eventOf(text).toString().replaceAll('\n', end))
    assert.equal(learnAndTake(event('a'), 'a', event('bc'))?.behind, event('bc').length)
  }
})

test('no template is made of what is not of the kind', () => {
  const learnFrom = (event: string, text = 'a'): Taken | null =>
    learnAndTake(Buffer.from(event), text, eventOf('b'))
  assert.notEqual(learnFrom(eventOf('a').toString()), null)
  assert.equal(learnFrom(eventOf('a').toString(), 'b'), null, 'another text')
  assert.equal(learnFrom('data: {"d":[{"x":"a"}]}\n\n'), null, 'no text at the place')
  assert.equal(learnFrom('data: {"d":[{"text":1}]}\n\n'), null, 'no string at the place')
  assert.equal(learnFrom('data: {"d":[{"text":"a","text":"a"}]}\n\n'), null, 'two texts at the place')
  assert.equal(learnFrom('data: {"d":\ndata: [{"text":"a"}]}\n\n'), null, 'two lines of data')
  assert.equal(learnFrom(`data: {"x":"${'x'.repeat(3000)}","d":[{"text":"a"}]}\n\n`), null, 'too long')
  assert.equal(
    learnFrom(`data: {"x":${'['.repeat(20)}${']'.repeat(20)},"d":[{"text":"a"}]}\n\n`),
    null,
    'too deep',
  )
})

test('names and texts that look like the place are not taken for it', () => {
  const event = (text: string): Buffer =>
    Buffer.from(`data: {"d":[{"a":{"text":"a"},"x":"text","text":"${text}"},{"text":"a"}],"text":"a"}\n\n`)
  assert.deepEqual(learnAndTake(event('a'), 'a', event('bc')), { behind: event('bc').length, texts: ['bc'] })
  const elsewhere = Buffer.from(event('a').toString().replace('"text":"a"}\n', '"text":"b"}\n'))
  assert.equal(learnAndTake(event('a'), 'a', elsewhere)?.behind, -1)
})
