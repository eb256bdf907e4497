import type { JsonPath } from './json-with-lines.ts'
import type { ModelEntry, RateTableEntry } from './price-file.ts'
import type { PriceProblems } from './price-problems.ts'
import { tariffsOf } from './tariffs-of.ts'

/** What the shape of a file cannot say: names are unique, and every table is complete enough to rate with. */

export interface NamedEntry {
  readonly id: string
  readonly aliases?: readonly string[] | undefined
}

export function checkNames(models: readonly NamedEntry[], path: JsonPath, problems: PriceProblems): void {
  const owners = new Map<string, string>()
  const claim = (name: string, owner: string, at: JsonPath): void => {
    const other = owners.get(name)
    if (other === undefined) owners.set(name, owner)
    else problems.add(at, `"${name}" is given twice, here and for "${other}"`)
  }
  for (const [index, model] of models.entries()) {
    claim(model.id, model.id, [...path, index, 'id'])
    for (const [at, alias] of (model.aliases ?? []).entries())
      claim(alias, model.id, [...path, index, 'aliases', at])
  }
}

export function checkDefaults(
  defaults: Readonly<Record<string, string | null>>,
  models: readonly NamedEntry[],
  path: JsonPath,
  problems: PriceProblems,
): void {
  const names = new Set(models.flatMap(({ id, aliases }) => [id, ...(aliases ?? [])]))
  for (const [endpoint, model] of Object.entries(defaults)) {
    if (model !== null && !names.has(model))
      problems.add([...path, endpoint], `"${model}" is no model of the book`)
  }
}

/** Models of these modes read and write text, so that one price without the other must be a slip. */
export const TEXT_MODES: readonly string[] = ['chat', 'responses', 'completion', 'realtime']

export function checkModel(model: ModelEntry, path: JsonPath, problems: PriceProblems): void {
  checkTable(model.rates, [...path, 'rates'], problems)
  for (const [endpoint, table] of Object.entries(model.endpoints ?? {}))
    checkTable(table, [...path, 'endpoints', endpoint], problems)
  if (!TEXT_MODES.includes(model.mode ?? 'chat')) return
  for (const key of ['input', 'output'] as const) {
    if (typeof model.rates.standard[key] === 'string') continue
    problems.add([...path, 'rates', 'standard'], `a ${model.mode ?? 'chat'} model needs a rate for "${key}"`)
  }
}

/** A tier that knew nothing of long prompts would rate them as short ones. */
function checkTable(table: RateTableEntry, path: JsonPath, problems: PriceProblems): void {
  for (const [tier, tariff] of tariffsOf(table)) {
    const at = [...path, tier]
    if (table.long_context_above === undefined && tariff.long_context !== undefined)
      problems.add([...at, 'long_context'], 'needs "long_context_above" beside the tiers')
    if (table.long_context_above !== undefined && tariff.long_context === undefined)
      problems.add(at, 'needs "long_context", because the model has "long_context_above"')
  }
}
