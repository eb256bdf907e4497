import assert from 'node:assert/strict'
import { countInputAudio } from '../../src/providers/chat/audio.ts'
import { frames, wav } from '../support/audio-bytes.ts'
import { test } from '../support/suite.ts'

const quantityOf = (file: Buffer) => countInputAudio(null, true, { file, bodyBytes: file.length }, null)

const secondsOf = async (file: Buffer) => Number((await quantityOf(file)).audio_input_milliseconds) / 1_000

/** A file whose header states one sample of 16 kHz. */
function shortFlac(): Buffer {
  const info = Buffer.alloc(34)
  info.writeBigUInt64BE((16_000n << 44n) | (15n << 36n) | 1n, 10)
  return Buffer.concat([
    Buffer.from('fLaC'),
    Buffer.from([0x80, 0, 0, info.length]),
    info,
    Buffer.alloc(2_000_000),
  ])
}

const FILES: Readonly<Record<string, readonly [Buffer, seconds: number]>> = {
  'a WAV of 8 kHz and 8 bit': [wav(20_000, { hz: 8_000, bits: 8 }), 20],
  'a WAV of 48 kHz and two channels': [wav(20_000, { hz: 48_000, channels: 2 }), 20],
  'an MP3 of 8 kbit/s': [frames([0xff, 0xe3, 0x18, 0xc4], 72, 277), 20],
  'an MP3 of 320 kbit/s': [frames([0xff, 0xfb, 0xe4, 0xc4], 960, 833), 20],
  'a compressed file whose header states too short a length, by its bytes': [shortFlac(), 11],
  'an unknown format, as speech of 16 kbit/s': [Buffer.from(`#!AMR\n${'<'.repeat(19_994)}`), 10],
}

for (const [what, [file, seconds]] of Object.entries(FILES))
  test(`the length of ${what}`, async () => assert.equal(await secondsOf(file), seconds))

test('a file that overstates its length has at most what its bytes can hold', async () => {
  const boaster = wav(100, { stated: 500_000_000 })
  assert.ok((await secondsOf(boaster)) <= Math.ceil(boaster.length / 100))
})

async function countTurns<T>(work: Promise<T>): Promise<{ readonly turns: number; readonly result: T }> {
  let turns = 0
  const count = () => {
    turns += 1
    turn = setImmediate(count)
  }
  let turn = setImmediate(count)
  const result = await work
  clearImmediate(turn)
  return { turns, result }
}

const FREE = Buffer.from([0, 0, 0, 8, ...Buffer.from('free')])
const MP4 = Buffer.from([0, 0, 0, 16, ...Buffer.from('ftypM4A '), 0, 0, 0, 0])

test('an audio file with many parts leaves iterations of the event loop to others, and is billed by its bytes', async () => {
  const file = Buffer.concat([MP4, ...Array<Buffer>(150_000).fill(FREE)])
  const { turns, result } = await countTurns(quantityOf(file))
  assert.ok(turns > 100, `${turns}`)
  assert.deepEqual(result, await quantityOf(Buffer.alloc(file.length)))
})

/** MPEG-2 layer III, 8 kbit/s, 24 kHz. */
const FRAME = Buffer.concat([Buffer.from([0xff, 0xf3, 0x14, 0xc4]), Buffer.alloc(20)])

test('an ID3 tag with many frames is skipped, and does not change the length of the audio', async () => {
  const audio = Buffer.concat(Array<Buffer>(1_000).fill(FRAME))
  const tag = Buffer.alloc(512 * 1024, Buffer.from('TIT2\0\0\0\x01\0\0\0', 'latin1'))
  const { length } = tag
  const size = [length >> 21, length >> 14, length >> 7, length].map((part) => part & 0x7f)
  const tagged = Buffer.concat([Buffer.from([...Buffer.from('ID3'), 3, 0, 0, ...size]), tag, audio])
  const { turns, result } = await countTurns(quantityOf(tagged))
  assert.ok(turns < 100, `${turns}`)
  assert.deepEqual(result, await quantityOf(audio))
})
