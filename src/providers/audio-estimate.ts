import type { Quantities } from '../kernel/usage.ts'
import { PCM_BYTES_PER_MS } from '../metering/audio-clock.ts'
import type { AudioSeen, Metered } from '../metering/meter.ts'

/**
 * OpenAI documents one token for each 100 ms of audio that a user sends and one for each 50 ms that a model speaks. Its
 * prices a minute agree: gpt-4o-transcribe, "$0.006", is 600 tokens at $6 a million and some 200 of text at $10;
 * gpt-4o-mini-tts, "$0.015", is 1,250 at $12; and 268 s of speech were billed as 5,392 tokens, 20.1 a second.
 */
const HEARD_MS_PER_TOKEN = 100
const SPOKEN_MS_PER_TOKEN = 50

/** 16 kbit/s, a voice note: what an upload of a format that nobody here knows is taken for. Few encode speech in less. */
const UNKNOWN_UPLOAD_BYTES_PER_MS = 2

/**
 * A head may state any length. No byte of audio lasts longer than this, and the hold counts with no more; a minute is
 * believed of any file.
 */
const UPLOAD_MS_PER_BYTE_MOST = 10
const UPLOAD_MS_BELIEVED = 60_000

/** Nobody speaks faster for long: 200 words a minute are 20 characters a second. So much text took so much audio. */
const CHARACTERS_PER_SECOND_MOST = 25

/**
 * Speech whose length its bytes do not tell, because they came as events or are damaged, by the format asked for: MP3
 * as OpenAI sends it (4.3 MB for 268 s), the others at the low end of what is usual for a voice.
 */
const SPOKEN_BYTES_PER_MS: ReadonlyMap<string, number> = new Map([
  ['mp3', 16],
  ['opus', 4],
  ['aac', 8],
  ['flac', 24],
  ['wav', PCM_BYTES_PER_MS],
  ['pcm', PCM_BYTES_PER_MS],
])

/** How long a file of unknown format is taken to be. */
export function assumedUploadMs(bytes: number): number {
  return Math.ceil(bytes / UNKNOWN_UPLOAD_BYTES_PER_MS)
}

/** The longest that a file of so many bytes can say it is. */
export function uploadMsMost(bytes: number): number {
  return Math.max(bytes * UPLOAD_MS_PER_BYTE_MOST, UPLOAD_MS_BELIEVED)
}

/** Tokens of audio that a model speaks. */
export function spokenTokens(milliseconds: number): number {
  return Math.ceil(milliseconds / SPOKEN_MS_PER_TOKEN)
}

/** What came of a speech request, by its length. */
export function countSpoken(audio: AudioSeen | undefined, format: string | null): Quantities {
  if (audio === undefined) return { audio_output_tokens: 0 }
  const bytesPerMs = SPOKEN_BYTES_PER_MS.get(format ?? 'mp3') ?? 16
  return { audio_output_tokens: spokenTokens(audio.milliseconds ?? audio.bytes / bytesPerMs) }
}

/**
 * What a transcription heard: as long as the reply says, else as long as the file is, and then at least up to the last
 * time stamp and as long as it takes to say the text, so that a file that lies about its length is not free.
 */
export function countHeard(
  { audio, output }: Pick<Metered, 'audio' | 'output'>,
  model: string | null,
  fileMs: number,
  tokensMax: number | null,
): Quantities {
  const ms =
    audio?.milliseconds ?? Math.max(fileMs, audio?.leastMilliseconds ?? 0, Math.ceil(spokenMs(output)))
  // Whole seconds, as upstream states them: 8.47 s are stated as 9.
  if (isSoldByDuration(model)) return { audio_input_milliseconds: Math.ceil(ms / 1_000) * 1_000 }
  const tokens = Math.ceil(ms / HEARD_MS_PER_TOKEN)
  return { audio_input_tokens: Math.min(tokens, tokensMax ?? tokens) }
}

function spokenMs(output: Metered['output']): number {
  if (output.keptBytes === 0) return 0
  const kept = output.texts().reduce((sum, text) => sum + text.length, 0)
  return (kept * (output.bytes.text / output.keptBytes) * 1_000) / CHARACTERS_PER_SECOND_MOST
}

/** Models of which the list prices the hour, not the token. */
export function isSoldByDuration(model: string | null): boolean {
  return (
    model !== null && /^(?:whisper-\d+|gpt-transcribe|gpt-live-transcribe|gpt-realtime-whisper)$/.test(model)
  )
}
