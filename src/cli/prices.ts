import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Command } from 'commander'
import type { PriceBookObject } from '../api/prices.ts'
import { systemClock } from '../kernel/clock.ts'
import { fileProblem } from '../kernel/errors.ts'
import { loadPrices } from '../pricing/load-book.ts'
import { type PriceBook, versionAt } from '../pricing/price-book.ts'
import { shippedBook } from '../pricing/price-list.ts'
import { registerAll } from './api-command.ts'
import type { Exact, Options } from './client.ts'
import { examples, Failure } from './command.ts'
import { connect } from './find-by-name.ts'
import { renderRecord, renderRecords } from './records.ts'
import { outputStyle, PLAIN, print, printData, shownText } from './terminal.ts'

const PATH = '/gateway/v1/prices'
const SHOW = { examples: ['tollgate prices show', 'tollgate prices show claude-haiku-5-5'] }
const SHOW_SUMMARY = 'show the prices in effect, or all details of one model'

export function register(group: Command): void {
  const [show] = registerAll(group, 'price_book', [['show [model]', SHOW_SUMMARY, `GET ${PATH}`, SHOW]])
  show?.action(showPrices)
  group
    .command('check <file>')
    .description('check a price overlay, and show what it changes (local)')
    .addHelpText('after', examples('tollgate prices check overlay.json'))
    .action(checkOverlay)
}

const columnsOf = (rates: string) => ({
  model: 'id',
  provider: 'provider',
  input: `${rates}.standard.input`,
  cached: `${rates}.standard.cache_read`,
  output: `${rates}.standard.output`,
})

async function showPrices(name: string | undefined, options: Options): Promise<void> {
  const client = await connect(options)
  const { value, text } = await client.request<Exact<PriceBookObject>>('price_book', 'GET', PATH)
  const style = outputStyle(options)
  if (name === undefined) {
    if (options.json) return await printData([`${text}\n`])
    const title = `Prices ${shownText(value.price_version)}, USD per million tokens\n\n`
    return await print(title + renderRecords(columnsOf('prices.rates'), value.models, style))
  }
  const model = value.models.find(({ id, aliases }) => id === name || aliases.includes(name))
  if (model === undefined)
    throw new Failure(`There is no price for ${shownText(name)}. \`tollgate prices show\` lists the models.`)
  await print(options.json ? `${JSON.stringify(model, null, 2)}\n` : renderRecord(model, style))
}

async function checkOverlay(file: string): Promise<void> {
  const book = loadBook(file)
  const last = book.versions.at(-1) ?? book.versions[0]
  const shipped = versionAt(shippedBook(), systemClock.nowMs())
  const added = last.models.filter(({ id }) => !shipped.names.has(id))
  const changed = last.models.filter(({ id, entry }) => {
    const before = shipped.names.get(id)?.entry
    return before !== undefined && !isDeepStrictEqual(before, entry)
  })
  const versions = book.versions.map(({ id, effectiveFromMs: fromMs }) => {
    return `  ${id}${fromMs === null ? '' : `, from ${new Date(fromMs).toISOString()}`}\n`
  })
  const entries = [...added, ...changed].map(({ entry }) => entry)
  await print(
    `${file} is valid. Models added: ${added.length}, changed: ${changed.length}.\n${versions.join('')}` +
      `USD per million tokens:\n${renderRecords(columnsOf('rates'), entries, PLAIN)}`,
  )
}

function loadBook(file: string): PriceBook {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${fileProblem(error)}.`)
  }
  const loaded = loadPrices(text)
  if (loaded.kind === 'book') return loaded.book
  const problems = loaded.problems.map((problem) => `  - ${problem}`)
  throw new Failure(`${file} cannot be used:\n${problems.join('\n')}`)
}
