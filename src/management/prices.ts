import { isDeepStrictEqual } from 'node:util'
import type { Written } from '../api/fields.ts'
import {
  type PriceBookObject,
  type PricedModel,
  type PriceOrigin,
  pushFields,
  setPriceFields,
} from '../api/prices.ts'
import { refuse } from '../kernel/errors.ts'
import { SURFACE_NAMES } from '../kernel/vocabulary.ts'
import { appliedAt, buildBook, type PriceLayers, type SetPrice } from '../pricing/build-book.ts'
import { isJump } from '../pricing/compare-versions.ts'
import { instantMs } from '../pricing/compile-version.ts'
import { judgePushInThread } from '../pricing/judge-push.ts'
import { loadLayers, readSetPrice } from '../pricing/load-book.ts'
import { PRICE_TERMS } from '../pricing/modifiers.ts'
import {
  findModel,
  type ModelPrice,
  type PriceVersion,
  suggestModel,
  versionAt,
} from '../pricing/price-book.ts'
import type { SetPriceEntry } from '../pricing/price-file.ts'
import { BUILT_IN_LIST, type ListConflict } from '../pricing/price-list.ts'
import {
  defineRoute,
  formatInstant,
  invalid,
  type OwnRequest,
  type Refused,
  refused,
  replyEmpty,
  type ServingNode,
} from './route.ts'

/** Prices are checked here, and stored for all nodes. */

interface Origin {
  readonly source: PriceOrigin
  readonly fromMs: number | null
}

/** Where the price of each model comes from. The last layer that names a model decides. */
function originsAt(layers: PriceLayers, atMs: number): ReadonlyMap<string, Origin> {
  const { changes, sets, overlays } = appliedAt(layers, atMs)
  const builtIn = new Set(BUILT_IN_LIST.changes.map(({ id }) => id))
  const origins = new Map<string, Origin>()
  for (const { id, effective_from, models = [] } of changes)
    for (const model of models)
      origins.set(model.id, {
        source: builtIn.has(id) ? 'built_in' : 'pushed',
        fromMs: instantMs(effective_from),
      })
  for (const { model, effectiveFromMs } of sets)
    origins.set(model, { source: 'set', fromMs: effectiveFromMs })
  for (const { effective_from, models = [] } of overlays)
    for (const model of models)
      origins.set(model.id, {
        source: 'file',
        fromMs: effective_from === undefined ? null : instantMs(effective_from),
      })
  return origins
}

const FROM_THE_BEGINNING: Origin = { source: 'built_in', fromMs: null }

function modelObject(model: ModelPrice, origin: Origin, atMs: number): Written<PricedModel> {
  const { id, provider, mode, aliases = [], retired = false, shutdown_at = null, ...prices } = model.entry
  return {
    id,
    provider,
    mode: mode ?? model.mode,
    aliases,
    retired: retired || (shutdown_at !== null && instantMs(shutdown_at) <= atMs),
    shutdown_at,
    source: origin.source,
    effective_from: formatInstant(origin.fromMs),
    context_window_tokens: model.contextWindowTokens,
    max_output_tokens: model.maxOutputTokens,
    prices,
  }
}

const versionObject = ({ id, effectiveFromMs }: PriceVersion) => ({
  price_version: id,
  effective_from: formatInstant(effectiveFromMs),
})

export const getPrices = defineRoute({
  summary: 'Show the price book',
  description: 'The prices that calls are rated with now, on this node.',
  async handle({ atMs }, { node }) {
    const { book, layers } = node.prices
    const version = versionAt(book, atMs)
    const origins = originsAt(layers, atMs)
    const later = book.versions.filter(({ effectiveFromMs }) => (effectiveFromMs ?? 0) > atMs)
    return {
      object: 'price_book',
      revision: layers.list.revision,
      ...versionObject(version),
      overlay: node.overlayFile,
      upcoming: later.map(versionObject),
      tools: version.entry.tools ?? {},
      models: version.models.map((model) =>
        modelObject(model, origins.get(model.id) ?? FROM_THE_BEGINNING, atMs),
      ),
    } satisfies Written<PriceBookObject>
  },
})

export const setPrice = defineRoute({
  summary: 'Set the price of a model',
  description:
    'Each request adds a dated price; one for the same instant replaces it. The latest that has begun applies. This node uses ' +
    'it at once, every other node within 2 seconds. The `provider` of a new model is by default the one that offers it, else the ' +
    'one of the most similar name.',
  body: setPriceFields,
  async handle({ id, body, actor, atMs }, { store, node }) {
    const model = modelIn(id)
    if (typeof model !== 'string') return model
    const { prices } = node
    const { effective_from, ...given } = body
    const read = readSetPrice(given)
    if (read.kind === 'refused') return refusePrices(read.problems)
    const effectiveFromMs = effective_from === undefined ? atMs : instantMs(effective_from)
    await prices.refresh()
    const { layers } = prices
    if (isInFile(model, layers))
      return refused(
        'conflict',
        `The price file of this node names ${model}, and it applies before set prices. Remove the model from the file, and send SIGHUP.`,
      )
    const entry = withProvider(read.value, model, effectiveFromMs, node)
    const set: SetPrice = { model, effectiveFromMs, entry }
    const shown = {
      object: 'price',
      id: model,
      ...entry,
      effective_from: formatInstant(effectiveFromMs),
    } as const
    if (changesNothing(set, layers, effective_from === undefined)) return shown
    const others = layers.sets.filter(
      (each) => each.model !== model || each.effectiveFromMs !== effectiveFromMs,
    )
    const next = loadLayers({ ...layers, sets: [...others, set] }, effectiveFromMs)
    if (next.kind === 'refused') return refusePrices(next.problems)
    const change = { actor, version: versionAt(next.value, atMs).id, models: [model], atMs }
    await store.setPrice({ model, effectiveFromMs, entry: JSON.stringify(entry) }, change)
    await prices.refresh()
    return shown
  },
})

/** A model stays with its provider. A new one belongs to whoever offers it, else to the provider of the most similar name. */
function withProvider(entry: SetPriceEntry, model: string, atMs: number, node: ServingNode): SetPriceEntry {
  if (entry.provider !== undefined) return entry
  const version = versionAt(node.prices.book, atMs)
  const offering = SURFACE_NAMES.find((surface) => node.offered(surface)?.has(model))
  const similar = suggestModel(version.names.keys(), model)
  const provider =
    findModel(version, model)?.provider ??
    (offering && PRICE_TERMS[offering].provider) ??
    findModel(version, similar)?.provider ??
    PRICE_TERMS.chat.provider
  return { provider, ...entry }
}

/** Whether the price applies already, or is the same as the one for this instant. */
function changesNothing(set: SetPrice, { sets }: PriceLayers, isNow: boolean): boolean {
  const own = sets.filter(({ model }) => model === set.model)
  const same = isNow
    ? own.findLast(({ effectiveFromMs }) => effectiveFromMs <= set.effectiveFromMs)
    : own.find(({ effectiveFromMs }) => effectiveFromMs === set.effectiveFromMs)
  return same !== undefined && isDeepStrictEqual(same.entry, set.entry)
}

export const unsetPrice = defineRoute({
  summary: 'End the set price of a model',
  description: 'The list of prices applies again from now on. Prices set for later are removed.',
  status: 204,
  async handle({ id, actor, atMs }, { store, node: { prices } }) {
    const model = modelIn(id)
    if (typeof model !== 'string') return model
    await prices.refresh()
    const { layers } = prices
    const own = layers.sets.filter((each) => each.model === model)
    if ((own.at(-1)?.entry ?? null) === null)
      return refused(
        'not_found',
        `No price is set for ${model}. GET /gateway/v1/prices shows where each price comes from.`,
      )
    const ends: SetPrice = { model, effectiveFromMs: atMs, entry: null }
    const others = layers.sets.filter((each) => each.model !== model || each.effectiveFromMs < atMs)
    const book = buildBook({ ...layers, sets: [...others, ends] })
    await store.unsetPrice(model, { actor, version: versionAt(book, atMs).id, models: [model], atMs })
    await prices.refresh()
    return replyEmpty()
  },
})

/** A list of 10,000 models. */
const LIST_BYTES_MAX = 8 * 1024 * 1024

export const pushPrices = defineRoute({
  summary: 'Push a list of prices',
  description:
    'Changes that the gateway has are skipped. A rate that changes by more than a factor of 4 needs `force`. With `dry_run`, ' +
    'the answer shows what would change.',
  body: pushFields,
  bodyBytesMax: LIST_BYTES_MAX,
  async handle({ body, actor, atMs }, { store, node: { prices } }) {
    const { force = false, dry_run: isDryRun = false, ...given } = body
    await prices.refresh()
    const judged = await judgePushInThread({ given, layers: prices.layers, atMs })
    if (judged.kind === 'refused') return refusePrices(judged.problems)
    if (judged.kind === 'conflict') return refuseConflict(judged.conflict)
    const { list, isNew, version, difference } = judged
    const jumps = [...new Set(difference.changed.filter(isJump).map(({ model }) => model))]
    if (jumps.length > 0 && !force) return refuseJumps(jumps)
    const { revision } = list
    if (!isDryRun && isNew) {
      const models = [...new Set([...difference.added, ...difference.changed.map(({ model }) => model)])]
      const change = { actor, version, models, atMs }
      const isStored = await store.storePriceList(revision, JSON.stringify(list), change, atMs)
      if (!isStored)
        return refused('conflict', 'Another request changed the list of prices meanwhile. Send it again.')
      await prices.refresh()
    }
    return { object: 'price_push', revision, ...difference }
  },
})

function modelIn(id: OwnRequest['id']): string | Refused {
  try {
    return decodeURIComponent(id)
  } catch {
    return invalid('model', 'The model in the path is not percent-encoded UTF-8. Encode it.')
  }
}

function isInFile(model: string, { overlays }: PriceLayers): boolean {
  return overlays.some(({ models = [] }) => models.some(({ id }) => id === model))
}

const PROBLEMS_SHOWN_MAX = 5

function refusePrices(problems: readonly string[]): Refused {
  const [first = ''] = problems
  const more =
    problems.length > PROBLEMS_SHOWN_MAX ? ` (and ${problems.length - PROBLEMS_SHOWN_MAX} more)` : ''
  const param = /^(?:model "[^"]*": )?([\w.[\]"/-]+): /.exec(first)?.[1]
  const message = `The prices cannot be used: ${problems.slice(0, PROBLEMS_SHOWN_MAX).join('; ')}${more}. Nothing has changed.`
  return refused('bad_request', message, param)
}

const CONFLICTS: Readonly<Record<ListConflict['reason'], string>> = {
  change: 'The gateway has changes with these ids and other content. Give a new change a new id',
  base: 'The base of the list has other prices for these models. Put new prices into a change',
  revision:
    'The list has new changes, but no higher revision than the list of the gateway. Raise its revision',
}

function refuseConflict({ reason, names }: ListConflict): Refused {
  const shown = names.slice(0, PROBLEMS_SHOWN_MAX).join(', ')
  return refused(
    'conflict',
    `${CONFLICTS[reason]}: ${shown}. Nothing has changed.`,
    reason === 'revision' ? 'revision' : 'changes',
  )
}

function refuseJumps(models: readonly string[]): Refused {
  const message = `Rates of ${models.slice(0, PROBLEMS_SHOWN_MAX).join(', ')} change by more than a factor of 4. Check them, then send "force": true.`
  return { kind: 'refused', refusal: refuse('conflict', message, { param: 'force', details: { models } }) }
}
