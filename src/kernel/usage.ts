/**
 * The units of usage, shared by usage readers and pricing.
 *
 * Each token is counted in exactly one unit, however many totals and details upstream reports. Details of
 * output (reasoning, thinking, predictions) are part of `output_tokens` and not units.
 */
export const UNITS = [
  'input_tokens',
  'cache_read_tokens',
  'cache_write_5m_tokens',
  'cache_write_1h_tokens',
  'cache_write_30m_tokens',
  'cache_write_12h_tokens',
  'output_tokens',
  'audio_input_tokens',
  'audio_cache_read_tokens',
  'audio_output_tokens',
  'image_input_tokens',
  'image_cache_read_tokens',
  'image_output_tokens',
  'web_searches',
  /** Searches whose price depends on the `search_context_size` of the request. */
  'web_searches_low',
  'web_searches_medium',
  'web_searches_high',
  'file_searches',
  'containers',
  /** 1 if code was executed. Upstream bills the container by time, but does not state the time. */
  'code_executions',
  'input_characters',
  'audio_input_milliseconds',
] as const

export type Unit = (typeof UNITS)[number]

/**
 * Every model has `standard`. `batch` is half price without a deadline, `flex` half price if the request may be
 * refused. `priority` and `ultrafast` (Chat) and `fast` (Messages) cost more for speed.
 */
export const TIERS = ['standard', 'batch', 'flex', 'priority', 'fast', 'ultrafast'] as const

export type Tier = (typeof TIERS)[number]

/** Whole numbers from 0 to 2^53 - 1. A unit that is absent is 0. */
export type Quantities = { readonly [U in Unit]?: number }

/** The usage of one model in a call. Most calls have one part; fallbacks, advisors and image tools add others. */
export interface UsagePart {
  readonly model: string | null
  readonly quantities: Quantities
  /** All input of this part, cached or not. Long-context thresholds apply to this number. */
  readonly promptTokens: number
}

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
