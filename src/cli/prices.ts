import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { type Difference, importPrices } from '../pricing/import-prices.ts'
import { JSON_CHARS_MAX } from '../pricing/json-with-lines.ts'
import { loadListPrices } from '../pricing/load-book.ts'
import { factorsIn, MODIFIER_NAMES, MODIFIERS } from '../pricing/modifiers.ts'
import {
  findModel,
  type ModelPrice,
  type PriceBook,
  type PriceVersion,
  tariffsOf,
  versionAt,
} from '../pricing/price-book.ts'
import type { ModelEntry, RateTableEntry } from '../pricing/price-file.ts'
import { defineCommand, defineGroup, Failure, flag, option, UsageError } from './command.ts'
import { confirm, left, PLAIN, print, renderTable, right } from './terminal.ts'

const overlay = option('<file>', 'take this overlay instead of the one in TOLLGATE_PRICES')
const exitCodes = '0 done   1 failed, or the file is not good   2 the command line is wrong'

const show = defineCommand({
  name: 'prices show',
  summary: ['[model] [--at <date>] [--json]', 'the prices in force, of all models or of one'],
  usage: 'tollgate prices show [model] [--at <date>] [--overlay <file>] [--json]',
  about: 'Shows the prices in force: of all models in a line each, or all that the book says of one.',
  options: {
    at: option('<date>', 'the prices of another day, such as 2026-12-01, in UTC'),
    overlay,
    json: flag('print JSON instead'),
  },
  examples: ['tollgate prices show', 'tollgate prices show claude-haiku-5-5 --at 2026-12-01'],
  exitCodes,
  takesArguments: true,
  async run(values, [name, ...more]) {
    if (more.length > 0) throw new UsageError('name one model, or none')
    const atMs = values.at === undefined ? systemClock.nowMs() : instantOf(values.at)
    const version = versionAt(bookWith(overlayInUse(values)), atMs)
    if (name === undefined) {
      const { id, effective_from, tools, models } = version.entry
      return await print(values.json ? asJson({ id, effective_from, tools, models }) : showModels(version))
    }
    const model = findModel(version, name)
    if (model === null) throw new Failure(`there is no price for ${name} in ${version.id}.`)
    const { entry } = model
    await print(values.json ? asJson({ price_version: version.id, ...entry }) : showModel(model, version))
  },
})

const check = defineCommand({
  name: 'prices check',
  summary: ['<file>', 'is this overlay file good?'],
  usage: 'tollgate prices check <file>',
  about: 'Reads an overlay as a gateway would, and says what it changes and from when on.',
  options: {},
  examples: ['tollgate prices check overlay.json'],
  exitCodes,
  takesArguments: true,
  async run(_, args) {
    const file = oneFile(args)
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
    await print(`${file} is good. Models added: ${added}, changed: ${changed}.\n${versions.join('')}`)
  },
})

const importCatalog = defineCommand({
  name: 'prices import',
  summary: ['<file> [--out <overlay>] [--yes]', 'make an overlay of a public price catalog'],
  usage: 'tollgate prices import <file> [--out <overlay>] [--model <id> …] [--overlay <file>] [--yes]',
  about: `Reads the data file of @pydantic/genai-prices or LiteLLM's model_prices_and_context_window.json, shows what would
change, and writes after a typed y or with --yes. What the overlay in use changed is carried over.`,
  options: {
    out: option('<overlay>', 'write the overlay to this file, which must not be there yet'),
    model: { ...option('<id>', 'only this model; may be given several times'), multiple: true },
    overlay,
    yes: flag('do not ask before writing'),
  },
  examples: ['tollgate prices import model_prices_and_context_window.json --out overlay.json'],
  exitCodes,
  takesArguments: true,
  async run(values, args) {
    const file = oneFile(args)
    const nowMs = systemClock.nowMs()
    const result = importPrices(readText(file), {
      shipped: versionAt(bookWith(undefined), nowMs),
      current: versionAt(bookWith(overlayInUse(values)), nowMs),
      nowMs,
      only: values.model ?? [],
    })
    if (result.kind === 'refused') throw new Failure(`${file} cannot be used:\n${bullets(result.problems)}`)
    for (const note of result.notes) process.stderr.write(`note: ${note}\n`)
    await print(showDifferences(result.differences))
    const own = loadListPrices(result.overlay)
    if (own.kind === 'refused') throw new Failure(`${file} gives no good overlay:\n${bullets(own.problems)}`)
    if (result.differences.length === 0 || values.out === undefined) return
    if (!values.yes && !(await confirm(`Write ${values.out}?`)))
      throw new Failure('nothing was written. Add --yes, or answer y on a terminal.')
    writeOverlay(values.out, result.overlay)
    await print(`Wrote ${values.out}. Set TOLLGATE_PRICES to it.\n`)
  },
})

/** Looks at prices and prepares overlays. It changes nothing that a running gateway uses. */
export const command = defineGroup(
  'prices',
  'Each has options of its own: tollgate prices show --help, and so on.',
  [show, check, importCatalog],
)

function overlayInUse(values: { readonly overlay: string | undefined }): string | undefined {
  return values.overlay ?? readConfig(process.env).prices?.file
}

function showDifferences(differences: readonly Difference[]): string {
  if (differences.length === 0) return 'The prices in force are those of the file: nothing to change.\n'
  const models = Map.groupBy(differences, ({ model }) => model)
  let text = ''
  for (const [model, members] of models) {
    const isNew = members.some(({ member, from }) => member === 'id' && from === null)
    text += isNew ? `${model} (new)\n` : `${model}\n`
    for (const { member, from, to } of members)
      text += `  ${member.padEnd(44)} ${from ?? '-'} → ${to ?? '-'}\n`
  }
  return `${text}Differences: ${differences.length}, in models: ${models.size}.\n`
}

/** An existing file is never overwritten: it may have been written by hand. */
function writeOverlay(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' })
  } catch (error) {
    throw new Failure(`${file} cannot be written: ${(error as Error).message}`)
  }
}

function bookWith(overlayPath: string | undefined): PriceBook {
  const loaded = loadListPrices(overlayPath === undefined ? undefined : readText(overlayPath))
  if (loaded.kind === 'refused')
    throw new Failure(`${overlayPath} cannot be used:\n${bullets(loaded.problems)}`)
  return loaded.book
}

function readText(file: string): string {
  try {
    if (statSync(file).size > JSON_CHARS_MAX) throw new Error('it is larger than 16 MiB')
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${(error as Error).message}`)
  }
}

function oneFile(args: readonly string[]): string {
  const [file, ...more] = args
  if (file === undefined || more.length > 0) throw new UsageError('name one file')
  return file
}

function instantOf(text: string): number {
  const ms = /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/.test(text) ? Date.parse(text) : Number.NaN
  // Date.parse takes the 31st of a shorter month for the 1st of the next.
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text.slice(0, 10))
    throw new UsageError(`--at takes a date such as 2026-12-01, not "${text}"`)
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

/** One line per model: enough to see which models there are, and to choose the model to look at. */
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

/** Everything that the book says about a model, as it stands in the file. */
function showModel(model: ModelPrice, version: PriceVersion): string {
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
