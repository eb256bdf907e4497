import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AudioClock } from '../../src/metering/audio-clock.ts'
import {
  adts,
  box,
  chunk,
  FTYP,
  flac,
  fragmentedMp4,
  frames,
  id3,
  MP3_FRAME_MS,
  moov,
  mp3,
  oggPage,
  opus,
  programStream,
  u32be,
  vorbis,
  wav,
  webm,
} from '../support/audio-bytes.ts'
import { pieceSizes } from './slices.ts'

/** The clock's answer for bytes that come in pieces that share their memory, which is overwritten after each piece. */
function clockOf(bytes: Buffer, sizes: readonly number[] = [1_000_000], mayBePcm = false): number | null {
  const clock = new AudioClock(mayBePcm)
  const memory = Buffer.alloc(Math.max(...sizes))
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const piece = bytes.subarray(at, at + (sizes[turn % sizes.length] ?? 1))
    memory.set(piece)
    clock.write(memory.subarray(0, piece.length))
    memory.fill(0xff)
    at += piece.length
  }
  assert.equal(clock.bytes, bytes.length)
  return clock.milliseconds
}

const tenths = (count: number) => Array.from({ length: count }, (_, i) => 9 + (i % 5))
const MDAT = box('mdat', Buffer.alloc(5_000, 0xff))

/** Recordings with their length, and by how much the clock may differ, since a last block has no length of its own. */
const recordings: Readonly<Record<string, readonly [Buffer, number, number?]>> = {
  'WAV of 16 kHz, 16 bit, mono': [wav(2_500), 2_500],
  'WAV of 44.1 kHz, 24 bit, stereo': [wav(1_000, { hz: 44_100, bits: 24, channels: 2 }), 1_000],
  'WAV that was written as it went, length 0': [wav(3_000, { stated: 0 }), 3_000],
  'WAV that was written as it went, length open': [wav(3_000, { stated: 0xffffffff }), 3_000],
  'WAV with other chunks around its samples': [
    Buffer.concat([
      wav(700, { before: chunk('LIST', Buffer.alloc(333, 0xff)) }),
      chunk('id3 ', Buffer.alloc(50)),
    ]),
    700,
  ],
  'WAV that is shorter than it says': [wav(1_000, { stated: 5_000_000 }), 1_000],
  'MP3 with a constant bit rate': [mp3(new Array(100).fill(9)), 100 * MP3_FRAME_MS],
  'MP3 with a variable bit rate': [mp3(tenths(100)), 100 * MP3_FRAME_MS],
  'MP3 behind a tag and before one': [
    Buffer.concat([id3(70_000), mp3(tenths(50)), Buffer.from('TAG'), Buffer.alloc(125)]),
    50 * MP3_FRAME_MS,
  ],
  'MP3 with a frame of figures in front': [withFigures(mp3(tenths(50))), 49 * MP3_FRAME_MS],
  'MP3 of MPEG-2 at 24 kHz': [frames([0xff, 0xf3, 0x84, 0xc4], 192, 50), 50 * 24],
  'MP3 of MPEG-2.5 at 8 kHz': [frames([0xff, 0xe3, 0x18, 0xc4], 72, 50), 50 * 72],
  'MPEG-1 layer II': [frames([0xff, 0xfd, 0x84, 0xc4], 384, 50), 50 * 24],
  'MPEG-1 layer I': [frames([0xff, 0xff, 0x44, 0xc4], 128, 50), 50 * 8],
  'two MP3 files in a row': [
    Buffer.concat([id3(30), mp3(tenths(30)), id3(30), mp3(tenths(30))]),
    60 * MP3_FRAME_MS,
  ],
  'MP3 behind some bytes that belong to nothing': [
    Buffer.concat([Buffer.alloc(300, 0xff), mp3(tenths(50))]),
    50 * MP3_FRAME_MS,
    30,
  ],
  'AAC in ADTS': [adts(100), (100 * 1_024) / 24],
  'FLAC that states its length': [flac(3, 441_000), 10_000],
  'FLAC that was written as it went': [flac(200, 0), (200 * 4_096) / 44.1],
  'FLAC behind a tag': [Buffer.concat([id3(100), flac(3, 441_000)]), 10_000],
  'Opus in Ogg': [opus(9), 4_500],
  'Opus that was cut out of a longer stream': [opus(9, { from: 48_000 * 3_600 }), 4_000],
  'two recordings in one Ogg': [Buffer.concat([opus(4), opus(6, { serial: 9 })]), 5_000],
  'Vorbis in Ogg': [vorbis(66_150, 44_100), 1_500],
  'MP4 with its head in front': [Buffer.concat([FTYP, moov({ movieMs: 2_000 }), MDAT]), 2_000],
  'MP4 with its head behind': [Buffer.concat([FTYP, MDAT, moov({ mediaMs: 3_000 })]), 3_000],
  'MP4 with long numbers': [Buffer.concat([FTYP, moov({ mediaMs: 3_000, isLong: true }), MDAT]), 3_000],
  'MP4 whose heads say less than its table of samples': [
    Buffer.concat([
      FTYP,
      moov({
        movieMs: 1,
        table: [
          [100, 960],
          [50, 480],
        ],
      }),
      MDAT,
    ]),
    2_500,
  ],
  'MP4 whose samples stand in a box of open length': [
    Buffer.concat([FTYP, moov({ movieMs: 2_000 }), u32be(0), Buffer.from('mdat'), Buffer.alloc(999)]),
    2_000,
  ],
  'MP4 in fragments that state each sample': [fragmentedMp4(5, 'each'), 5 * 1_024],
  'MP4 in fragments that state one for all': [fragmentedMp4(5, 'default'), 5 * 1_024],
  'MP4 in fragments that state nothing': [fragmentedMp4(5, 'track'), 5 * 1_024],
  'WebM that states its length': [webm({ durationMs: 4_321, clusters: 2 }), 4_321],
  'WebM as a browser records it': [webm({ clusters: 6, isOpen: true }), 6_000, 60],
  'WebM that states less than it has': [webm({ durationMs: 10, clusters: 6 }), 6_000, 60],
  'an MPEG program stream': [programStream(30), 2_900],
}

function withFigures(bytes: Buffer): Buffer {
  bytes.write('Xing', 4 + 17, 'latin1')
  return bytes
}

for (const [name, [bytes, milliseconds, tolerance = 1]] of Object.entries(recordings)) {
  test(`${name} tells how long it is, wherever it is cut`, () => {
    const told = clockOf(bytes)
    assert.ok(told !== null && Math.abs(told - milliseconds) <= tolerance, `${told} of ${milliseconds} ms`)
    fc.assert(
      fc.property(pieceSizes, (sizes) => assert.equal(clockOf(bytes, sizes), told)),
      { numRuns: 15 },
    )
  })
}

test('bare samples are told by whoever says that they are such, and only where they are nothing else', () => {
  const noise = Buffer.from(Array.from({ length: 48_000 }, (_, i) => (i * i * 31 + (i >> 3)) % 251))
  assert.equal(clockOf(noise, [1_000], true), 1_000)
  assert.equal(clockOf(noise), null)
  assert.equal(clockOf(wav(2_500), [1_000], true), 2_500)
})

test('what is no audio tells nothing', () => {
  assert.equal(clockOf(Buffer.from('{"error":"none of it is audio"}')), null)
  assert.equal(clockOf(Buffer.alloc(100_000)), null)
  assert.equal(clockOf(Buffer.from('RIFF')), null)
  assert.equal(clockOf(Buffer.of()), null)
  // A few bytes that look like a frame are none.
  assert.equal(clockOf(Buffer.concat([Buffer.alloc(90_000, 0x55), mp3([9, 9, 9])])), null)
})

test('no bytes make it throw, hang or answer what is no time', () => {
  const starts = Object.values(recordings).map(([bytes]) => bytes)
  const damaged = fc
    .tuple(
      fc.constantFrom(...starts),
      fc.array(fc.tuple(fc.nat(6_000), fc.integer({ min: 0, max: 255 })), { maxLength: 30 }),
      fc.nat(6_000),
    )
    .map(([bytes, changes, cut]) => {
      const copy = Buffer.from(bytes)
      for (const [at, byte] of changes) copy[at % copy.length] = byte
      return copy.subarray(0, copy.length - (cut % copy.length))
    })
  fc.assert(
    fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 3_000 })), pieceSizes, (bytes, sizes) => {
      const told = clockOf(Buffer.from(bytes), sizes)
      assert.ok(told === null || (Number.isFinite(told) && told > 0), String(told))
      assert.equal(clockOf(Buffer.from(bytes)), told)
    }),
    { numRuns: 300 },
  )
})

test('a page of Ogg that lost its mark is stepped over', () => {
  const bytes = Buffer.concat([opus(3), Buffer.from('garbage'), oggPage(7, 312n + 96_000n, Buffer.alloc(9))])
  assert.equal(clockOf(bytes), 2_000)
})
