import { z } from 'zod'
import { SURFACE_NAMES } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'

/** The price book, and the changes that operators make to it. */

export const PRICE_SOURCES = ['built_in', 'pushed', 'set', 'file'] as const
export type PriceOrigin = (typeof PRICE_SOURCES)[number]

export const priceBookSchema = z
  .object({
    object: z.literal('price_book'),
    price_version: z.string(),
    revision: z.int().describe('The revision of the list of prices in the database.'),
    effective_from: f.instant().nullable().describe('Null: from the beginning.'),
    overlay: f.stringOrNull("The name of this node's price file; null without one."),
    upcoming: z
      .array(z.object({ price_version: z.string(), effective_from: f.instant().nullable() }))
      .describe('Known versions that take effect later.'),
    tools: z.record(z.string(), z.unknown()).describe('Prices per call or per hour, by provider.'),
    models: z.array(
      z.object({
        id: z.string(),
        provider: z.string(),
        mode: z.string(),
        aliases: z.array(z.string()),
        retired: z.boolean(),
        shutdown_at: f.stringOrNull('The day (UTC) from which upstream no longer serves the model.'),
        source: z
          .enum(PRICE_SOURCES)
          .describe(
            '`built_in`: the list of a release. `pushed`: a list that an operator pushed. `set`: set over the API. `file`: the price file of this node.',
          ),
        effective_from: f
          .instant()
          .nullable()
          .describe('Since when this price applies. Null: from the beginning.'),
        context_window_tokens: z.int().nullable(),
        max_output_tokens: z.int().nullable(),
        prices: z
          .looseObject({ rates: z.record(z.string(), z.unknown()).optional() })
          .describe(
            'As in a price file: `rates` by tier, in US dollars as decimals in quotes, for a million tokens unless the name ' +
              'says otherwise; `endpoints`, `tools` and multipliers.',
          ),
      }),
    ),
  })
  .meta({ id: 'price_book', description: 'The prices in effect.' })
export type PriceBookObject = z.infer<typeof priceBookSchema>
export type PricedModel = PriceBookObject['models'][number]

/** The members of a price are checked as in a price file, so that both have the same messages. */
export const setPriceFields = z
  .looseObject({
    effective_from: z
      .union([z.iso.date(), z.iso.datetime()], {
        error:
          'effective_from must be a UTC date or instant, such as "2026-12-01" or "2026-12-01T00:00:00Z".',
      })
      .optional()
      .describe('From when the price applies, also in the future or in the past. The default is now.'),
  })
  .describe('One member of `models` of a price file, without `id`.')

export const setPriceSchema = z
  .looseObject({ object: z.literal('price'), id: z.string(), effective_from: f.instant() })
  .meta({ id: 'price', description: 'A price that an operator set.' })

export const pushFields = z
  .looseObject({
    force: z
      .boolean({ error: 'force must be true or false.' })
      .optional()
      .describe('Accept rates that change by more than a factor of 4.'),
    dry_run: z.boolean({ error: 'dry_run must be true or false.' }).optional().describe('Change nothing.'),
  })
  .describe('A list of prices: `revision`, `base` and `changes`.')

export const missingPricesSchema = z
  .object({
    object: z.literal('list'),
    data: z.array(
      z.object({
        model: z.string(),
        surface: z.enum(SURFACE_NAMES),
        refused: z.int().describe('Calls that were refused in the last 30 days.'),
        passed: z.int().describe('Calls that passed without a price, or under a fallback.'),
        last_at: f.instant().nullable(),
        offered: z.boolean().describe('Whether an upstream lists the model.'),
        closest: f.stringOrNull('The priced model with the most similar name.'),
      }),
    ),
    has_more: z.literal(false),
    next: z.null(),
  })
  .meta({ id: 'missing_prices', description: 'Models that were asked for and have no price.' })

export type MissingPrice = z.infer<typeof missingPricesSchema>['data'][number]

export const pricePushSchema = z
  .object({
    object: z.literal('price_push'),
    revision: z.int(),
    added: z.array(z.string()).describe('Ids of models that have a price for the first time.'),
    changed: z.array(
      z.object({
        model: z.string(),
        unit: z.string(),
        old: z.string().nullable(),
        new: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'price_push', description: 'What a list of prices changes.' })
export type PricePush = z.infer<typeof pricePushSchema>
