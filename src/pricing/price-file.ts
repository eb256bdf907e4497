import { z } from 'zod'
import { parseUsd } from '../kernel/money.ts'
import { TEXT_MODES, UNIT_PRICES, UNITS, UNITS_OF, type Unit } from '../kernel/usage.ts'
import { isTool } from './amounts.ts'

/** Unknown members are refused, so that a mistyped rate is not silently left out. */

/** Decimals are strings, because a JSON number would become a binary fraction. */
const DECIMAL = 'must be a decimal in quotes, such as "0.25", not negative and with at most 9 places'
const decimal = z.string({ error: DECIMAL }).regex(/^\d{1,9}(?:\.\d{1,9})?$/, DECIMAL)
const multiplier = decimal.refine((text) => (parseUsd(text) ?? 0n) > 0n, 'must be more than 0')

/** 2^31 is far above any limit and far below the numbers whose sums could lose a digit. */
const TOKENS = 'must be a whole number of tokens from 0 to 2147483648'
const tokens = z
  .int({ error: TOKENS })
  .min(0, TOKENS)
  .max(2 ** 31, TOKENS)

const endpoint = z.string().startsWith('/v1/', 'must begin with /v1/')
const INSTANT = 'must be a UTC date or instant, such as "2026-12-01" or "2026-12-01T00:00:00Z"'
const instant = z.union([z.iso.date(), z.iso.datetime()], INSTANT)

const flag = z.boolean({ error: 'must be true or false' })
const name = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters without spaces')

type RateKey = Exclude<(typeof UNIT_PRICES)[Unit], { side: 'tool' }>['key']

/** A rate that is absent or null does not exist. */
const rate = decimal.nullish()
const keysOf = (units: readonly Unit[]) => units.flatMap((unit) => UNIT_PRICES[unit].key ?? [])
const rateKeys = keysOf(UNITS.filter((unit) => !isTool(unit)))
const rateShape = Object.fromEntries(rateKeys.map((key) => [key, rate])) as Record<RateKey, typeof rate>

const tariff = z.strictObject({ ...rateShape, long_context: z.strictObject(rateShape).optional() })
const rateTable = z
  .strictObject({
    /** Prompts of more tokens than this are rated at `long_context`, the whole request. */
    long_context_above: tokens.optional(),
    standard: tariff,
    batch: tariff.optional(),
    flex: tariff.optional(),
    priority: tariff.optional(),
    fast: tariff.optional(),
    ultrafast: tariff.optional(),
  })
  .refine(
    ({ long_context_above: above, ...tiers }) =>
      above === undefined
        ? Object.values(tiers).every((tier) => tier?.long_context === undefined)
        : tiers.standard.long_context !== undefined,
    'needs both "long_context_above" and "long_context" in "standard", or neither',
  )

/** Tools that are paid by the call or by the hour, for any model. Replies do not state the hours. */
const tools = z.strictObject(
  Object.fromEntries(
    [
      ...keysOf(UNITS_OF.tool),
      ...['web_fetch_per_1000', 'code_execution_per_container_hour', 'agent_session_per_hour'],
    ].map((key) => [key, rate]),
  ),
)
const toolsByProvider = z.record(name, tools)

const AUDIO_MODES = ['audio_speech', 'audio_transcription', 'audio_translation'] as const
const MODES = [...TEXT_MODES, 'embedding', 'image', ...AUDIO_MODES, 'moderation'] as const
export type Mode = (typeof MODES)[number]

const model = z.strictObject({
  id: name,
  provider: name,
  rates: rateTable,
  /** Names that mean this model. They match exactly, never by prefix. */
  aliases: z.array(name).max(200).optional(),
  mode: z.enum(MODES, `must be one of ${MODES.join(', ')}`).optional(),
  /** Upstream no longer serves the model. It stays in the price book, so that past calls can be rerated. */
  retired: flag.optional(),
  /** The day or instant (UTC) from which upstream no longer serves the model. */
  shutdown_at: instant.nullish(),
  context_window_tokens: tokens.nullish(),
  max_output_tokens: tokens.nullish(),
  /** Rates that replace `rates` on some endpoints. */
  endpoints: z.record(endpoint, rateTable).optional(),
  /** Whether the model searches the web for every answer. Its replies do not state this. */
  searches_each_call: flag.optional(),
  tools: tools.optional(),
  /** Factors for all tokens: by reported geography, and on single-region hosts. */
  geography: z.record(name, multiplier).optional(),
  regional_uplift: multiplier.nullish(),
})

export const versionFile = z
  .strictObject({
    id: name,
    effective_from: instant,
    default_models: z.record(endpoint, name).optional(),
    tools: toolsByProvider,
    models: z.array(model).max(20_000),
    /** For requested models without a price of their own: the model whose price applies, by name or pattern. */
    fallbacks: z.record(name, name).optional(),
  })
  .superRefine(({ models, default_models: defaults = {} }, context) => {
    const owners = new Map<string, string>()
    for (const { id, aliases = [], mode = 'chat', rates } of models) {
      const add = (message: string) => context.addIssue(`model "${id}": ${message}`)
      for (const own of [id, ...aliases]) {
        if (owners.has(own)) add(`"${own}" is a name of "${owners.get(own)}" too`)
        owners.set(own, id)
      }
      if (!TEXT_MODES.some((each) => each === mode)) continue
      const { long_context: long, ...short } = rates.standard
      for (const key of ['input', 'output'] as const) {
        const needs = `a ${mode} model needs a standard rate for "${key}"`
        if (short[key] == null) add(needs)
        if (long !== undefined && long[key] == null) add(`${needs} of long prompts`)
      }
    }
    for (const [path, model] of Object.entries(defaults))
      if (!owners.has(model)) context.addIssue(`default_models["${path}"]: there is no model "${model}"`)
  })

/** Changes of prices. Each names only what it changes. */
const changes = {
  /** Null removes a default model. */
  default_models: z.record(endpoint, name.nullable()).optional(),
  tools: toolsByProvider.optional(),
  models: z
    .array(model.partial().required({ id: true }))
    .max(20_000)
    .refine((models) => new Set(models.map(({ id }) => id)).size === models.length, 'name a model twice')
    .optional(),
}

/** Without `effective_from`, the overlay always applies. */
const overlay = z.strictObject({ effective_from: instant.optional(), ...changes })

/** The price of one model: a member of `models` without its id. */
export const setPriceFile = model.partial().omit({ id: true })

/** A list of prices: those it began with, and dated changes. A newer list only adds changes. */
export const listFile = z
  .strictObject({
    revision: z
      .int('must be a whole number')
      .min(1)
      .max(2 ** 31),
    base: z.strictObject({
      id: name.default('base'),
      effective_from: instant.default('2026-01-01'),
      default_models: z.record(endpoint, name).optional(),
      tools: toolsByProvider.default({}),
      models: z.array(model).max(20_000),
    }),
    changes: z.array(z.strictObject({ id: name, effective_from: instant, ...changes })).max(10_000),
  })
  .refine(({ changes }) => new Set(changes.map(({ id }) => id)).size === changes.length, {
    message: 'two changes have the same id',
    path: ['changes'],
  })

/** An overlay file is one overlay, or a list of them for changes at several dates. */
export function overlayFile(value: unknown): z.ZodType<readonly OverlayEntry[]> {
  return Array.isArray(value) ? z.array(overlay).max(1_000) : overlay.transform((only) => [only])
}

export type BookVersionEntry = z.output<typeof versionFile>
export type ModelEntry = z.output<typeof model>
export type OverlayEntry = z.output<typeof overlay>
export type SetPriceEntry = z.output<typeof setPriceFile>
export type PriceList = z.output<typeof listFile>
export type ListChange = PriceList['changes'][number]
export type RateTableEntry = z.output<typeof rateTable>
