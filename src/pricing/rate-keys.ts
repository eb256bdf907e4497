import { UNITS, type Unit } from '../kernel/usage.ts'

/**
 * - `input` and `output`: a missing rate may be replaced by a higher one of the same side.
 * - `duration`: input audio by its length. A missing rate cannot be replaced, because no other rate is by time.
 * - `tool`: priced by the call, and untouched by tiers and multipliers.
 */
export type Side = 'input' | 'output' | 'duration' | 'tool'

const MILLION = 1_000_000n
const THOUSAND = 1_000n
const HOUR_IN_MS = 3_600_000n

/** A rate without `per` in its name is USD per million tokens. Null `key`: the price does not depend on the number. */
export const UNIT_PRICES = {
  input_tokens: { key: 'input', units: MILLION, side: 'input' },
  cache_read_tokens: { key: 'cache_read', units: MILLION, side: 'input' },
  cache_write_5m_tokens: { key: 'cache_write_5m', units: MILLION, side: 'input' },
  cache_write_1h_tokens: { key: 'cache_write_1h', units: MILLION, side: 'input' },
  cache_write_30m_tokens: { key: 'cache_write_30m', units: MILLION, side: 'input' },
  cache_write_12h_tokens: { key: 'cache_write_12h', units: MILLION, side: 'input' },
  output_tokens: { key: 'output', units: MILLION, side: 'output' },
  audio_input_tokens: { key: 'audio_input', units: MILLION, side: 'input' },
  audio_cache_read_tokens: { key: 'audio_cache_read', units: MILLION, side: 'input' },
  audio_output_tokens: { key: 'audio_output', units: MILLION, side: 'output' },
  image_input_tokens: { key: 'image_input', units: MILLION, side: 'input' },
  image_cache_read_tokens: { key: 'image_cache_read', units: MILLION, side: 'input' },
  image_output_tokens: { key: 'image_output', units: MILLION, side: 'output' },
  web_searches: { key: 'web_search_per_1000', units: THOUSAND, side: 'tool' },
  web_searches_low: { key: 'web_search_low_per_1000', units: THOUSAND, side: 'tool' },
  web_searches_medium: { key: 'web_search_medium_per_1000', units: THOUSAND, side: 'tool' },
  web_searches_high: { key: 'web_search_high_per_1000', units: THOUSAND, side: 'tool' },
  file_searches: { key: 'file_search_per_1000', units: THOUSAND, side: 'tool' },
  containers: { key: 'code_interpreter_per_session', units: 1n, side: 'tool' },
  code_executions: { key: null, units: 1n, side: 'tool' },
  input_characters: { key: 'input_per_million_characters', units: MILLION, side: 'input' },
  audio_input_milliseconds: { key: 'audio_input_per_hour', units: HOUR_IN_MS, side: 'duration' },
} as const satisfies Record<
  Unit,
  { readonly key: string | null; readonly units: bigint; readonly side: Side }
>

/** Models of these modes read and write text. */
export const TEXT_MODES = ['chat', 'responses', 'completion', 'realtime'] as const

type PricedUnit = (typeof UNIT_PRICES)[Unit]
export type RateKey = Exclude<PricedUnit, { side: 'tool' }>['key']

export const UNITS_OF: Readonly<Record<Side, readonly Unit[]>> = {
  input: bySide('input'),
  output: bySide('output'),
  duration: bySide('duration'),
  tool: bySide('tool'),
}

function bySide(side: Side): readonly Unit[] {
  return UNITS.filter((unit) => UNIT_PRICES[unit].side === side)
}
