// Sound for clients that only check the format: a soft tone as WAV and PCM, silence as MP3. Each format is a head and
// then pieces of a quarter of a second or less, so that an hour of sound takes no memory.

export interface AudioFormat {
  readonly contentType: string
  /** The header that comes before `seconds` of sound. */
  readonly head: (seconds: number) => Buffer
  readonly pieceSeconds: number
  readonly piece: Buffer
}

const pcmBytesPerSecond = 48_000
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

const nothing = (): Buffer => Buffer.alloc(0)

export const audioFormats: ReadonlyMap<string, AudioFormat> = new Map<string, AudioFormat>([
  ['mp3', { contentType: 'audio/mpeg', head: nothing, pieceSeconds: 0.24, piece: mp3Frames }],
  ['wav', { contentType: 'audio/wav', head: wavHead, pieceSeconds, piece: tone }],
  ['pcm', { contentType: 'audio/pcm', head: nothing, pieceSeconds, piece: tone }],
])

/** How many seconds a sound lasts: WAV by its rate, anything else as if it had 128 kbit/s. */
export function audioSeconds(sound: Buffer): number {
  const isWav = sound.toString('latin1', 0, 4) === 'RIFF' && sound.length >= 44
  return isWav ? (sound.length - 44) / Math.max(1, sound.readUInt32LE(28)) : sound.length / 16_000
}
