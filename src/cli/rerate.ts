import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { parseTime, type Time } from '../api/fields.ts'
import { type Config, readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { firstUlid } from '../kernel/ids.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import {
  type Booked,
  type ChangedCall,
  type CurrentPrices,
  creditOf,
  type RerateCandidate,
  rerateCall,
  type UnchangedBecause,
} from '../ledger/rerate.ts'
import { createRateAgain } from '../pricing/load-book.ts'
import { versionAt } from '../pricing/price-book.ts'
import { readPricing } from '../read-pricing.ts'
import type { Store } from '../store/store.ts'
import { examples, UsageError } from './command.ts'
import { openDatabase } from './open-database.ts'
import {
  counted,
  createProgress,
  PLAIN,
  print,
  printUnread,
  renderTable,
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
    .option('--yes', 'confirms --apply')
    .addHelpText(
      'after',
      examples(
        'tollgate rerate --from 2026-11-01 --unpriced-only',
        'tollgate rerate --from 2026-11-01 --to 2026-11-30 --apply --yes',
      ),
    )
    .action(rerate)
}

async function rerate(options: Options): Promise<void> {
  const selection = selectionOf(options)
  const { apply = false, charge = false, yes = false } = options
  if (apply && !yes)
    throw new UsageError(
      '--apply also needs --yes. Run the command without --apply first to check the differences.',
    )
  const config = readConfig(process.env)
  const prices = await currentPrices(config)
  const { store } = await openDatabase(config)
  try {
    await rerateCalls({ apply, charge, selection }, prices, store)
  } finally {
    await store.close()
  }
}

/** The calls to rerate, by admission time; `toMs` is exclusive. */
interface Selection {
  readonly fromMs: number
  readonly toMs: number
  /** Exact name of the requested or served model. Null: all models. */
  readonly model: string | null
  readonly unpricedOnly: boolean
}

function selectionOf({ from, to, model, unpricedOnly }: Options): Selection {
  const { fromMs } = timeOf('--from', from)
  const until = to === undefined ? { fromMs: systemClock.nowMs() + 1, lengthMs: 0 } : timeOf('--to', to)
  const toMs = until.fromMs + until.lengthMs
  if (fromMs >= toMs) throw new UsageError('--from is not before --to')
  return { fromMs, toMs, model: model ?? null, unpricedOnly: unpricedOnly === true }
}

function timeOf(option: string, text: string): Time {
  const time = parseTime(text)
  if (time === null)
    throw new UsageError(
      `${option} must be a date such as 2026-11-01 or a time such as 2026-11-01T12:00:00Z.`,
    )
  return time
}

interface Request {
  readonly selection: Selection
  readonly apply: boolean
  readonly charge: boolean
}

type RerateStore = Pick<Store, 'readSettledCalls' | 'bookRerates' | 'storePriceVersion'>

async function rerateCalls(request: Request, prices: CurrentPrices, store: RerateStore): Promise<void> {
  const { selection, apply, charge } = request
  const summary = createSummary()
  await passOver('Calls priced', selection, store, async (calls) => {
    for (const call of calls) summary.add(call, rerateCall(call, prices))
  })
  // What was asked for is booked although the reader has gone.
  await (apply ? printUnread : print)(summary.describe(charge))
  if (!summary.isAnyBooked(charge)) return
  if (!apply) {
    await print('Nothing is booked without --apply.\n')
    return
  }
  await print(describeBooked(await book(request, prices, store)))
}

/** The pause between batches lets a gateway get the locks that it waits for: SQLite's lock has no queue. */
const PAUSE_MS = 20

/** Calls per transaction: few enough that a slow database books them within the deadline of a statement. */
const BOOKED_AT_ONCE = 200

/** Prices the calls a second time instead of storing the first result, so that memory stays bounded. */
async function book(
  { selection, charge }: Request,
  prices: CurrentPrices,
  store: RerateStore,
): Promise<Booked> {
  let calls = 0
  let nanos = 0n
  const stored = new Set<string>()
  await passOver('Calls booked', selection, store, async (candidates) => {
    const changed = candidates
      .map((call) => rerateCall(call, prices))
      .filter((rerated) => typeof rerated !== 'string')
      .filter((rerated) => charge || creditOf(rerated) > 0n)
    if (changed.length === 0) return
    for (const { call } of changed) {
      const { id, json } = prices.versionAt(call.startedAtMs)
      if (!stored.has(id)) await store.storePriceVersion(id, json)
      stored.add(id)
    }
    for (let at = 0; at < changed.length; at += BOOKED_AT_ONCE) {
      const booked = await store.bookRerates(changed.slice(at, at + BOOKED_AT_ONCE), systemClock.nowMs())
      calls += booked.calls
      nanos += booked.nanos
      await pause(PAUSE_MS)
    }
  })
  return { calls, nanos }
}

/** A call may start long after its id was created: a slow body, a wait for budget. */
const START_AFTER_ID_MS = 24 * 60 * 60 * 1_000

async function passOver(
  label: string,
  { fromMs, toMs, model, unpricedOnly }: Selection,
  store: RerateStore,
  work: (calls: readonly RerateCandidate[]) => Promise<void>,
): Promise<void> {
  const progress = createProgress(label)
  let done = 0
  try {
    for (let after = `req_${firstUlid(fromMs - START_AFTER_ID_MS)}`; ; ) {
      const calls = await store.readSettledCalls(after)
      const last = calls.at(-1)
      if (last === undefined) return
      await work(
        calls.filter(
          (call) =>
            call.startedAtMs >= fromMs &&
            call.startedAtMs < toMs &&
            (model === null || call.model === model || call.modelAsked === model) &&
            (!unpricedOnly || call.unpriced),
        ),
      )
      done += calls.length
      progress.show(done)
      after = last.id
    }
  } finally {
    progress.end()
  }
}

/** Summary of the changes. Amounts are USD. */
function createSummary() {
  const models = new Map<string, RerateLine>()
  const total = emptyLine()
  const unchanged = new Map<UnchangedBecause, number>()
  const credits = { calls: 0, nanos: 0n }
  const charges = { calls: 0, nanos: 0n }

  return {
    add(call: RerateCandidate, rerated: ChangedCall | UnchangedBecause): void {
      if (typeof rerated === 'string') {
        unchanged.set(rerated, (unchanged.get(rerated) ?? 0) + 1)
        return
      }
      const ofModel = models.get(call.model) ?? emptyLine()
      models.set(call.model, ofModel)
      for (const line of [ofModel, total]) {
        line.calls += 1
        line.oldCostNanos += call.paidNanos
        line.newCostNanos += rerated.newCostNanos
      }
      const nanos = creditOf(rerated)
      const side = nanos > 0n ? credits : charges
      side.calls += 1
      side.nanos += nanos > 0n ? nanos : -nanos
    },

    isAnyBooked: (charge: boolean) => credits.calls + (charge ? charges.calls : 0) > 0,

    describe(charge: boolean): string {
      const amountOf = ({ nanos, calls }: typeof credits) =>
        `${formatUsd(nanos)} USD for ${counted(calls, 'call')}`
      const byName = [...models].sort(([a], [b]) => (a < b ? -1 : 1))
      const rows = [...byName, ['total', total] as const].map(([model, line]) => cells(model, line))
      let text = total.calls === 0 ? 'No cost changes.\n' : renderTable(COLUMNS, rows, PLAIN)
      if (credits.calls > 0) text += `To credit: ${amountOf(credits)}.\n`
      if (charges.calls > 0) {
        const amount = amountOf(charges)
        text += charge
          ? `To charge: ${amount}.\n`
          : `Not charged: ${amount} that cost more. --charge posts it.\n`
      }
      for (const [why, calls] of unchanged) text += `${UNCHANGED[why]}: ${counted(calls, 'call')}.\n`
      return text
    },
  }
}

interface RerateLine {
  calls: number
  oldCostNanos: Nanos
  newCostNanos: Nanos
}

function emptyLine(): RerateLine {
  return { calls: 0, oldCostNanos: 0n, newCostNanos: 0n }
}

const UNCHANGED: Readonly<Record<UnchangedBecause, string>> = {
  same_price: 'Unchanged',
  no_usage: 'Left as they are, without usage',
  no_price: 'Left as they are, still without a price',
  credited_back: 'Left as they are, credited back before',
  rerated_before: 'Left as they are, priced with this version once before',
  unreadable: 'Left as they are, not readable (tollgate audit names the first)',
}

function describeBooked({ calls: count, nanos }: Booked): string {
  if (count === 0) return 'Nothing was booked: all of it had been booked before.\n'
  const net = nanos < 0n ? `${formatUsd(-nanos)} USD charged` : `${formatUsd(nanos)} USD credited`
  return `Booked ${counted(count, 'call')}: ${net} in all.\n`
}

const COLUMNS = ['model', 'calls', 'old cost', 'new cost', 'difference']

function cells(model: string, { calls, oldCostNanos, newCostNanos }: RerateLine): string[] {
  const amounts = [oldCostNanos, newCostNanos, newCostNanos - oldCostNanos]
  return [shownText(model), shownCount(calls), ...amounts.map(formatUsd)]
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
