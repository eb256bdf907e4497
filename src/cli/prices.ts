import { readFileSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { loadPrices } from '../pricing/load-book.ts'
import {
  findModel,
  type ModelPrice,
  type PriceBook,
  type PriceVersion,
  suggestModel,
  tariffsOf,
  versionAt,
} from '../pricing/price-book.ts'
import type { ModelEntry, RateTableEntry } from '../pricing/price-file.ts'
import { examples, Failure, UsageError } from './command.ts'
import { left, PLAIN, print, renderTable, right, shownText } from './terminal.ts'

interface ShowOptions {
  readonly at?: string
  readonly overlay?: string
  readonly json?: true
}

/** Shows prices and checks overlays, from files. Does not affect a running gateway. */
export function register(group: Command): void {
  group
    .command('show [model]')
    .description('show the prices of all models, or everything about one')
    .option('--at <date>', 'the prices of another day (UTC), such as 2026-12-01')
    .option('--overlay <file>', 'use this overlay instead of TOLLGATE_PRICES')
    .option('--json', 'print JSON')
    .addHelpText('after', examples('tollgate prices show claude-haiku-5-5 --at 2026-12-01'))
    .action(showPrices)
  group
    .command('check <file>')
    .description('check a price overlay, and show what it changes')
    .addHelpText('after', examples('tollgate prices check overlay.json'))
    .action(checkOverlay)
}

async function showPrices(name: string | undefined, options: ShowOptions): Promise<void> {
  const { at, json } = options
  const atMs = at === undefined ? systemClock.nowMs() : instantOf(at)
  const version = versionAt(bookWith(options.overlay ?? readConfig(process.env).prices?.file), atMs)
  if (name === undefined) {
    const { id, effective_from, tools, models } = version.entry
    return await print(json ? asJson({ id, effective_from, tools, models }) : showModels(version))
  }
  const model = findModel(version, name)
  if (model === null) {
    const meant = suggestModel(version.names.keys(), name)
    const hint = meant === null ? '`tollgate prices show` lists the models.' : `Did you mean ${meant}?`
    throw new Failure(`There is no price for ${shownText(name)} in ${version.id}. ${hint}`)
  }
  await print(json ? asJson({ price_version: version.id, ...model.entry }) : showModel(model, version))
}

async function checkOverlay(file: string): Promise<void> {
  const book = bookWith(file)
  const last = book.versions.at(-1) ?? book.versions[0]
  const shipped = bookWith(undefined).versions[0]
  const added = last.models.filter(({ id }) => !shipped.names.has(id)).length
  const changed = last.models.filter(({ id, entry }) => {
    const before = shipped.names.get(id)?.entry
    return before !== undefined && JSON.stringify(before) !== JSON.stringify(entry)
  }).length
  const versions = book.versions.map(({ id, effectiveFromMs: fromMs }) => {
    const from = fromMs === null ? 'always' : `from ${new Date(fromMs).toISOString()}`
    return `  ${id}  ${from}\n`
  })
  await print(`${file} is valid. Models added: ${added}, changed: ${changed}.\n${versions.join('')}`)
}

const FILE_BYTES_MAX = 16 * 1024 * 1024

function bookWith(overlayPath: string | undefined): PriceBook {
  const loaded = loadPrices(overlayPath === undefined ? undefined : readText(overlayPath))
  if (loaded.kind === 'refused')
    throw new Failure(`${overlayPath} cannot be used:\n${bullets(loaded.problems)}`)
  return loaded.book
}

function readText(file: string): string {
  try {
    if (statSync(file).size > FILE_BYTES_MAX) throw new Error('it is larger than 16 MiB')
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${(error as Error).message}`)
  }
}

function instantOf(text: string): number {
  const ms = /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/.test(text) ? Date.parse(text) : Number.NaN
  // Date.parse turns the 31st of a shorter month into the 1st of the next.
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text.slice(0, 10))
    throw new UsageError('--at must be a date such as 2026-12-01.')
  return ms
}

function asJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

function bullets(problems: readonly string[]): string {
  return problems.map((problem) => `  - ${problem}`).join('\n')
}

const COLUMNS = [
  left('model'),
  left('provider'),
  right('input'),
  right('cached'),
  right('output'),
  left('other tiers'),
]

/** One line per model. */
function showModels(version: PriceVersion): string {
  const rows = version.models.map(({ entry }) => rowOf(entry))
  return `${titleOf(version)}, USD per million tokens\n\n${renderTable(COLUMNS, rows, PLAIN)}`
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

/** The model's entry in the price book. */
function showModel(model: ModelPrice, version: PriceVersion): string {
  const { entry } = model
  const lines = [
    `${entry.id} (${entry.provider}), ${titleOf(version, 'prices')}`,
    '  Rates are USD per million tokens, unless their name says otherwise (`_per_…`).',
    `  mode             ${model.mode}${entry.retired ? ', retired' : ''}`,
    `  aliases          ${entry.aliases?.join(', ') || '-'}`,
    `  context window   ${entry.context_window_tokens ?? 'unknown'}`,
    `  output at most   ${entry.max_output_tokens ?? 'unknown'}`,
  ]
  const defaultOf = [...version.defaultModels].filter(([, name]) => version.names.get(name) === model)
  if (defaultOf.length > 0) lines.push(`  default of       ${defaultOf.map(([path]) => path).join(', ')}`)
  if (model.searchesEachCall) lines.push('  web searches     one for each chat')
  for (const [name, factor] of Object.entries(entry.geography ?? {}))
    lines.push(`  ${`geography ${name}`.padEnd(16)} × ${factor}`)
  if (typeof entry.regional_uplift === 'string')
    lines.push(`  ${'regional hosts '.padEnd(16)} × ${entry.regional_uplift}`)
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

function titleOf({ id, effectiveFromMs: fromMs }: PriceVersion, noun = 'Prices'): string {
  return `${noun} ${id}${fromMs === null ? '' : `, valid from ${new Date(fromMs).toISOString()}`}`
}
