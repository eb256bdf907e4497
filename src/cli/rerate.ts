import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { parseTime, type Time } from '../api/fields.ts'
import { type Config, readConfig } from '../config/read-config.ts'
import { readBook } from '../config/read-pricing.ts'
import { systemClock } from '../kernel/clock.ts'
import { firstUlid } from '../kernel/ids.ts'
import { formatUsd, type Nanos, rawNumber } from '../kernel/money.ts'
import {
  type CurrentPrices,
  creditOf,
  type RerateCandidate,
  rerateCall,
  type UnchangedBecause,
} from '../ledger/rerate.ts'
import { createRateAgain } from '../pricing/load-book.ts'
import { findModel, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import type { Store } from '../store/store.ts'
import { examples, UsageError } from './command.ts'
import { openDatabase } from './open-database.ts'
import { renderRecords } from './records.ts'
import { counted, JSON_OPTION, PLAIN, print, printIgnoringClosedPipe } from './terminal.ts'

interface RerateOptions {
  readonly start: string
  readonly end?: string
  readonly model?: string
  readonly unpricedOnly?: true
  readonly apply?: true
  readonly raise?: true
  readonly yes?: true
  readonly json?: true
}

export function register(command: Command): void {
  command
    .requiredOption(
      '--start <time>',
      'calls admitted at this time or later (UTC): 2026-11-01 or 2026-11-01T12:00:00Z',
    )
    .option('--end <time>', 'calls admitted before this time; a date includes the whole day (now)')
    .option('--model <id>', 'only calls that requested this model or were served by it')
    .option('--unpriced-only', 'only calls with usage that had no price')
    .option('--apply', 'credit the difference of each call that costs less now, once for each call')
    .option('--raise', 'also charge calls that cost more now; without it they are only reported')
    .option('--yes', 'confirm --apply')
    .option(...JSON_OPTION)
    .addHelpText(
      'after',
      examples(
        'tollgate rerate --start 2026-11-01 --unpriced-only',
        'tollgate rerate --start 2026-11-01 --end 2026-11-30 --apply --yes',
      ),
    )
    .action(rerate)
}

async function rerate(options: RerateOptions): Promise<void> {
  const selection = selectionOf(options)
  const { apply = false, raise: charge = false, yes = false, json = false } = options
  if (apply && !yes)
    throw new UsageError(
      '--apply also needs --yes. Run the command without --apply first to check the differences.',
    )
  const config = readConfig(process.env)
  const { store } = await openDatabase(config)
  try {
    const prices = await currentPrices(config, store)
    const summary = new Summary()
    for await (const calls of selectedCalls(selection, store))
      for (const call of calls) summary.add(call, prices)
    const isIdle = summary.credits.calls + (charge ? summary.charges.calls : 0) === 0
    // Apply the differences even if the reader of the output has gone.
    if (!json) await (apply ? printIgnoringClosedPipe : print)(summary.describe(charge))
    const applied = apply && !isIdle ? await applyRerates(selection, charge, prices, store) : null
    if (json) await print(`${JSON.stringify(summary.asJson(applied))}\n`)
    else if (!isIdle) await print(applied === null ? DRY_RUN : describeApplied(applied))
  } finally {
    await store.close()
  }
}

const DRY_RUN = 'This was a dry run. To apply it, add --apply --yes.\n'

type RerateSelection = ReturnType<typeof selectionOf>

/** The calls to rerate, by admission time; `toMs` is exclusive. */
function selectionOf({ start, end, model, unpricedOnly }: RerateOptions) {
  const { fromMs } = timeOf('--start', start)
  const until = end === undefined ? { fromMs: systemClock.nowMs() + 1, lengthMs: 0 } : timeOf('--end', end)
  const toMs = until.fromMs + until.lengthMs
  if (fromMs >= toMs) throw new UsageError('--start must be before --end.')
  return { fromMs, toMs, model, unpricedOnly }
}

function timeOf(option: string, text: string): Time {
  const time = parseTime(text)
  if (time === null)
    throw new UsageError(
      `${option} must be a date such as 2026-11-01 or a time such as 2026-11-01T12:00:00Z.`,
    )
  return time
}

type RerateStore = Pick<Store, 'readSettledCalls' | 'applyRerates' | 'storePriceVersion'>

/** How long after its id a call may start: its body may be slow, or it may wait for a budget. */
const START_AFTER_ID_MS = 24 * 60 * 60 * 1_000

/** The selected calls in batches. The command reads and prices them twice instead of keeping them in memory. */
async function* selectedCalls(
  { fromMs, toMs, model, unpricedOnly }: RerateSelection,
  store: RerateStore,
): AsyncGenerator<readonly RerateCandidate[]> {
  for (let after = `req_${firstUlid(fromMs - START_AFTER_ID_MS)}`; ; ) {
    const calls = await store.readSettledCalls(after)
    const last = calls.at(-1)
    if (last === undefined) return
    yield calls.filter(
      (call) =>
        call.startedAtMs >= fromMs &&
        call.startedAtMs < toMs &&
        (model === undefined || call.model === model || call.modelAsked === model) &&
        (unpricedOnly !== true || call.unpriced),
    )
    after = last.id
  }
}

/** The pause between batches lets a gateway get the locks that it waits for: SQLite's lock has no queue. */
const PAUSE_MS = 20

interface Applied {
  readonly calls: number
  /** What was credited; negative: what was charged. */
  readonly nanos: Nanos
}

function describeApplied({ calls, nanos }: Applied): string {
  if (calls === 0) return 'Nothing was applied: every difference had been applied before.\n'
  const net = nanos < 0n ? `${formatUsd(-nanos)} USD charged` : `${formatUsd(nanos)} USD credited`
  return `Applied to ${counted(calls, 'call')}: ${net} in all.\n`
}

/** A slow database must finish this many calls within the deadline of a statement. */
const BATCH_CALLS = 200

async function applyRerates(
  selection: RerateSelection,
  charge: boolean,
  prices: CurrentPrices,
  store: RerateStore,
): Promise<Applied> {
  let calls = 0
  let nanos = 0n
  const stored = new Set<string>()
  for await (const candidates of selectedCalls(selection, store)) {
    const changed = candidates
      .map((call) => rerateCall(call, prices))
      .filter((rerated) => typeof rerated !== 'string')
      .filter((rerated) => charge || creditOf(rerated) > 0n)
    for (const { call } of changed) {
      const { id, json } = prices.versionFor(call)
      if (!stored.has(id)) await store.storePriceVersion(id, json)
      stored.add(id)
    }
    for (let at = 0; at < changed.length; at += BATCH_CALLS) {
      const booked = await store.applyRerates(changed.slice(at, at + BATCH_CALLS), systemClock.nowMs())
      calls += booked.calls
      nanos += booked.nanos
      await pause(PAUSE_MS)
    }
  }
  return { calls, nanos }
}

class CostChange {
  calls = 0
  #oldNanos = 0n
  #newNanos = 0n

  add(oldNanos: Nanos, newNanos: Nanos): void {
    this.calls += 1
    this.#oldNanos += oldNanos
    this.#newNanos += newNanos
  }

  row(model: string) {
    const difference_usd = formatUsd(this.#newNanos - this.#oldNanos)
    const amounts = { old_usd: formatUsd(this.#oldNanos), new_usd: formatUsd(this.#newNanos), difference_usd }
    return { model, requests: this.calls, ...amounts }
  }

  get amount(): string {
    const nanos = this.#newNanos - this.#oldNanos
    return `${formatUsd(nanos < 0n ? -nanos : nanos)} USD for ${counted(this.calls, 'call')}`
  }
}

const COLUMNS = {
  model: 'model',
  calls: 'requests',
  'old cost': 'old_usd',
  'new cost': 'new_usd',
  difference: 'difference_usd',
}

class Summary {
  readonly credits = new CostChange()
  readonly charges = new CostChange()
  readonly #total = new CostChange()
  readonly #models = new Map<string, CostChange>()
  readonly #unchanged = new Map<UnchangedBecause, number>()

  add(call: RerateCandidate, prices: CurrentPrices): void {
    const rerated = rerateCall(call, prices)
    if (typeof rerated === 'string') {
      this.#unchanged.set(rerated, (this.#unchanged.get(rerated) ?? 0) + 1)
      return
    }
    const ofModel = this.#models.get(call.model) ?? new CostChange()
    this.#models.set(call.model, ofModel)
    const side = creditOf(rerated) > 0n ? this.credits : this.charges
    for (const change of [ofModel, this.#total, side]) change.add(call.paidNanos, rerated.newCostNanos)
  }

  #rows() {
    const byName = [...this.#models].sort(([a], [b]) => (a < b ? -1 : 1))
    return [...byName, ['total', this.#total] as const].map(([model, change]) => change.row(model))
  }

  asJson(applied: Applied | null): object {
    const rows = this.#rows().map(({ model, requests, ...amounts }) => {
      const exact = Object.entries(amounts).map(([name, usd]) => [name, rawNumber(usd)])
      return { model, requests, ...Object.fromEntries(exact) }
    })
    const credited = applied && {
      requests: applied.calls,
      credited_usd: rawNumber(formatUsd(applied.nanos)),
    }
    return {
      object: 'rerate',
      models: rows.slice(0, -1),
      total: rows.at(-1),
      to_credit: this.credits.calls,
      to_charge: this.charges.calls,
      unchanged: Object.fromEntries(this.#unchanged),
      applied: credited,
    }
  }

  describe(charge: boolean): string {
    const { credits, charges } = this
    const rows = this.#rows()
    let text = rows.length === 1 ? 'No cost changes.\n' : renderRecords(COLUMNS, rows, PLAIN)
    if (credits.calls > 0) text += `To credit: ${credits.amount}.\n`
    if (charges.calls > 0)
      text += charge
        ? `To charge: ${charges.amount}.\n`
        : `Not charged: ${charges.amount} that cost more now. Add --raise to charge the difference.\n`
    for (const [why, calls] of this.#unchanged) text += `${UNCHANGED[why]}: ${counted(calls, 'call')}.\n`
    return text
  }
}

const UNCHANGED: Readonly<Record<UnchangedBecause, string>> = {
  same_price: 'Unchanged',
  no_usage: 'Unchanged: no usage',
  no_price: 'Unchanged: still no price',
  credited_back: 'Unchanged: already credited back',
  rerated_before: 'Unchanged: already priced with this version',
  unreadable: 'Unchanged: usage or price unreadable (`tollgate audit` names the first call)',
}

/** A version is written out once: `rateAgain` caches it by its text. */
async function currentPrices(config: Config, store: Pick<Store, 'readPrices'>): Promise<CurrentPrices> {
  const book = await readBook(config, await store.readPrices())
  const texts = new Map<string, string>()
  const textOf = ({ id, entry }: PriceVersion): string => {
    const text = texts.get(id) ?? JSON.stringify(entry)
    texts.set(id, text)
    return text
  }
  return {
    versionFor({ startedAtMs, model, modelAsked }) {
      const hasPrice = (version: PriceVersion) =>
        findModel(version, model) !== null || findModel(version, modelAsked) !== null
      const then = versionAt(book, startedAtMs)
      const later = book.versions.filter(
        ({ effectiveFromMs }) => (effectiveFromMs ?? -Infinity) > startedAtMs,
      )
      const version = [then, ...later].find(hasPrice) ?? then
      return { id: version.id, json: textOf(version) }
    },
    rateAgain: createRateAgain(),
  }
}
