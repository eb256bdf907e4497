import { createInterface } from 'node:readline/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Config, readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import {
  type Booked,
  type CurrentPrices,
  creditOf,
  type RerateCandidate,
  type RerateSelection,
  RerateSummary,
  type RerateWriter,
  rerateCall,
} from '../ledger/rerate.ts'
import { openRerateWriter as openWriterInDatabase } from '../store/postgres/ledger-snapshot.ts'
import { openRerateWriter as openWriterInFile } from '../store/sqlite/ledger-file.ts'
import { openLedger } from './open-ledger.ts'
import { print } from './print.ts'
import { createProgress } from './progress.ts'
import { describeBooked, describeSummary } from './rerate-table.ts'
import { runCommand, UsageError } from './run-command.ts'

const HELP = `Usage
  tollgate rerate --from <date or instant> [--to <date or instant>] [--model <id>] [--unpriced-only]
                  [--apply [--charge] [--yes]]

Prices settled calls again with the price book in force and shows what would change. Calls are never edited.
  --from, --to      by when a call was admitted, in UTC: 2026-11-01, both days included, or an instant such as
                    2026-11-01T12:00:00Z, from it on and up to it; without --to, up to now
  --model           only calls that asked for or were served by the model of exactly this name
  --unpriced-only   only calls that had no price, or not for all they used
  --apply           book the difference of each call, once: what it costs less is credited
  --charge          also book what calls cost more, as charges; without it that is only reported
  --yes             do not ask before booking

Works on the data directory (TOLLGATE_DATA_DIR), or on the database of TOLLGATE_DATABASE_URL, while gateways serve
from it or not.

Examples
  tollgate rerate --from 2026-11-01 --unpriced-only
  tollgate rerate --from 2026-11-01 --to 2026-11-30 --apply

Exit codes
  0 done   1 failed or declined   2 the command line or the configuration is wrong
`

interface Request {
  readonly selection: RerateSelection
  readonly apply: boolean
  readonly charge: boolean
  readonly yes: boolean
}

export async function rerate(
  args: readonly string[],
  loadPrices: (config: Config) => Promise<CurrentPrices>,
): Promise<void> {
  const run = async (given: string[]): Promise<void> => {
    const request = readArguments(given)
    const config = readConfig(process.env)
    const prices = await loadPrices(config)
    const writer = await openLedger(config, {
      inFile: (file) => openWriterInFile(file, systemClock),
      inDatabase: (url) => openWriterInDatabase(url, systemClock),
    })
    try {
      await rerateCalls(request, prices, writer)
    } finally {
      await writer.close()
    }
  }
  await runCommand({ name: 'rerate', help: HELP, run }, args)
}

async function rerateCalls(request: Request, prices: CurrentPrices, writer: RerateWriter): Promise<void> {
  const { selection, apply, charge, yes } = request
  const summary = new RerateSummary()
  await passOver('Pricing', selection, writer, async (calls) => {
    for (const call of calls) summary.add(rerateCall(call, prices))
  })
  await print(describeSummary(summary, { charge }))
  const toBook = summary.creditCalls + (charge ? summary.chargeCalls : 0)
  if (toBook === 0) return
  if (!apply) {
    await print('Nothing is booked without --apply.\n')
    return
  }
  if (!yes && !(await confirm())) {
    process.exitCode = 1
    await print('Nothing was booked.\n')
    return
  }
  await print(describeBooked(await book(request, prices, writer)))
}

/** Between two batches a gateway that waits for the same locks gets them: SQLite's own waiting knows no queue. */
const PAUSE_MS = 20

/** Priced a second time rather than remembered from the first: memory must not grow with the number of calls. */
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

async function confirm(): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    // It fails if the input is ended or interrupted: that is no agreement.
    const answer = await terminal.question('Book this? [y/N] ').catch(() => '')
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    terminal.close()
  }
}

function readArguments(args: string[]): Request {
  const { values } = parseArgs({
    args,
    options: {
      from: { type: 'string' },
      to: { type: 'string' },
      model: { type: 'string' },
      'unpriced-only': { type: 'boolean', default: false },
      apply: { type: 'boolean', default: false },
      charge: { type: 'boolean', default: false },
      yes: { type: 'boolean', default: false },
    },
  })
  if (values.from === undefined) throw new UsageError('say from when on, with --from')
  if (values.apply && !values.yes && !process.stdin.isTTY)
    throw new UsageError('there is no terminal to ask on: --apply needs --yes')
  const selection = {
    fromMs: instantOf('--from', values.from).startMs,
    toMs: values.to === undefined ? systemClock.nowMs() + 1 : instantOf('--to', values.to).endMs,
    model: values.model ?? null,
    unpricedOnly: values['unpriced-only'],
  }
  if (selection.fromMs >= selection.toMs) throw new UsageError('--from is not before --to')
  return { selection, apply: values.apply, charge: values.charge, yes: values.yes }
}

const DAY_MS = 86_400_000

/** A day has a start and an end; an instant is both. */
function instantOf(option: string, text: string): { readonly startMs: number; readonly endMs: number } {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const ms =
    isDay || /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z$/.test(text) ? Date.parse(text) : Number.NaN
  // The parser takes the 31st of a shorter month for the 1st of the next.
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text.slice(0, 10)) {
    throw new UsageError(
      `${option} must be a date such as 2026-11-01 or an instant such as 2026-11-01T12:00:00Z`,
    )
  }
  return { startMs: ms, endMs: isDay ? ms + DAY_MS : ms }
}
