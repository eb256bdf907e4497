import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chunksOf, type Event, readFrames, sequenceOf, singleBytes, type WireFrame } from './wire-frames.ts'

/**
 * The cases of the Autobahn test suite for readers of frames, by their numbers. Each expected event is a line: `text`,
 * `binary`, `ping`, `pong` and `close` with their payload, `not_utf8`, or the code of the violation.
 */
type Case = readonly [id: string, frames: readonly WireFrame[], expected: readonly (string | number)[]]

const text = (payload: Buffer | string, fin: 0 | 1 = 1): WireFrame => ({ opcode: 1, payload, fin })
const more = (payload: Buffer | string, fin: 0 | 1 = 1): WireFrame => ({ opcode: 0, payload, fin })
const ping = (payload: Buffer | string = ''): WireFrame => ({ opcode: 9, payload })
const pong = (payload: Buffer | string = ''): WireFrame => ({ opcode: 10, payload })
const close = (code: number, reason: Buffer | string = ''): WireFrame => ({
  opcode: 8,
  payload: Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]),
})

const NAMES: Readonly<Record<number, string>> = { 1: 'text', 2: 'binary', 8: 'close', 9: 'ping', 10: 'pong' }

function lineOf(event: Event): string {
  return event.kind === 'unreadable'
    ? event.why
    : `${NAMES[event.opcode]} ${event.payload.toString('latin1')}`
}

const latin1 = (payload: Buffer | string): string => Buffer.from(payload).toString('latin1')

/** Tries each case from either side, and in chunks of every kind. */
function tryCases(cases: readonly Case[]): void {
  for (const [id, frames, expected] of cases) {
    for (const from of ['client', 'server'] as const) {
      const bytes = sequenceOf(from, frames)
      const cuts = Array.from({ length: bytes.length / 997 }, (_, i) => (i + 1) * 997)
      for (const chunks of [
        [bytes],
        chunksOf(bytes, cuts),
        bytes.length < 5_000 ? singleBytes(bytes) : [bytes],
      ]) {
        const { events, violation } = readFrames(chunks, from)
        const found = [...events.map(lineOf), ...(violation === null ? [] : [violation.closeCode])]
        assert.deepEqual(found, expected, `case ${id} from a ${from} in ${chunks.length} chunks`)
      }
    }
  }
}

test('1: messages of every form of length', () =>
  tryCases(
    [0, 125, 126, 127, 128, 65_535, 65_536].flatMap((bytes, i): Case[] => {
      const star = '*'.repeat(bytes)
      const raw = Buffer.alloc(bytes, 0xfe)
      return [
        [`1.1.${i + 1}`, [text(star)], [`text ${star}`]],
        [`1.2.${i + 1}`, [{ opcode: 2, payload: raw }], [`binary ${latin1(raw)}`]],
      ]
    }),
  ))

test('2: pings and pongs, of 125 bytes at most', () => {
  const raw = Buffer.from([0x00, 0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0x00, 0xff])
  const long = Buffer.alloc(125, 0xfe)
  const ten = Array.from({ length: 10 }, (_, i) => `payload-${i}`)
  return tryCases([
    ['2.1', [ping()], ['ping ']],
    ['2.2', [ping('Hello, world!')], ['ping Hello, world!']],
    ['2.3', [ping(raw)], [`ping ${latin1(raw)}`]],
    ['2.4', [ping(long)], [`ping ${latin1(long)}`]],
    ['2.5', [ping(Buffer.alloc(126, 0xfe))], [1002]],
    ['2.7', [pong()], ['pong ']],
    ['2.8', [pong('unsolicited')], ['pong unsolicited']],
    ['2.9', [pong('unsolicited'), ping('ping')], ['pong unsolicited', 'ping ping']],
    ['2.10', ten.map(ping), ten.map((payload) => `ping ${payload}`)],
  ])
})

test('3: reserved bits', () =>
  tryCases(
    [1, 2, 3, 4, 5, 6, 7].flatMap((rsv): Case[] =>
      [1, 2, 8, 9, 10].map((opcode) => [
        `3.${rsv}`,
        [text('good'), { opcode, rsv, payload: opcode === 8 ? '' : 'bad' }, ping()],
        ['text good', 1002],
      ]),
    ),
  ))

test('4: reserved opcodes', () =>
  tryCases(
    [3, 4, 5, 6, 7, 11, 12, 13, 14, 15].flatMap((opcode): Case[] => [
      [`4 ${opcode}`, [{ opcode }], [1002]],
      [`4 ${opcode}, between`, [text('a'), { opcode, payload: 'x' }, ping()], ['text a', 1002]],
    ]),
  ))

test('5: fragments, and control frames between them', () =>
  tryCases([
    ['5.1', [{ opcode: 9, fin: 0, payload: 'f1' }, more('f2')], [1002]],
    ['5.2', [{ opcode: 10, fin: 0, payload: 'f1' }, more('f2')], [1002]],
    ['5.3', [text('f1', 0), more('f2')], ['text f1f2']],
    ['5.6', [text('f1', 0), ping('p'), more('f2')], ['ping p', 'text f1f2']],
    ['5.9', [more('x'), text('Hello')], [1002]],
    ['5.12', [more('x', 0), text('Hello')], [1002]],
    ['5.15', [text('f1', 0), more('f2'), more('f3', 0), text('f4')], ['text f1f2', 1002]],
    ['5.17', [more('f1'), text('f2', 0), more('f3')], [1002]],
    ['5.18', [text('f1', 0), text('f2')], [1002]],
    ['5.18 binary', [{ opcode: 2, fin: 0, payload: 'f1' }, text('f2')], [1002]],
    [
      '5.19',
      [text('f1', 0), more('f2', 0), ping('p1'), more('f3', 0), more('f4', 0), ping('p2'), more('f5')],
      ['ping p1', 'ping p2', 'text f1f2f3f4f5'],
    ],
    [
      '5, one after the other',
      [text('f1', 0), more('', 0), more('f2'), text('f3')],
      ['text f1f2', 'text f3'],
    ],
    ['5, close between', [text('f1', 0), close(1000), more('f2')], ['close \x03\xe8']],
  ]))

/** Texts as Markus Kuhn collected them, with the numbers of the suite. */
const VALID_UTF8 = [
  'ce ba e1 bd b9 cf 83 ce bc ce b5', // 6.2
  '00',
  'c2 80',
  'e0 a0 80',
  'f0 90 80 80', // 6.6
  '7f',
  'df bf',
  'ef bf bf',
  'f4 8f bf bf', // 6.7, 6.9
  'ed 9f bf',
  'ee 80 80',
  'ef bf bd', // 6.9
  'ef bf be',
  'f0 9f bf be', // 6.22
  'ef bb bf', // 6.23, a byte order mark
]
const INVALID_UTF8 = [
  'ce ba e1 bd b9 cf 83 ce bc ce b5 ed a0 80 65 64 69 74 65 64', // 6.3
  'ce ba e1 bd b9 cf 83 ce bc ce b5 f4 90 80 80', // 6.4
  'ce',
  'ce ba e1',
  'ce ba e1 bd', // 6.6
  'f8 88 80 80 80',
  'fc 84 80 80 80 80', // 6.8
  'f7 bf bf bf',
  'fb bf bf bf bf',
  'fd bf bf bf bf bf', // 6.10
  'f4 90 80 80', // 6.11
  '80',
  'bf',
  '80 bf',
  '80 bf 80 bf 80 bf', // 6.12
  'c0 20 c1 20 df 20',
  'e0 20 ef 20',
  'f0 20 f7 20', // 6.13
  'c0',
  'e0 80',
  'f0 80 80',
  'f8 80 80 80',
  'df',
  'ef bf', // 6.14
  'fe',
  'ff',
  'fe fe ff ff', // 6.16
  'c0 af',
  'e0 80 af',
  'f0 80 80 af', // 6.17
  'c1 bf',
  'e0 9f bf',
  'f0 8f bf bf', // 6.18
  'c0 80',
  'e0 80 80',
  'f0 80 80 80', // 6.19
  'ed a0 80',
  'ed af bf',
  'ed b0 80',
  'ed bf bf', // 6.20
  'ed a0 80 ed b0 80',
  'ed af bf ed bf bf', // 6.21
]

test('6: text that is UTF-8 and text that is not, whole and in fragments of a byte', () => {
  function casesOf(hex: string, isValid: boolean): Case[] {
    const payload = Buffer.from(hex.replaceAll(' ', ''), 'hex')
    const bytes = [...payload].map((byte) => Buffer.from([byte]))
    const fragments = bytes.map((byte, i) => (i === 0 ? text(byte, 0) : more(byte, 0)))
    const line = isValid ? `text ${latin1(payload)}` : 'not_utf8'
    return [
      [`6 ${hex}`, [text(payload), text('next')], [line, 'text next']],
      [`6 ${hex}, in fragments`, [...fragments, more('')], [line]],
      [`6 ${hex}, binary`, [{ opcode: 2, payload }], [`binary ${latin1(payload)}`]],
    ]
  }
  return tryCases([
    ['6.1.1', [text('')], ['text ']],
    ['6.1.2', [text('', 0), more('', 0), more('')], ['text ']],
    ['6.1.3', [text('', 0), more('middle', 0), more('')], ['text middle']],
    ...VALID_UTF8.flatMap((hex) => casesOf(hex, true)),
    ...INVALID_UTF8.flatMap((hex) => casesOf(hex, false)),
  ])
})

test('7: closing, its codes and reasons, and that nothing is read behind it', () => {
  const valid = [
    1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
  ]
  const invalid = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535]
  const bye = 'close \x03\xe8'
  const large = '*'.repeat(256 * 1024)
  return tryCases([
    ['7.1.1', [text('Hello'), close(1000)], ['text Hello', bye]],
    ['7.1.2', [close(1000), close(1000)], [bye]],
    ['7.1.3', [close(1000), ping()], [bye]],
    ['7.1.4', [close(1000), text('Hello')], [bye]],
    ['7.1.5', [text('f1', 0), close(1000), more('f2')], [bye]],
    ['7.1.6', [text(large), text('Hello'), close(1000), ping()], [`text ${large}`, 'text Hello', bye]],
    ['7.3.1', [{ opcode: 8 }], ['close ']],
    ['7.3.2', [{ opcode: 8, payload: 'a' }], [1002]],
    ['7.3.3', [close(1000)], [bye]],
    ['7.3.4', [close(1000, 'Hello')], [`${bye}Hello`]],
    ['7.3.5', [close(1000, '*'.repeat(123))], [bye + '*'.repeat(123)]],
    ['7.3.6', [close(1000, '*'.repeat(124))], [1002]],
    ['7.5.1', [close(1000, Buffer.from('cebae1bdb9cf83cebcceb5eda080656469746564', 'hex')), ping()], [1007]],
    ...valid.map(
      (code): Case => [
        `7.7 ${code}`,
        [close(code)],
        [`close ${latin1(Buffer.from([code >> 8, code & 255]))}`],
      ],
    ),
    ...invalid.flatMap((code): Case[] => [
      [`7.9 ${code}`, [close(code)], [1002]],
      [`7.9 ${code}, with a reason`, [close(code, 'Hello')], [1002]],
    ]),
  ])
})

test('9: large messages, whole and in many fragments', () => {
  const sizes = [64 * 1024, 256 * 1024, 1024 * 1024, 4 * 1024 * 1024]
  const fragmentSizes = [64, 256, 1024, 4096, 65_536]
  const MiB = '{"text":"*"}'.repeat(2 ** 20 / 12)
  const inFragments = fragmentSizes.map((bytes): Case => {
    const fragments = chunksOf(
      Buffer.from(MiB),
      Array.from({ length: MiB.length / bytes }, (_, i) => (i + 1) * bytes),
    )
    const last = fragments.length - 1
    const frames = fragments.map((fragment, i) => (i === 0 ? text : more)(fragment, i === last ? 1 : 0))
    return [`9.3, of ${bytes}`, frames, [`text ${MiB}`]]
  })
  const whole = sizes.map((bytes): Case => {
    const payload = Buffer.alloc(bytes, 'BAsd7&jh23')
    return [`9.1, of ${bytes}`, [text(payload)], [`text ${latin1(payload)}`]]
  })
  return tryCases([...whole, ...inFragments])
})
