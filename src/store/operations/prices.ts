import { limits } from '../../kernel/limits.ts'
import type { Surface } from '../../kernel/vocabulary.ts'
import { dayOf, startOfDayMs } from '../../ledger/calendar.ts'
import {
  OTHER_MODELS,
  type PriceChange,
  type StoredPrices,
  type StoredSetPrice,
  type UnpricedModel,
} from '../../ledger/prices.ts'
import { number, text, textOrNull } from '../rows.ts'
import { recordEvent } from './events.ts'
import { atomic, type Operation } from './operation.ts'
import { readSetting } from './settings.ts'
import { and, sql } from './sql.ts'
import { startedWithin } from './start-range.ts'

/** Prices that change without a release. A counter tells every node that it must read them again. */

const DAY_MS = 24 * 60 * 60 * 1_000

const CHANGES = 'price_changes'

function* countChange(): Operation<void> {
  yield sql`
    INSERT INTO setting (name, value) VALUES (${CHANGES}, '1')
    ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(setting.value AS bigint) + 1 AS text)`
}

function* readPriceChanges(): Operation<number> {
  return Number((yield* readSetting(CHANGES)) ?? 0)
}

const readPrices = atomic(function* (): Operation<StoredPrices> {
  const changes = yield* readPriceChanges()
  const [list] = yield sql`SELECT json FROM price_list ORDER BY revision DESC LIMIT 1`
  const sets =
    yield sql`SELECT model, effective_from_ms, entry FROM set_price ORDER BY model, effective_from_ms`
  return {
    changes,
    listJson: list === undefined ? null : text(list, 'json'),
    sets: sets.map((row) => ({
      model: text(row, 'model'),
      effectiveFromMs: number(row, 'effective_from_ms'),
      entry: textOrNull(row, 'entry'),
    })),
  }
})

function* recordChange({ actor, version, models, atMs }: PriceChange): Operation<void> {
  yield* countChange()
  const data = { prices: { version, models } }
  yield* recordEvent({ accountId: 'default', type: 'prices.updated', actor, data }, atMs)
}

/** False: another node has stored a list of this or a later revision. `change` null: a release brought it. */
const storePriceList = atomic(function* (
  revision: number,
  json: string,
  change: PriceChange | null,
  atMs: number,
) {
  const stored = yield sql`
    INSERT INTO price_list (revision, json, at_ms) SELECT ${revision}, ${json}, ${atMs}
    WHERE NOT EXISTS (SELECT 1 FROM price_list WHERE revision >= ${revision})
    ON CONFLICT DO NOTHING RETURNING revision`
  if (stored.length === 0) return false
  if (change === null) yield* countChange()
  else yield* recordChange(change)
  return true
})

const setPrice = atomic(function* (
  { model, effectiveFromMs, entry }: StoredSetPrice,
  change: PriceChange,
): Operation<void> {
  yield sql`
    INSERT INTO set_price (model, effective_from_ms, entry) VALUES (${model}, ${effectiveFromMs}, ${entry})
    ON CONFLICT (model, effective_from_ms) DO UPDATE SET entry = excluded.entry`
  yield* recordChange(change)
})

/** Ends the set price of a model at an instant, with its later entries. */
const unsetPrice = atomic(function* (model: string, change: PriceChange): Operation<void> {
  const { atMs } = change
  yield sql`DELETE FROM set_price WHERE model = ${model} AND effective_from_ms >= ${atMs}`
  yield sql`INSERT INTO set_price (model, effective_from_ms, entry) VALUES (${model}, ${atMs}, NULL)`
  yield* recordChange(change)
})

/**
 * Models whose calls were refused or passed without a price since a time. Refusals are kept for 30 days. Clients invent names,
 * so the refused ones are the latest of each account and of all; the calls of others are summed for each surface. Only
 * the latest that passed are listed.
 */
function* listUnpricedModels(fromMs: number): Operation<readonly UnpricedModel[]> {
  const refused = yield sql`
    WITH asked AS (
      SELECT account_id, surface, model_asked AS model, count(*) AS calls, max(started_at_ms) AS last_at_ms,
        row_number() OVER (PARTITION BY account_id ORDER BY max(started_at_ms) DESC) AS place FROM refused_call
      WHERE code = 'model_not_priced' AND started_at_ms >= ${fromMs} AND model_asked IS NOT NULL GROUP BY 1, 2, 3
    ), named AS (
      SELECT surface, CASE WHEN place <= ${limits.unpricedModelsMax} THEN model ELSE ${OTHER_MODELS} END AS model,
        sum(calls) AS calls, max(last_at_ms) AS last_at_ms,
        row_number() OVER (ORDER BY max(last_at_ms) DESC) AS place FROM asked GROUP BY 1, 2
    )
    SELECT surface, CASE WHEN place <= ${limits.missingPricesMax} THEN model ELSE ${OTHER_MODELS} END AS model,
      CAST(sum(calls) AS text) AS calls, max(last_at_ms) AS last_at_ms FROM named GROUP BY 1, 2`
  const passed = yield sql`
    SELECT model, CAST(sum(unpriced_requests) AS text) AS calls, max(day) AS day FROM rollup
    WHERE day >= ${dayOf(fromMs)} AND unpriced_requests > 0 AND model <> '' GROUP BY 1
    ORDER BY 3 DESC LIMIT ${limits.missingPricesMax}`
  const models: UnpricedModel[] = refused.map((row) => ({
    model: text(row, 'model'),
    surface: text(row, 'surface') as Surface,
    refused: Number(text(row, 'calls')),
    passed: 0,
    lastAtMs: number(row, 'last_at_ms'),
  }))
  for (const row of passed) {
    const [model, day] = [text(row, 'model'), text(row, 'day')]
    const last = yield* lastCallOf(model, day)
    if (last !== null) models.push({ model, ...last, refused: 0, passed: Number(text(row, 'calls')) })
  }
  return models
}

/** The sums of a day do not say where and when a model was called, so the latest call of one of its keys is looked up. */
function* lastCallOf(
  model: string,
  day: string,
): Operation<Pick<UnpricedModel, 'surface' | 'lastAtMs'> | null> {
  const dayMs = startOfDayMs(day)
  const [call] = yield sql`
    SELECT surface, started_at_ms FROM call WHERE ${and([
      sql`key_id = (SELECT key_id FROM rollup WHERE day = ${day} AND model = ${model} AND unpriced_requests > 0 LIMIT 1)`,
      ...startedWithin(dayMs, dayMs + DAY_MS),
    ])} AND unpriced AND coalesce(model_served, model_asked) = ${model} ORDER BY id DESC LIMIT 1`
  if (call === undefined) return null
  return { surface: text(call, 'surface') as Surface, lastAtMs: number(call, 'started_at_ms') }
}

export const PRICES = {
  brief: { readPriceChanges, readPrices, storePriceList, setPrice, unsetPrice },
  reads: { listUnpricedModels },
}
