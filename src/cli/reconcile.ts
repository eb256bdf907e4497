import type { Command } from 'commander'
import { type Config, PROVIDER_URLS, readConfig } from '../config/read-config.ts'
import { readBook } from '../config/read-pricing.ts'
import { firstValue } from '../http/raw-headers.ts'
import { requestWhole } from '../http/request-whole.ts'
import { systemClock } from '../kernel/clock.ts'
import { formatUsd, rawInteger, rawNumber } from '../kernel/money.ts'
import type { Secret } from '../kernel/secret.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { dayOf } from '../ledger/calendar.ts'
import { findModel, type PriceBook, versionAt } from '../pricing/price-book.ts'
import { CHAT_PLACES, chatReports } from '../reconcile/chat-report.ts'
import { type ComparedDay, type ComparedKind, type Comparison, compare } from '../reconcile/compare.ts'
import { parseDecimal } from '../reconcile/decimal.ts'
import { addTokens, NO_TOKENS, type ReportedRow } from '../reconcile/figures.ts'
import { MESSAGES_HEADERS, MESSAGES_PLACES, messagesReports } from '../reconcile/messages-report.ts'
import { type ReportAnswer, ReportFailed, type ReportSource, readReports } from '../reconcile/read-report.ts'
import { readRecorded } from '../reconcile/recorded.ts'
import { runOn } from '../store/operations/operation.ts'
import { PRICES } from '../store/operations/prices.ts'
import { collect, examples, UsageError } from './command.ts'
import { openDatabaseSnapshot } from './open-database.ts'
import { renderRecords } from './records.ts'
import { JSON_OPTION, PLAIN, print } from './terminal.ts'

interface ReconcileOptions {
  readonly start?: string
  readonly end?: string
  readonly surface?: string
  readonly tolerance: string
  readonly apiKeyId?: readonly string[]
  readonly workspaceId?: readonly string[]
  readonly projectId?: readonly string[]
  readonly json?: true
}

const NOT_COMPARED = 2

export function register(command: Command): void {
  command
    .option('--start <date>', 'first day in UTC (eight days ago)')
    .option('--end <date>', 'last day (two days ago, because reports are late)')
    .option('--surface <name>', 'messages or chat (each whose admin key is set)')
    .option('--tolerance <percent>', 'how much a figure may differ', '0.5')
    .option('--api-key-id <id>', "only this key, by the provider's id; repeatable", collect)
    .option('--workspace-id <id>', 'only this workspace (messages); repeatable', collect)
    .option('--project-id <id>', 'only this project (chat); repeatable', collect)
    .option(...JSON_OPTION)
    .addHelpText('after', HELP)
    .action(async (options: ReconcileOptions) => {
      try {
        const all = await reconcile(options)
        await print(options.json === true ? renderJson(all) : all.results.map(render).join('\n'))
        if (all.results.some(({ comparison }) => comparison.rows.some(({ within }) => !within)))
          process.exitCode = 1
      } catch (error) {
        if (!(error instanceof ReportFailed)) throw error
        process.stderr.write(`tollgate: ${error.message}\n`)
        process.exitCode = NOT_COMPARED
      }
    })
}

const HELP = `
The credentials are admin keys of the organisation, in TOLLGATE_MESSAGES_ADMIN_KEY and TOLLGATE_CHAT_ADMIN_KEY.
Tokens and list cost are judged per model, over all days: a batch may be on another day in the report.
Exit codes: 0 all figures are within the tolerance, 1 some are not, 2 the figures could not be compared.
${examples('tollgate reconcile --surface messages', 'tollgate reconcile --api-key-id apikey_01Rj --json')}`

interface SurfaceResult {
  readonly surface: Surface
  readonly comparison: Comparison
}

interface AllResults {
  readonly start: string
  readonly end: string
  readonly results: readonly SurfaceResult[]
}

async function reconcile(options: ReconcileOptions): Promise<AllResults> {
  const config = readConfig(process.env)
  const { start, end } = daysOf(options)
  const toleranceMillionths = toleranceOf(options.tolerance)
  const surfaces = surfacesOf(options, config)
  const snapshot = await openDatabaseSnapshot(config)
  try {
    const book = await readBook(config, await runOn(snapshot.query, PRICES.brief.readPrices()))
    const results: SurfaceResult[] = []
    for (const surface of surfaces) {
      const reported = await readReported(surface, start, end, options, config)
      const recorded = await readRecorded(snapshot.query, { surface, startDay: start, endDay: end })
      const comparison = compare(recorded, reported, {
        toleranceMillionths,
        placesOfDollar: surface === 'messages' ? MESSAGES_PLACES : CHAT_PLACES,
        ...modelsOf(book),
      })
      results.push({ surface, comparison })
    }
    return { start, end, results }
  } finally {
    await snapshot.close()
  }
}

const DAY_MS = 86_400_000

/** By default the seven days that ended two days ago. */
function daysOf({ start, end }: ReconcileOptions): { readonly start: string; readonly end: string } {
  const nowMs = systemClock.nowMs()
  const last = end === undefined ? dayOf(nowMs - 2 * DAY_MS) : dayNamed('--end', end)
  const first = start === undefined ? dayOf(Date.parse(last) - 6 * DAY_MS) : dayNamed('--start', start)
  if (first > last) throw new UsageError('--start must not be after --end.')
  if (last >= dayOf(nowMs))
    throw new UsageError('--end must be before today (UTC): the report of a day is complete only after it.')
  return { start: first, end: last }
}

function dayNamed(option: string, text: string): string {
  const atMs = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs) || dayOf(atMs) !== text)
    throw new UsageError(`${option} must be a date such as 2026-11-01.`)
  return text
}

function toleranceOf(text: string): bigint {
  const percent = parseDecimal(text)
  if (percent === null || percent.units < 0n || Number(text) > 100)
    throw new UsageError('--tolerance must be a percentage from 0 to 100, such as 0.5.')
  return (percent.units * 10_000n) / 10n ** BigInt(percent.places)
}

function surfacesOf({ surface }: ReconcileOptions, { reportKeys }: Config): readonly Surface[] {
  const named = SURFACE_NAMES.find((name) => name === surface)
  if (surface !== undefined && named === undefined)
    throw new UsageError('--surface must be messages or chat.')
  const chosen = named === undefined ? SURFACE_NAMES.filter((name) => reportKeys[name] !== null) : [named]
  const [missing] = chosen.filter((name) => reportKeys[name] === null)
  if (missing !== undefined || chosen.length === 0)
    throw new ReportFailed(
      `There is no credential for the reports. Set ${missing === undefined ? 'TOLLGATE_MESSAGES_ADMIN_KEY or TOLLGATE_CHAT_ADMIN_KEY' : variableOf(missing)} to an admin key of the organisation.`,
    )
  return chosen
}

const variableOf = (surface: Surface) => `TOLLGATE_${surface.toUpperCase()}_ADMIN_KEY`

async function readReported(
  surface: Surface,
  start: string,
  end: string,
  { apiKeyId = [], workspaceId = [], projectId = [] }: ReconcileOptions,
  config: Config,
): Promise<readonly ReportedRow[]> {
  const source = sourceOf(surface, config)
  const [startMs, endMs] = [Date.parse(start), Date.parse(end) + DAY_MS]
  const reports =
    surface === 'messages'
      ? messagesReports(startMs, endMs, { apiKeyIds: apiKeyId, workspaceIds: workspaceId })
      : chatReports(startMs, endMs, { apiKeyIds: apiKeyId, projectIds: projectId })
  return await readReports(source, reports)
}

function sourceOf(surface: Surface, config: Config): ReportSource {
  const key = (config.reportKeys[surface] as Secret).reveal()
  return {
    url: config[surface]?.url ?? new URL(PROVIDER_URLS[surface]),
    headers:
      surface === 'messages' ? { ...MESSAGES_HEADERS, 'x-api-key': key } : { authorization: `Bearer ${key}` },
    variable: variableOf(surface),
    send: (url, headers) => sendRequest(url, headers, config.egress),
  }
}

const ANSWER_LIMITS = { answerMs: 60_000, bytesMax: 64 * 1024 * 1024 }

/** Connects as calls do, through the proxy if there is one. Redirects are not followed. */
async function sendRequest(
  url: URL,
  headers: Readonly<Record<string, string>>,
  egress: Config['egress'],
): Promise<ReportAnswer> {
  const lines = Object.entries({
    accept: 'application/json',
    'accept-encoding': 'identity',
    ...headers,
  }).flat()
  const answer = await requestWhole({ url, method: 'GET', headers: lines }, egress, ANSWER_LIMITS)
  return {
    status: answer.status,
    retryAfter: firstValue(answer.headers, 'retry-after') ?? null,
    text: answer.body.toString(),
  }
}

/** The models whose tokens no report states have only a cost. */
const MODES_WITH_TOKENS = ['chat', 'responses', 'completion', 'embedding']

function modelsOf(book: PriceBook) {
  const version = versionAt(book, systemClock.nowMs())
  return {
    nameOf: (model: string) => findModel(version, model)?.id ?? model,
    hasTokenReport: (model: string) => MODES_WITH_TOKENS.includes(findModel(version, model)?.mode ?? ''),
  }
}

const COLUMNS = {
  day: 'day',
  model: 'model',
  input: 'input',
  output: 'output',
  cached: 'cached',
  written: 'written',
  ours: 'ours_usd',
  provider: 'provider_usd',
  'difference %': 'difference',
}

function render({ surface, comparison }: SurfaceResult): string {
  const { days, findings, rows } = comparison
  if (days.length === 0) return `${surface}: no calls here, and none in the report.\n`
  const lines = days.map((row) => lineOf(row.day, row))
  const byModel = Map.groupBy(days, ({ model }) => model)
  const sums = [...byModel]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([model, all]) => lineOf('all', sumOf(all, model)))
  const judged = rows.every(({ within }) => within)
    ? 'All figures are within the tolerance.\n'
    : `Beyond the tolerance:\n${findings.map((finding) => `- ${finding}\n`).join('')}`
  return `${surface}: tokens recorded here; list cost in USD\n\n${renderRecords(COLUMNS, [...lines, ...sums], PLAIN)}\n${judged}`
}

function sumOf(days: readonly ComparedDay[], model: string): ComparedDay {
  let tokens = NO_TOKENS
  let [oursNanos, reportedNanos] = [0n, 0n]
  for (const each of days) {
    tokens = addTokens(tokens, each.tokens)
    oursNanos += each.oursNanos
    reportedNanos += each.reportedNanos
  }
  return { day: '', model, tokens, oursNanos, reportedNanos }
}

function lineOf(day: string, { model, tokens, oursNanos, reportedNanos }: ComparedDay) {
  return {
    day,
    model,
    input: tokens.input,
    output: tokens.output,
    cached: tokens.cache_read,
    written: tokens.cache_write,
    ours_usd: formatUsd(oursNanos),
    provider_usd: formatUsd(reportedNanos),
    difference: percentOf(oursNanos, reportedNanos),
  }
}

/** The difference from the reported figure in percent, with two decimals. Without a reported figure it is 100. */
function percentOf(ours: bigint, reported: bigint): string {
  if (ours === reported) return '0'
  if (reported === 0n) return '100'
  const hundredths = ((ours - reported) * 10_000n) / reported
  return formatUsd(hundredths * 10_000_000n)
}

function renderJson({ start, end, results }: AllResults): string {
  const surfaces = results.map(({ surface, comparison: { rows, days, findings } }) => ({
    surface,
    rows: rows.map(rowAsJson),
    days: days.map(({ day, model, tokens, oursNanos, reportedNanos }) => ({
      day,
      model,
      ...Object.fromEntries(Object.entries(tokens).map(([kind, tokens]) => [kind, rawInteger(tokens)])),
      ours: rawNumber(formatUsd(oursNanos)),
      reported: rawNumber(formatUsd(reportedNanos)),
    })),
    findings,
  }))
  return `${JSON.stringify({ object: 'reconciliation', start, end, surfaces }, null, 2)}\n`
}

function rowAsJson({ model, kind, ours, reported, within }: ComparedKind) {
  const shown = kind === 'cost' ? (nanos: bigint) => rawNumber(formatUsd(nanos)) : rawInteger
  const difference_percent = rawNumber(percentOf(ours, reported))
  return { model, kind, ours: shown(ours), reported: shown(reported), difference_percent, within }
}
