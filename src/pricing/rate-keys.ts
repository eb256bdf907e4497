import { UNITS, type Unit } from '../kernel/usage.ts'

/** The rate names of price files. A rate without `per` in its name is USD per million tokens. */
export const RATE_KEYS = [
  'input',
  'output',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
  'cache_write_30m',
  'cache_write_12h',
  'audio_input',
  'audio_cache_read',
  'audio_output',
  'image_input',
  'image_cache_read',
  'image_output',
  'input_per_million_characters',
  'audio_input_per_hour',
] as const

export type RateKey = (typeof RATE_KEYS)[number]

/** Tools priced per use or per hour, whatever the model. Replies do not state the hours. */
export const TOOL_KEYS = [
  'web_search_per_1000',
  'web_search_low_per_1000',
  'web_search_medium_per_1000',
  'web_search_high_per_1000',
  'web_fetch_per_1000',
  'file_search_per_1000',
  'code_execution_per_container_hour',
  'code_interpreter_per_session',
  'agent_session_per_hour',
] as const

export type ToolKey = (typeof TOOL_KEYS)[number]

/**
 * - `input` and `output`: a missing rate may be replaced by a higher one of the same side.
 * - `duration`: input audio by length. No other rate is by time, so a missing one has no substitute.
 * - `tool`: priced per use, without tiers and multipliers.
 */
export type Side = 'input' | 'output' | 'duration' | 'tool'

interface UnitPrice {
  /** Null: the cost does not follow from the number of units. */
  readonly key: RateKey | ToolKey | null
  readonly units: bigint
  readonly side: Side
}

const MILLION = 1_000_000n
const THOUSAND = 1_000n
const HOUR_IN_MS = 3_600_000n

export const UNIT_PRICES: Readonly<Record<Unit, UnitPrice>> = {
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
}

const bySide = (side: Side): readonly Unit[] => UNITS.filter((unit) => UNIT_PRICES[unit].side === side)

export const UNITS_OF: Readonly<Record<Side, readonly Unit[]>> = {
  input: bySide('input'),
  output: bySide('output'),
  duration: bySide('duration'),
  tool: bySide('tool'),
}

/** When a price takes effect. A bare date means 00:00 UTC. */
export function instantMs(text: string): number {
  return Date.parse(text.includes('T') ? text : `${text}T00:00:00Z`)
}
