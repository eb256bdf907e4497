import { readFileSync, writeFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { UNIT_PRICES } from '../src/kernel/usage.ts'
import { loadLayers, readPriceList } from '../src/pricing/load-book.ts'
import type { ModelEntry, PriceList } from '../src/pricing/price-file.ts'

/**
 * Turns new facts into a change of the list of prices, and checks it:
 *
 *   node scripts/add-prices.ts facts.json 2026-12-01
 *
 * `facts.json` has `models`, with the rates of each model beside its id. The change contains only the models that differ
 * from the list. Its id is the date, and it applies from that day.
 */

const LIST = new URL('../src/pricing/list-prices.json', import.meta.url)

type Json = Readonly<Record<string, unknown>>

const RATE_KEYS: ReadonlySet<string> = new Set(Object.values(UNIT_PRICES).flatMap(({ key }) => key ?? []))
const TIERS = ['batch', 'flex', 'priority', 'fast', 'ultrafast']
const MEDIA = ['audio', 'image']
/** Newer models of Anthropic cost more in the US. The facts state this once for all of them. */
const GEOGRAPHY = { anthropic: { us: '1.1' } } as const

function ratesOf(facts: Json): Record<string, unknown> {
  const rates: Record<string, unknown> = {}
  for (const [name, value] of Object.entries({ ...facts, ...(facts['units'] as Json | undefined) }))
    if (RATE_KEYS.has(name) && typeof value === 'string') rates[name] = value
  for (const medium of MEDIA)
    for (const [name, value] of Object.entries((facts[medium] ?? {}) as Json))
      if (RATE_KEYS.has(`${medium}_${name}`) && typeof value === 'string') rates[`${medium}_${name}`] = value
  const long = facts['long_context'] as Json | undefined
  return long === undefined ? rates : { ...rates, long_context: ratesOf(long) }
}

function tableOf(facts: Json): Json {
  const long = facts['long_context'] as Json | undefined
  const tiers = TIERS.filter((tier) => tier in facts).map((tier) => [tier, ratesOf(facts[tier] as Json)])
  return {
    ...(long === undefined ? {} : { long_context_above: long['threshold_input_tokens'] }),
    standard: ratesOf(facts),
    ...Object.fromEntries(tiers),
  }
}

/** Null: the facts state no rate that the gateway can bill, such as a price per second of video. */
function modelOf(facts: Json, known: ModelEntry | undefined): ModelEntry | null {
  const rates = tableOf(facts)
  if (Object.keys(rates['standard'] as Json).length === 0) return null
  const provider = String(facts['provider'])
  const geography = GEOGRAPHY[provider as keyof typeof GEOGRAPHY]
  const added = known === undefined && geography !== undefined ? { geography } : {}
  const aliases = facts['aliases'] as readonly string[]
  const stated = ['context_window_tokens', 'max_output_tokens', 'regional_uplift'].filter(
    (name) => (facts[name] ?? null) !== null,
  )
  const model = {
    id: String(facts['id']),
    provider,
    mode: String(facts['mode']),
    ...known,
    ...added,
    ...(aliases.length === 0 ? {} : { aliases }),
    ...Object.fromEntries(stated.map((name) => [name, facts[name]])),
    rates,
    ...('shutdown_date' in facts ? { shutdown_at: facts['shutdown_date'] } : {}),
  }
  return model as ModelEntry
}

/** Only the members that differ. A model that is new has all of them. */
function changeOf(model: ModelEntry, known: ModelEntry | undefined): Json | null {
  if (known === undefined) return { ...model }
  const changed = Object.entries(model).filter(
    ([name, value]) => !isDeepStrictEqual(value, known[name as keyof ModelEntry]),
  )
  return changed.length === 0 ? null : { id: model.id, ...Object.fromEntries(changed) }
}

function main([factsFile, date]: readonly string[]): void {
  if (factsFile === undefined || date === undefined)
    throw new Error('Usage: node scripts/add-prices.ts facts.json 2026-12-01')
  const list = JSON.parse(readFileSync(LIST, 'utf8')) as PriceList
  const loaded = loadLayers({ list, sets: [], overlays: [] })
  if (loaded.kind === 'refused') throw new Error(loaded.problems.join('\n'))
  const current = loaded.value.versions.at(-1)?.entry.models ?? []
  const known = new Map(current.map((model) => [model.id, model]))
  const { models } = JSON.parse(readFileSync(factsFile, 'utf8')) as { models: readonly Json[] }
  const changes = models.flatMap((facts) => {
    const before = known.get(String(facts['id']))
    const model = modelOf(facts, before)
    if (model === null) process.stdout.write(`${String(facts['id'])}: no rate that can be billed, left out\n`)
    return (model === null ? null : changeOf(model, before)) ?? []
  })
  if (changes.length === 0) return void process.stdout.write('Nothing has changed.\n')
  const change = { id: date, effective_from: date, models: changes }
  const next = { ...list, revision: list.revision + 1, changes: [...list.changes, change] }
  const read = readPriceList(next)
  const checked = read.kind === 'read' ? loadLayers({ list: read.value, sets: [], overlays: [] }) : read
  if (checked.kind === 'refused') throw new Error(checked.problems.join('\n'))
  writeFileSync(LIST, `${JSON.stringify(next, null, 2)}\n`)
  process.stdout.write(
    `Revision ${next.revision}: ${changes.length} models changed. Run \`npm run format\`, and check the difference.\n`,
  )
}

main(process.argv.slice(2))
