import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { parseTime } from '../api/fields.ts'
import { readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { loadPrices } from '../pricing/load-book.ts'
import {
  findModel,
  type PriceBook,
  type PriceVersion,
  suggestModel,
  tariffsOf,
  versionAt,
} from '../pricing/price-book.ts'
import type { ModelEntry } from '../pricing/price-file.ts'
import { examples, Failure, UsageError } from './command.ts'
import { renderRecord, renderRecords } from './records.ts'
import { PLAIN, print, shownText } from './terminal.ts'

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

async function showPrices(name: string | undefined, { at, overlay, json }: ShowOptions): Promise<void> {
  const atMs = at === undefined ? systemClock.nowMs() : parseTime(at)?.fromMs
  if (atMs === undefined) throw new UsageError('--at must be a date such as 2026-12-01.')
  const version = versionAt(bookWith(overlay ?? readConfig(process.env).prices?.file), atMs)
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
  const title = `${model.id} (${model.entry.provider}), prices ${titleOf(version)}, ${RATES}`
  await print(
    json
      ? asJson({ price_version: version.id, ...model.entry })
      : `${title}\n\n${renderRecord(model.entry, PLAIN)}`,
  )
}

const RATES = 'USD per million tokens unless a name says otherwise (`_per_…`)'

async function checkOverlay(file: string): Promise<void> {
  const book = bookWith(file)
  const last = book.versions.at(-1) ?? book.versions[0]
  const shipped = bookWith(undefined).versions[0]
  const added = last.models.filter(({ id }) => !shipped.names.has(id)).length
  const changed = last.models.filter(({ id, entry }) => {
    const before = shipped.names.get(id)?.entry
    return before !== undefined && JSON.stringify(before) !== JSON.stringify(entry)
  }).length
  const versions = book.versions.map((version) => `  ${titleOf(version)}\n`)
  await print(`${file} is valid. Models added: ${added}, changed: ${changed}.\n${versions.join('')}`)
}

function bookWith(overlayPath: string | undefined): PriceBook {
  const loaded = loadPrices(overlayPath === undefined ? undefined : readText(overlayPath))
  if (loaded.kind === 'book') return loaded.book
  const problems = loaded.problems.map((problem) => `  - ${problem}`)
  throw new Failure(`${overlayPath} cannot be used:\n${problems.join('\n')}`)
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${(error as Error).message}`)
  }
}

function asJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

const COLUMNS = {
  model: 'id',
  provider: 'provider',
  input: 'rates.standard.input',
  cached: 'rates.standard.cache_read',
  output: 'rates.standard.output',
  'other tiers': 'tiers',
}

/** One line per model. */
function showModels(version: PriceVersion): string {
  const rows = version.models.map(({ entry }) => ({ ...entry, tiers: otherTiers(entry) }))
  return `Prices ${titleOf(version)}, USD per million tokens\n\n${renderRecords(COLUMNS, rows, PLAIN)}`
}

function otherTiers({ rates, retired }: ModelEntry): string {
  const tiers = tariffsOf(rates).map(([tier]) => tier)
  const long = rates.long_context_above === undefined ? [] : ['long context']
  const all = [...tiers.filter((tier) => tier !== 'standard'), ...long, ...(retired ? ['retired'] : [])]
  return all.join(' ')
}

function titleOf({ id, effectiveFromMs: fromMs }: PriceVersion): string {
  return `${id}${fromMs === null ? '' : `, from ${new Date(fromMs).toISOString()}`}`
}
