import { audioSecondsMax } from './limits.ts'

/** A sound whose format is not known here is taken for 128 kbit/s. */
const bytesPerSecondGuess = 16_000

/** How many seconds a sound lasts, as far as its head says so: WAV and MP3 by their rate, Ogg by its last page. */
export function audioSeconds(sound: Buffer): number {
  const seconds = wavSeconds(sound) ?? oggSeconds(sound) ?? mp3Seconds(sound)
  return Math.min(audioSecondsMax, seconds ?? sound.length / bytesPerSecondGuess)
}

function wavSeconds(sound: Buffer): number | undefined {
  if (sound.toString('latin1', 0, 4) !== 'RIFF' || sound.length < 44) return undefined
  const bytesPerSecond = sound.readUInt32LE(28)
  const data = sound.indexOf('data', 12, 'latin1')
  if (bytesPerSecond === 0 || data === -1 || data + 8 > sound.length) return undefined
  // A head that was written before the end was known claims more bytes than there are.
  return Math.min(sound.readUInt32LE(data + 4), sound.length - data - 8) / bytesPerSecond
}

function oggSeconds(sound: Buffer): number | undefined {
  if (sound.toString('latin1', 0, 4) !== 'OggS') return undefined
  const last = sound.lastIndexOf('OggS', undefined, 'latin1')
  return last + 14 > sound.length ? undefined : Number(sound.readBigUInt64LE(last + 6)) / 48_000
}

const mpeg1Rates = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const mpeg2Rates = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]

/** The length of an MP3, by the rate of its first frame of layer III. */
function mp3Seconds(sound: Buffer): number | undefined {
  const [first = 0, second = 0, third = 0] = sound
  if (first !== 0xff || (second & 0xe6) !== 0xe2) return undefined
  const rates = (second & 0x18) === 0x18 ? mpeg1Rates : mpeg2Rates
  const kilobits = rates[third >> 4] ?? 0
  return kilobits === 0 ? undefined : (sound.length * 8) / (kilobits * 1_000)
}
