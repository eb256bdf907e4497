import { checkDefaults, checkModel } from './check-models.ts'
import type { JsonPath } from './json-with-lines.ts'
import type { BookVersionEntry, ModelEntry, OverlayEntry, OverlayModelEntry } from './price-file.ts'
import type { PriceProblems } from './price-problems.ts'

type Prices = Pick<BookVersionEntry, 'models' | 'tools' | 'default_models'>

/**
 * The prices with what the overlay replaces or adds. A model that exists keeps what the overlay does not mention
 * (aliases, limits, multipliers), but its `rates` are replaced as a whole: half old and half new rates would be
 * nobody's price list.
 */
export function applyOverlay(
  prices: Prices,
  overlay: OverlayEntry,
  path: JsonPath,
  problems: PriceProblems,
): Prices {
  const models = new Map(prices.models.map((model) => [model.id, model]))
  for (const [index, change] of (overlay.models ?? []).entries()) {
    const at = [...path, 'models', index]
    const merged = mergeModel(models.get(change.id), change, at, problems)
    if (merged === null) continue
    checkModel(merged, at, problems)
    for (const [aliasAt, alias] of (change.aliases ?? []).entries()) {
      if (alias !== merged.id && models.has(alias))
        problems.add([...at, 'aliases', aliasAt], `"${alias}" is the id of a model of its own`)
    }
    models.set(merged.id, merged)
  }
  const claimed = new Map((overlay.models ?? []).flatMap(namesOf))
  const named = [...models.values()].map((model) => withoutNames(model, claimed))
  const { default_models: defaults = {} } = overlay
  checkDefaults(defaults, named, [...path, 'default_models'], problems)
  return {
    models: named,
    tools: mergeTools(prices.tools, overlay.tools ?? {}),
    default_models: mergeDefaults(prices.default_models, defaults),
  }
}

function mergeModel(
  existing: ModelEntry | undefined,
  change: OverlayModelEntry,
  path: JsonPath,
  problems: PriceProblems,
): ModelEntry | null {
  const provider = change.provider ?? existing?.provider
  const rates = change.rates ?? existing?.rates
  if (provider === undefined || rates === undefined) {
    const missing = provider === undefined ? '"provider"' : '"rates"'
    problems.add(path, `"${change.id}" is not in the book, so it needs ${missing}`)
    return null
  }
  return { ...existing, ...change, provider, rates }
}

function namesOf(model: OverlayModelEntry): [name: string, owner: string][] {
  return [model.id, ...(model.aliases ?? [])].map((name) => [name, model.id])
}

/** A name that the overlay gives to one model is taken away from any other. */
function withoutNames(model: ModelEntry, claimed: ReadonlyMap<string, string>): ModelEntry {
  const aliases = model.aliases?.filter((alias) => (claimed.get(alias) ?? model.id) === model.id)
  return aliases === undefined || aliases.length === model.aliases?.length ? model : { ...model, aliases }
}

function mergeDefaults(
  defaults: Prices['default_models'],
  changes: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const merged: Record<string, string> = {}
  for (const [endpoint, model] of Object.entries({ ...defaults, ...changes }))
    if (model !== null) merged[endpoint] = model
  return merged
}

function mergeTools(tools: Prices['tools'], changes: Prices['tools']): Prices['tools'] {
  const merged = { ...tools }
  for (const [provider, prices] of Object.entries(changes))
    merged[provider] = { ...(Object.hasOwn(tools, provider) ? tools[provider] : {}), ...prices }
  return merged
}
