/**
 * - `input` and `output`: a missing rate may be replaced by a higher one of the same side.
 * - `duration`: input audio by its length. A missing rate cannot be replaced, because no other rate is by time.
 * - `tool`: priced by the call, and untouched by tiers and multipliers.
 */
export type Side = 'input' | 'output' | 'duration' | 'tool'

const MILLION = 1_000_000n
const THOUSAND = 1_000n
const HOUR_IN_MS = 3_600_000n

/**
 * The units of usage. Each token is counted in exactly one unit, however many totals and details upstream reports. Details
 * of output (reasoning, thinking, predictions) are part of `output_tokens` and not units.
 *
 * `key` names the rate in price files, in USD for this number of units; a key without `per` is per million tokens. Null:
 * the price does not depend on the number.
 */
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
  /** Searches whose price depends on the `search_context_size` of the request. */
  web_searches_low: { key: 'web_search_low_per_1000', units: THOUSAND, side: 'tool' },
  web_searches_medium: { key: 'web_search_medium_per_1000', units: THOUSAND, side: 'tool' },
  web_searches_high: { key: 'web_search_high_per_1000', units: THOUSAND, side: 'tool' },
  file_searches: { key: 'file_search_per_1000', units: THOUSAND, side: 'tool' },
  containers: { key: 'code_interpreter_per_session', units: 1n, side: 'tool' },
  /** 1 if code was executed. Upstream bills the container by time, but does not state the time. */
  code_executions: { key: null, units: 1n, side: 'tool' },
  input_characters: { key: 'input_per_million_characters', units: MILLION, side: 'input' },
  audio_input_milliseconds: { key: 'audio_input_per_hour', units: HOUR_IN_MS, side: 'duration' },
} as const satisfies Record<
  string,
  { readonly key: string | null; readonly units: bigint; readonly side: Side }
>

export type Unit = keyof typeof UNIT_PRICES

export const UNITS = Object.keys(UNIT_PRICES) as Unit[]

export const UNITS_OF: Readonly<Record<Side, readonly Unit[]>> = {
  input: bySide('input'),
  output: bySide('output'),
  duration: bySide('duration'),
  tool: bySide('tool'),
}

function bySide(side: Side): readonly Unit[] {
  return UNITS.filter((unit) => UNIT_PRICES[unit].side === side)
}

/**
 * Every model has `standard`. `batch` is half price without a deadline, `flex` half price if the request may be
 * refused. `priority` and `ultrafast` (Chat) and `fast` (Messages) cost more for speed.
 */
export const TIERS = ['standard', 'batch', 'flex', 'priority', 'fast', 'ultrafast'] as const

export type Tier = (typeof TIERS)[number]

/** Models of these modes read and write text. */
export const TEXT_MODES = ['chat', 'responses', 'completion', 'realtime'] as const

/** Whole numbers from 0 to 2^53 - 1. A unit that is absent is 0. */
export type Quantities = { readonly [U in Unit]?: number }

export function addQuantities(left: Quantities, right: Quantities): Quantities {
  const sum: Record<string, number> = { ...left }
  for (const [unit, count] of Object.entries(right)) sum[unit] = (sum[unit] ?? 0) + count
  return sum
}

/** Stands for the model of an image tool that the reply does not name: the requested one, else upstream's default. */
export const IMAGE_TOOL = 'image_generation'

/** The usage of one model in a call. Most calls have one part; fallbacks, advisors and image tools add others. */
export interface UsagePart {
  readonly model: string | null
  readonly quantities: Quantities
  /** All input of this part, cached or not. Long-context thresholds apply to this number. */
  readonly promptTokens: number
}

/** What a call used, as upstream states it. */
export interface Usage {
  readonly parts: readonly UsagePart[]
  readonly modelServed: string | null
  /** As upstream reports it: standard, priority, batch, default, flex, scale, ultrafast … */
  readonly serviceTier: string | null
  readonly speed: string | null
  readonly geography: string | null
  /** stop_reason, finish_reason, or the status of a response or batch. */
  readonly stopReason: string | null
  /** Upstream refused before any output. It reports tokens, but charges nothing. */
  readonly freeRefusal: boolean
  /** A reported figure was impossible (negative, fractional, too large or decreasing), and was dropped or clamped. */
  readonly suspect: boolean
}

export const NO_USAGE: Usage = {
  parts: [{ model: null, quantities: {}, promptTokens: 0 }],
  modelServed: null,
  serviceTier: null,
  speed: null,
  geography: null,
  stopReason: null,
  freeRefusal: false,
  suspect: false,
}
