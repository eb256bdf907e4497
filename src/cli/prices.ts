import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { systemClock } from '../kernel/clock.ts'
import { type Difference, importPrices } from '../pricing/import-prices.ts'
import { JSON_CHARS_MAX } from '../pricing/json-with-lines.ts'
import { loadListPrices } from '../pricing/load-book.ts'
import { findModel, type PriceBook, versionAt } from '../pricing/price-book.ts'
import { showModel, showModels } from './show-prices.ts'

const USAGE = `Usage
  tollgate prices show [model] [--at <date>] [--json]        the prices in force, of all models or of one
  tollgate prices check <file>                               is this overlay file good?
  tollgate prices import <file> [--out <overlay>] [--yes]    make an overlay of a public price catalog
                  [--model <id> …]                           of these models only

  import reads the data file of @pydantic/genai-prices or LiteLLM's model_prices_and_context_window.json, shows
  what would change, and writes after a typed y or with --yes. What the overlay in use changed is carried over.

  --overlay <file>   take this overlay instead of the one in TOLLGATE_PRICES

Exit codes
  0 done   1 failed, or the file is not good   2 the command line is wrong
`

/** Looks at prices and prepares overlays. It changes nothing that a running gateway uses. */
export async function prices(args: readonly string[], overlayPath: string | null = null): Promise<void> {
  const [action, ...rest] = args
  try {
    if (action === 'show') show(rest, overlayPath)
    else if (action === 'check') check(rest)
    else if (action === 'import') await importCatalog(rest, overlayPath)
    else if (action === undefined || action === '--help' || action === '-h') process.stdout.write(USAGE)
    else throw new UsageError(`there is no action "${action}"`)
  } catch (error) {
    if (error instanceof UsageError || (error instanceof TypeError && 'code' in error)) {
      process.stderr.write(`tollgate prices: ${error.message}\n\n${USAGE}`)
      process.exitCode = 2
    } else if (error instanceof Failure) {
      process.stderr.write(`tollgate prices: ${error.message}\n`)
      process.exitCode = 1
    } else throw error
  }
}

class UsageError extends Error {}
class Failure extends Error {}

function show(args: string[], overlayPath: string | null): void {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { at: { type: 'string' }, json: { type: 'boolean' }, overlay: { type: 'string' } },
  })
  const [name, ...more] = positionals
  if (more.length > 0) throw new UsageError('name one model, or none')
  const atMs = values.at === undefined ? systemClock.nowMs() : instantOf(values.at)
  const version = versionAt(bookWith(values.overlay ?? overlayPath), atMs)
  if (name === undefined) {
    const { id, effective_from, tools, models } = version.entry
    if (values.json) printJson({ id, effective_from, tools, models })
    else process.stdout.write(showModels(version))
    return
  }
  const model = findModel(version, name)
  if (model === null) throw new Failure(`there is no price for ${name} in ${version.id}.`)
  if (values.json) printJson({ price_version: version.id, ...model.entry })
  else process.stdout.write(showModel(model, version))
}

function check(args: string[]): void {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} })
  const file = oneFile(positionals)
  const book = bookWith(file)
  const last = book.versions.at(-1) ?? book.versions[0]
  const shipped = bookWith(null).versions[0]
  const added = last.models.filter(({ id }) => !shipped.names.has(id)).length
  const changed = last.models.filter(({ id, entry }) => {
    const before = shipped.names.get(id)?.entry
    return before !== undefined && JSON.stringify(before) !== JSON.stringify(entry)
  }).length
  process.stdout.write(`${file} is good. Models added: ${added}, changed: ${changed}.\n`)
  for (const { id, effectiveFromMs } of book.versions) {
    const from = effectiveFromMs === null ? 'always' : `from ${new Date(effectiveFromMs).toISOString()}`
    process.stdout.write(`  ${id}  ${from}\n`)
  }
}

async function importCatalog(args: string[], overlayPath: string | null): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      out: { type: 'string' },
      yes: { type: 'boolean', default: false },
      model: { type: 'string', multiple: true, default: [] },
      overlay: { type: 'string' },
    },
  })
  const file = oneFile(positionals)
  const nowMs = systemClock.nowMs()
  const result = importPrices(readText(file), {
    shipped: versionAt(bookWith(null), nowMs),
    current: versionAt(bookWith(values.overlay ?? overlayPath), nowMs),
    nowMs,
    only: values.model,
  })
  if (result.kind === 'refused') throw new Failure(`${file} cannot be used:\n${bullets(result.problems)}`)
  for (const note of result.notes) process.stderr.write(`note: ${note}\n`)
  process.stdout.write(showDifferences(result.differences))
  const own = loadListPrices(result.overlay)
  if (own.kind === 'refused') throw new Failure(`${file} gives no good overlay:\n${bullets(own.problems)}`)
  if (result.differences.length === 0 || values.out === undefined) return
  if (!values.yes && !(await confirm(`Write ${values.out}?`)))
    throw new Failure('nothing was written. Add --yes, or answer y on a terminal.')
  writeOverlay(values.out, result.overlay)
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

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}

/** Never over a file that is there: it may hold what somebody wrote by hand. */
function writeOverlay(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' })
  } catch (error) {
    throw new Failure(`${file} cannot be written: ${(error as Error).message}`)
  }
  process.stdout.write(`Wrote ${file}. Set TOLLGATE_PRICES to it.\n`)
}

function bookWith(overlayPath: string | null): PriceBook {
  const loaded = loadListPrices(overlayPath === null ? undefined : readText(overlayPath))
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

function oneFile(positionals: readonly string[]): string {
  const [file, ...more] = positionals
  if (file === undefined || more.length > 0) throw new UsageError('name one file')
  return file
}

function instantOf(text: string): number {
  const ms = /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) throw new UsageError(`--at takes a date such as 2026-12-01, not "${text}"`)
  return ms
}

function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

function bullets(problems: readonly string[]): string {
  return problems.map((problem) => `  - ${problem}`).join('\n')
}
