import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Dollars an hour for what the list has no price for yet, as an operator can add them. */
export const LIVE_PER_HOUR = 3.6
export const TRANSLATION_PER_HOUR = 2.04

/** A price file with them. */
export function writeHourlyPrices(): string {
  const models = [
    { id: 'gpt-live-1', rates: { standard: { audio_input_per_hour: String(LIVE_PER_HOUR) } } },
    {
      id: 'gpt-realtime-translate',
      rates: { standard: { audio_input_per_hour: String(TRANSLATION_PER_HOUR) } },
    },
  ].map((model) => ({ provider: 'openai', mode: 'audio_transcription', ...model }))
  const file = join(tmpdir(), `hourly-prices-${randomUUID()}.json`)
  writeFileSync(file, JSON.stringify({ models }))
  return file
}
