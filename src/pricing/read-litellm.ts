import type { Tier } from '../kernel/usage.ts'
import {
  type Catalog,
  type CatalogModel,
  type CatalogRates,
  decimalOf,
  defined,
  isObject,
  PROVIDERS,
  tokensOf,
} from './catalog.ts'
import { MODES, type Mode } from './price-file.ts'
import type { RateKey } from './rate-keys.ts'

/**
 * LiteLLM's `model_prices_and_context_window.json`: an object by model name, prices in USD per token, per second or
 * per character, with `_batches`, `_flex`, `_priority` and `_above_272k_tokens` at the end of their names.
 */
export function isLitellm(json: unknown): json is Readonly<Record<string, unknown>> {
  return isObject(json) && Object.values(json).some((model) => isObject(model) && 'litellm_provider' in model)
}

const MILLION = 1_000_000n
const SECONDS_PER_HOUR = 3_600n

interface Meaning {
  readonly key: RateKey | null
  readonly factor: bigint
}

const per = (key: RateKey | null, factor = MILLION): Meaning => ({ key, factor })

/** Null stands for the write of the provider's shortest life. */
const PRICES: Readonly<Record<string, Meaning>> = {
  input_cost_per_token: per('input'),
  output_cost_per_token: per('output'),
  cache_read_input_token_cost: per('cache_read'),
  cache_creation_input_token_cost: per(null),
  cache_creation_input_token_cost_above_1hr: per('cache_write_1h'),
  input_cost_per_audio_token: per('audio_input'),
  output_cost_per_audio_token: per('audio_output'),
  cache_read_input_audio_token_cost: per('audio_cache_read'),
  input_cost_per_image_token: per('image_input'),
  output_cost_per_image_token: per('image_output'),
  input_cost_per_character: per('input_per_million_characters'),
  input_cost_per_second: per('audio_input_per_hour', SECONDS_PER_HOUR),
}

const SUFFIXES: Readonly<Record<string, Tier>> = { _batches: 'batch', _flex: 'flex', _priority: 'priority' }
const WRITES: Readonly<Record<string, RateKey>> = { anthropic: 'cache_write_5m', openai: 'cache_write_30m' }
const MODE_NAMES: Readonly<Record<string, Mode>> = { image_generation: 'image', video_generation: 'video' }

export function readLitellm(json: Readonly<Record<string, unknown>>): Catalog {
  const models: CatalogModel[] = []
  const unknown = new Map<string, number>()
  for (const [name, model] of Object.entries(json)) {
    // Names with a slash are the same models by size and quality of an image, or under another provider.
    if (!isObject(model) || name.includes('/') || name === 'sample_spec') continue
    const provider =
      model['litellm_provider'] === 'text-completion-openai' ? 'openai' : model['litellm_provider']
    if (typeof provider !== 'string' || !PROVIDERS.includes(provider)) continue
    models.push(readModel(name, provider, model, unknown))
  }
  const notes = [...unknown].map(([member, count]) => `"${member}" has no counterpart here (${count} models)`)
  return { source: 'litellm', models, notes }
}

type WritableRates = { short: Partial<Record<RateKey, string>>; long: Partial<Record<RateKey, string>> }

function readModel(
  id: string,
  provider: string,
  model: Readonly<Record<string, unknown>>,
  unknown: Map<string, number>,
): CatalogModel {
  const tiers = new Map<Tier, WritableRates>()
  let above: number | undefined
  for (const [member, value] of Object.entries(model)) {
    if (!member.includes('cost')) continue
    const { base, tier, thousands } = takeApart(member)
    const meaning = PRICES[base]
    const key = meaning === undefined ? undefined : (meaning.key ?? WRITES[provider])
    const amount = decimalOf(value, meaning?.factor)
    if (key === undefined || amount === null) {
      unknown.set(member, (unknown.get(member) ?? 0) + 1)
      continue
    }
    const rates = tiers.get(tier) ?? { short: {}, long: {} }
    tiers.set(tier, rates)
    if (thousands === null) rates.short[key] = amount
    else {
      above = thousands * 1_000
      rates.long[key] = amount
    }
  }
  return {
    id,
    provider,
    tiers: tiers as ReadonlyMap<Tier, CatalogRates>,
    ...defined({
      mode: modeOf(model['mode']),
      contextWindowTokens: tokensOf(model['max_input_tokens']),
      maxOutputTokens: tokensOf(model['max_output_tokens']),
      longContextAbove: above,
      regionalUplift: decimalOf(model['regional_processing_uplift_multiplier_us']) ?? undefined,
      geography: geographyOf(model['provider_specific_entry']),
    }),
  }
}

function takeApart(member: string): { base: string; tier: Tier; thousands: number | null } {
  const suffix = Object.keys(SUFFIXES).find((ending) => member.endsWith(ending))
  const tier = suffix === undefined ? 'standard' : (SUFFIXES[suffix] ?? 'standard')
  const rest = suffix === undefined ? member : member.slice(0, -suffix.length)
  const match = /^(.+)_above_(\d{1,5})k_tokens$/.exec(rest)
  return { base: match?.[1] ?? rest, tier, thousands: match === null ? null : Number(match[2]) }
}

function modeOf(mode: unknown): Mode | undefined {
  if (typeof mode !== 'string') return undefined
  return MODE_NAMES[mode] ?? MODES.find((known) => known === mode)
}

/** It also has a factor for fast mode, which the provider's own price list contradicts for some models. */
function geographyOf(entry: unknown): Record<string, string> | undefined {
  const us = isObject(entry) ? decimalOf(entry['us']) : null
  return us === null ? undefined : { us }
}
