import assert from 'node:assert/strict'
import { countInputAudio } from '../../src/providers/chat/audio.ts'
import { test } from '../support/suite.ts'

const quantityOf = (file: Buffer) => countInputAudio(null, true, { file, bodyBytes: file.length }, null)

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
