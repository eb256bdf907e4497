import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { type Command, Option } from 'commander'
import type { PriceBookObject, PricedModel } from '../api/prices.ts'
import { systemClock } from '../kernel/clock.ts'
import { fileProblem } from '../kernel/errors.ts'
import { loadPrices } from '../pricing/load-book.ts'
import { versionAt } from '../pricing/price-book.ts'
import { BUILT_IN_LIST, shippedBook } from '../pricing/price-list.ts'
import { scaleRates } from '../pricing/scale-rates.ts'
import { amountField, type FieldOption, type Listing, registerAll } from './api-command.ts'
import type { Client, CommandOptions } from './client.ts'
import { examples, Failure, UsageError } from './command.ts'
import { connect } from './find-by-name.ts'
import { overlayWarnings } from './overlay-warnings.ts'
import { renderRecord, renderRecords } from './records.ts'
import { JSON_OPTION, outputStyle, PLAIN, print, printData, printResult, shownText } from './terminal.ts'

const PATH = '/gateway/v1/prices'
const SHOW = { examples: ['tollgate prices show', 'tollgate prices show claude-haiku-5-5'] }
const SHOW_SUMMARY = 'show the prices in effect, or all details of one model'
const SET_SUMMARY = 'set the price of a model on all nodes'
const PUSH_SUMMARY =
  'send a list of prices to the gateway: a file, or the list of this version of the command'

const MISSING: Listing = {
  noun: 'models without a price',
  columns: {
    model: 'model',
    surface: 'surface',
    refused: 'refused',
    passed: 'passed',
    last: 'last_at',
    closest: 'closest',
  },
}

/** The standard rates, in USD per million tokens. */
const RATES: readonly FieldOption[] = [
  ['--input <usd>', 'input', 'price of a million input tokens'],
  ['--output <usd>', 'output', 'price of a million output tokens'],
  ['--cache-read <usd>', 'cache_read', 'price of a million cached tokens'],
  ['--cache-write-5m <usd>', 'cache_write_5m', 'price of a million tokens written to a cache of 5 minutes'],
  ['--cache-write-1h <usd>', 'cache_write_1h', 'price of a million tokens written to a cache of an hour'],
  [
    '--cache-write-30m <usd>',
    'cache_write_30m',
    'price of a million tokens written to a cache of 30 minutes',
  ],
]

const MORE: readonly FieldOption[] = [
  [
    '--like <model>',
    'like',
    'start from the entry of this model; rates change in proportion to --input and --output',
  ],
  ['--provider <name>', 'provider', 'openai or anthropic (whoever offers the model, or a similar one)'],
  ['--context-window <tokens>', 'context_window_tokens', 'the largest prompt with its answer'],
  ['--max-output <tokens>', 'max_output_tokens', 'the longest answer'],
  ['--effective-from <time>', 'effective_from', 'when the price begins (now)'],
]

const SET = {
  options: [...RATES, ...MORE],
  examples: [
    'tollgate prices set gpt-6.3-sol --like gpt-6.2-sol',
    'tollgate prices set my-model --input 2 --output 10 --cache-read 0.2',
  ],
}

const PUSH = {
  options: [
    ['--force', 'force', 'accept rates that change by more than a factor of 4'],
    ['--dry-run', 'dry_run', 'show what would change, and change nothing'],
  ] as const,
  examples: ['tollgate prices push --dry-run'],
}

export function register(group: Command): void {
  const [show, set, push] = registerAll(group, 'price_book', [
    ['show [model]', SHOW_SUMMARY, 'GET', PATH, SHOW],
    ['set <model>', SET_SUMMARY, 'PUT', `${PATH}/<model>`, SET],
    ['push [file]', PUSH_SUMMARY, 'POST', `${PATH}/push`, PUSH],
  ])
  registerAll(group, 'list', [
    [
      'missing',
      'models that were asked for and have no price',
      'GET',
      `${PATH}/missing`,
      { listing: MISSING },
    ],
  ])
  show?.alias('list').action(showPrices)
  set?.action(setPrice)
  push?.action(pushPrices)
  registerAll(group, 'price', [
    ['unset <model>', 'end the price that was set for a model', 'GET', PATH],
  ])[0]?.action(unsetPrice)
  group
    .command('check <file>')
    .description('check a price overlay, and show what it changes (local)')
    .option(...JSON_OPTION)
    .addHelpText('after', examples('tollgate prices check overlay.json'))
    .action(checkOverlay)
}

async function setPrice(model: string, options: CommandOptions): Promise<void> {
  const client = await connect(options)
  const given = Object.fromEntries(
    [...RATES, ...MORE].flatMap(([option, field]) => {
      const value = options[new Option(option).attributeName()]
      return value === undefined ? [] : [[field, String(value)]]
    }),
  )
  const like = given['like'] === undefined ? null : await entryOf(client, given['like'])
  const rates = Object.fromEntries(
    RATES.flatMap(([, field]) => (given[field] ? [[field, given[field]]] : [])),
  )
  const limits = ['context_window_tokens', 'max_output_tokens'].flatMap((field) =>
    given[field] === undefined ? [] : [[field, amountField(given[field])]],
  )
  const copied = like === null ? {} : likeBody(like, rates)
  const likeRates = copied.rates
  const body = {
    ...copied,
    ...(given['provider'] === undefined ? {} : { provider: given['provider'] }),
    ...Object.fromEntries(limits),
    ...(likeRates === undefined && Object.keys(rates).length === 0
      ? {}
      : { rates: { ...likeRates, standard: { ...likeRates?.standard, ...rates } } }),
    ...(given['effective_from'] === undefined ? {} : { effective_from: given['effective_from'] }),
  }
  const path = `${PATH}/${encodeURIComponent(model)}` as const
  const hasPrice = like !== null || Object.keys(rates).length > 0
  const { value, text } = await client.request('price', 'PUT', path, { body }).catch((error: unknown) => {
    if (error instanceof UsageError && !hasPrice)
      error.message += ' Give a new model its price: --like, or --input and --output.'
    throw error
  })
  await print(options.json ? `${text}\n` : renderRecord(value, outputStyle(options)))
}

async function entryOf(client: Client, name: string): Promise<PricedModel> {
  const { text } = await client.request('price_book', 'GET', PATH)
  const { models } = JSON.parse(text) as PriceBookObject
  const found = models.find(({ id, aliases }) => id === name || aliases.includes(name))
  if (found === undefined)
    throw new Failure(`There is no price for ${shownText(name)}. \`tollgate prices show\` lists the models.`)
  return found
}

interface CopiedEntry extends Readonly<Record<string, unknown>> {
  readonly rates?: { readonly standard?: Readonly<Record<string, unknown>> }
  readonly endpoints?: object
}

/** Names belong to one model, so they are not copied. */
function likeBody(
  { provider, mode, prices, context_window_tokens: window, max_output_tokens: output }: PricedModel,
  given: Readonly<Record<string, string>>,
): CopiedEntry {
  const { rates = {}, endpoints } = prices as CopiedEntry
  const scaled = <T extends object>(table: T) => scaleRates(table, rates.standard ?? {}, given)
  const tables = {
    rates: scaled(rates),
    ...(endpoints === undefined ? {} : { endpoints: scaled(endpoints) }),
  }
  return { ...prices, ...tables, provider, mode, context_window_tokens: window, max_output_tokens: output }
}

async function unsetPrice(model: string, options: CommandOptions): Promise<void> {
  await (await connect(options)).remove(`${PATH}/${encodeURIComponent(model)}`)
  const text = `The set price of ${shownText(model)} has ended.\n`
  await printResult(options, { object: 'price', id: model, deleted: true }, text)
}

async function pushPrices(file: string | undefined, options: CommandOptions): Promise<void> {
  const list = file === undefined ? BUILT_IN_LIST : readList(file)
  const flags = { force: options['force'] === true, dry_run: options['dryRun'] === true }
  const client = await connect(options)
  const { value, text } = await client.request('price_push', 'POST', `${PATH}/push`, {
    body: { ...list, ...flags },
  })
  if (options.json) return await print(`${text}\n`)
  const { revision, added, changed } = value
  const changes = changed.map((row) => ({
    model: row.model,
    unit: row.unit,
    old: row.old ?? '-',
    new: row.new ?? '-',
  }))
  const table =
    changes.length === 0
      ? ''
      : renderRecords({ model: 'model', rate: 'unit', old: 'old', new: 'new' }, changes, PLAIN)
  const names = added.length === 0 ? '' : `Added: ${added.map((name) => shownText(name)).join(', ')}.\n`
  const done = flags.dry_run ? 'This was a dry run.' : `The gateway uses revision ${revision}.`
  await print(`${names}${table}${names === '' && table === '' ? 'Nothing changes. ' : ''}${done}\n`)
}

function readList(file: string): object {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as object
  } catch (error) {
    if (error instanceof SyntaxError) throw new Failure(`${file} is not JSON: ${error.message}`)
    throw new Failure(`${file} cannot be read: ${fileProblem(error)}.`)
  }
}

const columnsOf = (rates: string) => ({
  model: 'id',
  provider: 'provider',
  input: `${rates}.standard.input`,
  cached: `${rates}.standard.cache_read`,
  output: `${rates}.standard.output`,
})

async function showPrices(name: string | undefined, options: CommandOptions): Promise<void> {
  const client = await connect(options)
  const { value, text } = await client.request('price_book', 'GET', PATH)
  const style = outputStyle(options)
  if (name === undefined) {
    if (options.json) return await printData([`${text}\n`])
    const title = `Prices ${shownText(value.price_version)}, USD per million tokens\n\n`
    return await print(title + renderRecords(columnsOf('prices.rates'), value.models, style))
  }
  const model = await entryOf(client, name)
  await print(options.json ? `${JSON.stringify(model, null, 2)}\n` : renderRecord(model, style))
}

async function checkOverlay(file: string, options: { readonly json?: true }): Promise<void> {
  const { book, overlays } = loadOverlays(file)
  const last = book.versions.at(-1) ?? book.versions[0]
  const nowMs = systemClock.nowMs()
  const shipped = versionAt(shippedBook(), nowMs)
  const added = last.models.filter(({ id }) => !shipped.names.has(id))
  const changed = last.models.filter(({ id, entry }) => {
    const before = shipped.names.get(id)?.entry
    return before !== undefined && !isDeepStrictEqual(before, entry)
  })
  const versions = book.versions.map(({ id, effectiveFromMs: fromMs }) => {
    return `  ${id}${fromMs === null ? '' : `, from ${new Date(fromMs).toISOString()}`}\n`
  })
  const entries = [...added, ...changed].map(({ entry }) => entry)
  const warnings = overlays.flatMap((overlay) => overlayWarnings(overlay, last, shipped, nowMs))
  const ids = (models: typeof added) => models.map(({ id }) => id)
  await printResult(
    options,
    { object: 'price_check', file, added: ids(added), changed: ids(changed), warnings },
    `${file} is valid. Models added: ${added.length}, changed: ${changed.length}.\n${versions.join('')}` +
      `USD per million tokens:\n${renderRecords(columnsOf('rates'), entries, PLAIN)}` +
      warnings.map((text) => `Warning: ${text}\n`).join(''),
  )
}

function loadOverlays(file: string) {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${fileProblem(error)}.`)
  }
  const loaded = loadPrices(text)
  if (loaded.kind === 'read') return loaded.value
  const problems = loaded.problems.map((problem) => `  - ${problem}`)
  throw new Failure(`${file} cannot be used:\n${problems.join('\n')}`)
}
