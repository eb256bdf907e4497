/**
 * What is taken of audio whose length nobody states: 128 kbit/s, the usual rate of MP3, is 16 bytes a millisecond,
 * and OpenAI's models hear ten tokens a second.
 */
const BYTES_PER_MILLISECOND = 16
const MILLISECONDS_PER_TOKEN = 100

export function millisecondsIn(audioBytes: number): number {
  return Math.ceil(audioBytes / BYTES_PER_MILLISECOND)
}

export function audioTokensIn(milliseconds: number): number {
  return Math.ceil(milliseconds / MILLISECONDS_PER_TOKEN)
}

/** Models of which the list prices the hour, not the token. */
export function isSoldByDuration(model: string | null): boolean {
  return (
    model !== null && /^(?:whisper-\d+|gpt-transcribe|gpt-live-transcribe|gpt-realtime-whisper)$/.test(model)
  )
}
