// Sound for clients that only look at the format: a soft tone as WAV and PCM, silence as MP3 and Opus. Each format is
// a head and then pieces of a quarter of a second or less, so that an hour of sound takes no memory.

export interface AudioFormat {
  readonly contentType: string
  /** The header that comes before `seconds` of sound. */
  readonly head: (seconds: number) => Buffer
  readonly pieceSeconds: number
  /** The piece with that number; some formats mark the last piece. */
  readonly piece: (index: number, isLast: boolean) => Buffer
}

export const pcmBytesPerSecond = 48_000
const pieceSeconds = 0.25

/** 24,000 samples a second of 16 bits. A quarter of a second holds 110 whole waves, so pieces join without a click. */
const tone = Buffer.alloc(pcmBytesPerSecond * pieceSeconds)
for (let sample = 0; sample < tone.length / 2; sample += 1) {
  tone.writeInt16LE(Math.round(1_200 * Math.sin((2 * Math.PI * 440 * sample) / 24_000)), sample * 2)
}

function wavHead(seconds: number): Buffer {
  const bytes = Math.ceil(seconds / pieceSeconds) * tone.length
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + bytes, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(24_000, 24)
  head.writeUInt32LE(pcmBytesPerSecond, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36)
  head.writeUInt32LE(bytes, 40)
  return head
}

/** Frames of MPEG-2 layer III, 128 kbit/s, 24 kHz, mono: 384 bytes for 24 ms each, all zero, which is silence. */
const mp3Frames = Buffer.alloc(384 * 10)
for (let at = 0; at < mp3Frames.length; at += 384) mp3Frames.set([0xff, 0xf3, 0xc4, 0xc4], at)

const oggCrc = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte << 24
  for (let bit = 0; bit < 8; bit += 1) sum = (sum << 1) ^ (sum < 0 ? 0x04c11db7 : 0)
  return sum
})

/** A page of an Ogg stream (RFC 3533) with packets of fewer than 255 bytes. `granule` counts samples at 48 kHz. */
function oggPage(flags: number, granule: number, sequence: number, packets: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(27)
  head.write('OggS', 0)
  head[5] = flags
  head.writeBigUInt64LE(BigInt(granule), 6)
  head.writeUInt32LE(0x5117, 14)
  head.writeUInt32LE(sequence, 18)
  head[26] = packets.length
  const page = Buffer.concat([head, Buffer.from(packets.map((packet) => packet.length)), ...packets])
  let sum = 0
  for (const byte of page) sum = (sum << 8) ^ (oggCrc[((sum >>> 24) ^ byte) & 0xff] ?? 0)
  page.writeUInt32LE(sum >>> 0, 22)
  return page
}

function opusHead(): Buffer {
  const id = Buffer.from('OpusHead\x01\x01\x00\x00\xc0\x5d\x00\x00\x00\x00\x00', 'latin1')
  const tags = Buffer.from('OpusTags\x09\x00\x00\x00simulator\x00\x00\x00\x00', 'latin1')
  return Buffer.concat([oggPage(2, 0, 0, [id]), oggPage(0, 0, 1, [tags])])
}

/** 20 ms of silence in the CELT mode (RFC 6716); ten of them make a page. */
const opusSilence = Array.from({ length: 10 }, () => Buffer.from([0xf8, 0xff, 0xfe]))
const samplesPerOpusPage = 9_600

export const audioFormats: ReadonlyMap<string, AudioFormat> = new Map<string, AudioFormat>([
  ['mp3', { contentType: 'audio/mpeg', head: nothing, pieceSeconds: 0.24, piece: () => mp3Frames }],
  [
    'opus',
    {
      contentType: 'audio/opus',
      head: opusHead,
      pieceSeconds: 0.2,
      piece: (index, isLast) =>
        oggPage(isLast ? 4 : 0, (index + 1) * samplesPerOpusPage, index + 2, opusSilence),
    },
  ],
  ['wav', { contentType: 'audio/wav', head: wavHead, pieceSeconds, piece: () => tone }],
  ['pcm', { contentType: 'audio/pcm', head: nothing, pieceSeconds, piece: () => tone }],
])

function nothing(): Buffer {
  return Buffer.alloc(0)
}
