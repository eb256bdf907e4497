import { isDeepStrictEqual } from 'node:util'
import { ADDED, buildBook, digestOf, type PriceLayers } from './build-book.ts'
import builtIn from './list-prices.json' with { type: 'json' }
import type { PriceBook } from './price-book.ts'
import type { PriceList } from './price-file.ts'

/** The list of this release. Validated by a test, not at startup, where validation took a sixth of the time. */
export const BUILT_IN_LIST = builtIn as PriceList

export const BUILT_IN_LAYERS: PriceLayers = { list: BUILT_IN_LIST, sets: [], overlays: [] }

/** The book of this release, without an overlay and without the prices of a database. */
export function shippedBook(): PriceBook {
  return buildBook(BUILT_IN_LAYERS)
}

/** Why a list does not continue another one. `names`: the ids of changes, or of models of the base. */
export interface ListConflict {
  readonly reason: 'change' | 'base' | 'revision'
  readonly names: readonly string[]
}

export interface MergedList {
  readonly list: PriceList
  readonly added: PriceList['changes']
}

/** The known list with the changes that only the other list has. The history of prices is never rewritten. */
export function mergeLists(known: PriceList, other: PriceList): MergedList | ListConflict {
  const changes = new Map(known.changes.map((change) => [change.id, change]))
  const rewritten = other.changes.filter((change) => isOther(changes.get(change.id), change))
  if (rewritten.length > 0) return { reason: 'change', names: rewritten.map(({ id }) => id) }
  const models = new Map(known.base.models.map((model) => [model.id, model]))
  const altered = other.base.models.filter((model) => isOther(models.get(model.id), model))
  if (altered.length > 0) return { reason: 'base', names: altered.map(({ id }) => id) }
  const added = other.changes.filter(({ id }) => !changes.has(id))
  const addedModels = other.base.models.filter(({ id }) => !models.has(id))
  if (added.length + addedModels.length === 0) return { list: known, added }
  if (other.revision <= known.revision) return { reason: 'revision', names: added.map(({ id }) => id) }
  const base = addedModels.length === 0 ? known.base : withModels(known.base, addedModels)
  return { list: { revision: other.revision, base, changes: [...known.changes, ...added] }, added }
}

/** Another base needs another id, because the ids of versions depend on it. */
function withModels(base: PriceList['base'], added: PriceList['base']['models']): PriceList['base'] {
  const models = [...base.models, ...added]
  return { ...base, id: base.id + ADDED + digestOf(added), models }
}

function isOther<T>(known: T | undefined, given: T): boolean {
  return known !== undefined && !isDeepStrictEqual(known, given)
}
