import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { type Config, readConfig } from '../config.ts'
import { refuseUpgradeBeside } from '../installation.ts'
import { systemClock } from '../kernel/clock.ts'
import { formatUsd } from '../kernel/money.ts'
import {
  type Booked,
  type CurrentPrices,
  creditOf,
  type RerateCandidate,
  type RerateLine,
  type RerateSelection,
  RerateSummary,
  type RerateWriter,
  rerateCall,
} from '../ledger/rerate.ts'
import { createRateAgain } from '../pricing/load-book.ts'
import { versionAt } from '../pricing/price-book.ts'
import { readPricing } from '../read-pricing.ts'
import { openRerateWriter as openWriterInFile } from '../store/sqlite/database.ts'
import { examples, UsageError } from './command.ts'
import { openLedger } from './open-database.ts'
import {
  confirm,
  counted,
  createProgress,
  left,
  PLAIN,
  print,
  printUnread,
  renderTable,
  right,
  shownCount,
  shownText,
} from './terminal.ts'

interface Options {
  readonly from: string
  readonly to?: string
  readonly model?: string
  readonly unpricedOnly?: true
  readonly apply?: true
  readonly charge?: true
  readonly yes?: true
}

/** Rerates settled calls with the current price book, and shows or posts the differences. Records of calls never change. */
export function register(command: Command): void {
  command
    .requiredOption('--from <time>', 'calls admitted then or later (UTC): 2026-11-01 or 2026-11-01T12:00:00Z')
    .option('--to <time>', 'calls admitted before then; of a day, the whole day (now)')
    .option('--model <id>', 'only calls that asked for this model or were served by it')
    .option('--unpriced-only', 'only calls that had no price, or not for everything')
    .option('--apply', 'book the difference of each call, once: lower costs are credited')
    .option('--charge', 'also charge higher costs; without it they are only reported')
    .option('--yes', 'do not ask before booking')
    .addHelpText(
      'after',
      examples(
        'tollgate rerate --from 2026-11-01 --unpriced-only',
        'tollgate rerate --from 2026-11-01 --to 2026-11-30 --apply',
      ),
    )
    .action(rerate)
}

async function rerate(options: Options): Promise<void> {
  const selection = selectionOf(options)
  const { apply = false, charge = false, yes = false } = options
  if (apply && !yes && !process.stdin.isTTY)
    throw new UsageError('there is no terminal to ask on: --apply needs --yes')
  const config = readConfig(process.env)
  const prices = await currentPrices(config)
  const writer = await openLedger(config, {
    inFile: async (file) => {
      await refuseUpgradeBeside(config.dataDir)
      return await openWriterInFile(file, systemClock)
    },
    inDatabase: async (url) => {
      const { openRerateWriter } = await import('../store/postgres/ledger.ts')
      return await openRerateWriter(url, systemClock)
    },
  })
  try {
    await rerateCalls({ apply, charge, yes, selection }, prices, writer)
  } finally {
    await writer.close()
  }
}

function selectionOf(values: Options): RerateSelection {
  const selection = {
    fromMs: instantOf('--from', values.from).startMs,
    toMs: values.to === undefined ? systemClock.nowMs() + 1 : instantOf('--to', values.to).endMs,
    model: values.model ?? null,
    unpricedOnly: values.unpricedOnly === true,
  }
  if (selection.fromMs >= selection.toMs) throw new UsageError('--from is not before --to')
  return selection
}

const DAY_MS = 86_400_000

/** A day has a start and an end; a timestamp is both. */
function instantOf(option: string, text: string): { readonly startMs: number; readonly endMs: number } {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const ms =
    isDay || /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z$/.test(text) ? Date.parse(text) : Number.NaN
  // Date.parse turns the 31st of a shorter month into the 1st of the next.
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text.slice(0, 10)) {
    throw new UsageError(
      `${option} must be a date such as 2026-11-01 or an instant such as 2026-11-01T12:00:00Z`,
    )
  }
  return { startMs: ms, endMs: isDay ? ms + DAY_MS : ms }
}

interface Request {
  readonly selection: RerateSelection
  readonly apply: boolean
  readonly charge: boolean
  readonly yes: boolean
}

async function rerateCalls(request: Request, prices: CurrentPrices, writer: RerateWriter): Promise<void> {
  const { selection, apply, charge, yes } = request
  const summary = new RerateSummary()
  await passOver('Pricing', selection, writer, async (calls) => {
    for (const call of calls) summary.add(rerateCall(call, prices))
  })
  // Without a confirmation prompt, the summary need not have a reader.
  await (apply && yes ? printUnread : print)(describeSummary(summary, charge))
  const toBook = summary.creditCalls + (charge ? summary.chargeCalls : 0)
  if (toBook === 0) return
  if (!apply) {
    await print('Nothing is booked without --apply.\n')
    return
  }
  if (!yes && !(await confirm('Book this?'))) {
    process.exitCode = 1
    await print('Nothing was booked.\n')
    return
  }
  await print(describeBooked(await book(request, prices, writer)))
}

/** The pause between batches lets a gateway get the locks that it waits for: SQLite's lock has no queue. */
const PAUSE_MS = 20

/** Prices the calls a second time instead of storing the first result, so that memory stays bounded. */
async function book(
  { selection, charge }: Request,
  prices: CurrentPrices,
  writer: RerateWriter,
): Promise<Booked> {
  let calls = 0
  let nanos = 0n
  await passOver('Booking', selection, writer, async (candidates) => {
    const changed = candidates
      .map((call) => rerateCall(call, prices))
      .filter((rerated) => rerated.kind === 'changed')
      .filter((rerated) => charge || creditOf(rerated) > 0n)
    if (changed.length === 0) return
    const booked = await writer.book(changed)
    calls += booked.calls
    nanos += booked.nanos
    await pause(PAUSE_MS)
  })
  return { calls, nanos }
}

async function passOver(
  label: string,
  selection: RerateSelection,
  writer: RerateWriter,
  work: (calls: readonly RerateCandidate[]) => Promise<void>,
): Promise<void> {
  const progress = createProgress(label)
  try {
    const total = await writer.count(selection)
    let done = 0
    for (let calls = await writer.read(selection, ''); calls.length > 0; ) {
      await work(calls)
      done += calls.length
      progress.show(done, total)
      calls = await writer.read(selection, calls.at(-1)?.id ?? '')
    }
  } finally {
    progress.end()
  }
}

/** The changes that the prices would make, as lines of text. Amounts are USD. */
function describeSummary(summary: RerateSummary, charge: boolean): string {
  const { creditCalls, creditNanos, chargeCalls, chargeNanos, unchanged } = summary
  let text = summary.total.calls === 0 ? 'No cost changes.\n' : table(summary)
  if (creditCalls > 0)
    text += `To credit: ${formatUsd(creditNanos)} USD for ${counted(creditCalls, 'call')}.\n`
  if (chargeCalls > 0) {
    const amount = `${formatUsd(chargeNanos)} USD for ${counted(chargeCalls, 'call')}`
    text += charge ? `To charge: ${amount}.\n` : `Not charged: ${amount} that cost more. --charge posts it.\n`
  }
  for (const [why, label, more = ''] of UNCHANGED) {
    if (unchanged[why] > 0) text += `${label}: ${counted(unchanged[why], 'call')}.${more}\n`
  }
  return text
}

/** Why costs are unchanged, in the order of output. */
const UNCHANGED: readonly (readonly [keyof RerateSummary['unchanged'], string, string?])[] = [
  ['same_price', 'Unchanged'],
  ['no_usage', 'Left as they are, without usage'],
  ['no_price', 'Left as they are, still without a price'],
  ['credited_back', 'Left as they are, credited back before'],
  ['rerated_before', 'Left as they are, priced with this version once before'],
  ['unreadable', 'Left as they are, not readable', ' tollgate audit names the first.'],
]

function describeBooked({ calls: count, nanos }: Booked): string {
  if (count === 0) return 'Nothing was booked: all of it had been booked before.\n'
  const net = nanos < 0n ? `${formatUsd(-nanos)} USD charged` : `${formatUsd(nanos)} USD credited`
  return `Booked ${counted(count, 'call')}: ${net} in all.\n`
}

const COLUMNS = [
  left('model'),
  ...['calls', 'old list', 'new list', 'old cost', 'new cost', 'difference'].map(right),
]

function table(summary: RerateSummary): string {
  const byName = [...summary.models].sort(([a], [b]) => (a < b ? -1 : 1))
  const rows = [...byName.map(([model, line]) => cells(model, line)), cells('total', summary.total)]
  return renderTable(COLUMNS, rows, PLAIN)
}

function cells(model: string, line: RerateLine): string[] {
  return [
    shownText(model),
    shownCount(line.calls),
    formatUsd(line.oldListNanos),
    formatUsd(line.newListNanos),
    formatUsd(line.oldCostNanos),
    formatUsd(line.newCostNanos),
    formatUsd(line.newCostNanos - line.oldCostNanos),
  ]
}

/** The configured price book. */
async function currentPrices(config: Config): Promise<CurrentPrices> {
  const { book } = await readPricing(config)
  const texts = new Map(book.versions.map((version) => [version.id, JSON.stringify(version.entry)]))
  return {
    versionAt(atMs) {
      const { id } = versionAt(book, atMs)
      return { id, json: texts.get(id) ?? '' }
    },
    rateAgain: createRateAgain(),
  }
}
