import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Dollars an hour for a Live session, for which the list has no price yet; an operator can add one. */
export const LIVE_PER_HOUR = 3.6

/** Writes a price file with that price; returns its path. */
export function writeHourlyPrices(): string {
  const rates = { standard: { audio_input_per_hour: String(LIVE_PER_HOUR) } }
  const models = [{ id: 'gpt-live-1', provider: 'openai', mode: 'audio_transcription', rates }]
  const file = join(tmpdir(), `hourly-prices-${randomUUID()}.json`)
  writeFileSync(file, JSON.stringify({ models }))
  return file
}
