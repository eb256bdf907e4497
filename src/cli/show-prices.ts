import { factorsIn, MODIFIER_NAMES, MODIFIERS } from '../pricing/modifiers.ts'
import type { ModelPrice, PriceVersion } from '../pricing/price-book.ts'
import { tariffsOf } from '../pricing/price-book.ts'
import type { ModelEntry, RateTableEntry } from '../pricing/price-file.ts'

/** One line per model: enough to see what there is, and to choose which one to look at. */
export function showModels(version: PriceVersion): string {
  const rows = version.models.map(({ entry }) => rowOf(entry))
  const head = ['model', 'provider', 'input', 'cached', 'output', 'other tiers']
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => (at >= 2 && at <= 4 ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd()
  return `${titleOf(version)}, USD per million tokens\n\n${[head, ...rows].map(line).join('\n')}\n`
}

function rowOf(entry: ModelEntry): string[] {
  const { input, cache_read: cached, output } = entry.rates.standard
  const tiers = tariffsOf(entry.rates)
    .map(([tier]) => tier)
    .filter((tier) => tier !== 'standard')
  const long = entry.rates.long_context_above === undefined ? [] : ['long context']
  return [
    entry.id,
    entry.provider,
    input ?? '-',
    cached ?? '-',
    output ?? '-',
    [...tiers, ...long, ...(entry.retired ? ['retired'] : [])].join(' '),
  ]
}

/** Everything that the book says about a model, as it stands in the file. */
export function showModel(model: ModelPrice, version: PriceVersion): string {
  const { entry } = model
  const lines = [
    `${entry.id} (${entry.provider}), ${titleOf(version).toLowerCase()}`,
    `  mode             ${model.mode}${entry.retired ? ', retired' : ''}`,
    `  aliases          ${entry.aliases?.join(', ') || '-'}`,
    `  context window   ${entry.context_window_tokens ?? 'unknown'}`,
    `  output at most   ${entry.max_output_tokens ?? 'unknown'}`,
  ]
  const defaultOf = [...version.defaultModels].filter(([, name]) => version.names.get(name) === model)
  if (defaultOf.length > 0) lines.push(`  default of       ${defaultOf.map(([path]) => path).join(', ')}`)
  if (model.searchesEachCall) lines.push('  web searches     one for each chat')
  for (const member of MODIFIER_NAMES)
    for (const [name, factor] of factorsIn(entry, member))
      lines.push(`  ${`${MODIFIERS[member].label} ${name}`.padEnd(16)} × ${factor}`)
  for (const [key, price] of Object.entries(entry.tools ?? {}))
    lines.push(`  ${key.padEnd(24)} ${price ?? '-'}`)
  lines.push(...tableLines(entry.rates, ''))
  for (const [endpoint, table] of Object.entries(entry.endpoints ?? {}))
    lines.push(...tableLines(table, ` on ${endpoint}`))
  return `${lines.join('\n')}\n`
}

function tableLines(table: RateTableEntry, where: string): string[] {
  return tariffsOf(table).flatMap(([tier, { long_context: long, ...short }]) => [
    `\n  ${tier}${where}`,
    ...rateLines(short),
    ...(long === undefined ? [] : [`  ${tier}${where}, prompts above ${table.long_context_above} tokens`]),
    ...rateLines(long ?? {}),
  ])
}

function rateLines(rates: Readonly<Record<string, string | null | undefined>>): string[] {
  return Object.entries(rates).map(([key, price]) => `    ${key.padEnd(30)} ${price ?? '-'}`)
}

function titleOf(version: PriceVersion): string {
  const from = version.effectiveFromMs
  return `Prices ${version.id}${from === null ? '' : `, in force from ${new Date(from).toISOString()}`}`
}
