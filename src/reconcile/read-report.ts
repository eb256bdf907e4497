import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { parseWithDigits } from '../kernel/money.ts'
import type { ReportedRow } from './figures.ts'

/** The reports cannot be compared. The message says why and what to do. */
export class ReportFailed extends Error {}

export interface ReportSource {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** The variable that holds the credential, for messages. */
  readonly variable: string
  /** Sends one request. A redirect must not be followed: it would take the credential to another host. */
  send(url: URL, headers: Readonly<Record<string, string>>): Promise<ReportAnswer>
  pause?(waitMs: number): Promise<void>
}

export interface ReportAnswer {
  readonly status: number
  readonly retryAfter: string | null
  readonly text: string
}

const WAIT_MS_MAX = 60_000
const WAIT_MS_DEFAULT = 5_000
const PAGES_MAX = 10_000

/** Numbers arrive as their digits, because a double cannot hold every amount. */
export const count = z
  .string()
  .regex(/^\d{1,18}$/)
  .transform(BigInt)
  .nullish()
  .transform((value) => value ?? 0n)

const cursor = { has_more: z.boolean(), next_page: z.string().nullish() }

function reportPage<Row extends z.ZodType>(row: Row) {
  return z.object({ data: z.array(row), ...cursor })
}

type Query = readonly (readonly [name: string, value: string])[]

interface ReportRequest<Row extends z.ZodType> {
  readonly path: string
  readonly query: Query
  /** The schema of a row. */
  readonly row: Row
  /** Whether an upstream may lack the report. It then has no rows. */
  readonly isOptional?: boolean
}

/** One report of a provider, and what its rows say. */
export interface Report {
  read(source: ReportSource): Promise<readonly ReportedRow[]>
}

export function reportOf<Row extends z.ZodType>(
  request: ReportRequest<Row>,
  rowsOf: (row: z.output<Row>) => readonly ReportedRow[],
): Report {
  return { read: async (source) => (await readRows(source, request)).flatMap(rowsOf) }
}

/** One report after the other: providers limit the rate of reports. */
export async function readReports(
  source: ReportSource,
  reports: readonly Report[],
): Promise<readonly ReportedRow[]> {
  const rows: ReportedRow[] = []
  for (const report of reports) rows.push(...(await report.read(source)))
  return rows
}

/** Reads all pages of a report. A cursor that has expired (410) starts the report over, once. */
async function readRows<Row extends z.ZodType>(
  source: ReportSource,
  request: ReportRequest<Row>,
): Promise<readonly z.output<Row>[]> {
  const waits = { leftMs: WAIT_MS_MAX }
  const rows = (await readPages(source, request, waits)) ?? (await readPages(source, request, waits))
  if (rows === null)
    throw new ReportFailed(
      `${request.path}: the report changed twice while it was read. Run the command again.`,
    )
  return rows
}

/** Null: the cursor expired. */
async function readPages<Row extends z.ZodType>(
  source: ReportSource,
  { path, query, row, isOptional = false }: ReportRequest<Row>,
  waits: { leftMs: number },
): Promise<readonly z.output<Row>[] | null> {
  const schema = reportPage(row)
  const rows: z.output<Row>[] = []
  const seen = new Set<string>()
  for (let page: string | null = null; ; ) {
    const url = urlOf(source.url, path, page === null ? query : [...query, ['page', page]])
    const { status, text } = await ask(source, url, path, waits)
    if (status === 410 && page !== null) return null
    if (status === 404 && isOptional) return rows
    if (status !== 200) throw new ReportFailed(explainStatus(status, path, source.variable))
    const read = schema.safeParse(parseAnswer(text, path))
    if (!read.success) throw new ReportFailed(explainShape(read.error, path))
    rows.push(...read.data.data)
    const next: string | null = read.data.next_page ?? null
    if (!read.data.has_more) return rows
    if (next === null || seen.has(next) || seen.size >= PAGES_MAX)
      throw new ReportFailed(
        `${path}: the report names no next page, or names a page twice. Try again later.`,
      )
    seen.add(next)
    page = next
  }
}

function explainShape({ issues: [issue] }: z.ZodError, path: string): string {
  const where = issue === undefined || issue.path.length === 0 ? 'the answer' : issue.path.join('.')
  return `${path}: ${where} is not as documented. The provider may have changed the report.`
}

async function ask(
  source: ReportSource,
  url: URL,
  path: string,
  waits: { leftMs: number },
): Promise<ReportAnswer> {
  for (;;) {
    const answer = await source.send(url, source.headers).catch((error: Error) => {
      const cause = error.cause instanceof Error ? error.cause : error
      throw new ReportFailed(`${path}: ${url.host} cannot be reached: ${cause.message}. Try again.`)
    })
    if (answer.status !== 429) return answer
    const seconds = Number(answer.retryAfter ?? '')
    const waitMs = answer.retryAfter !== null && seconds >= 0 ? seconds * 1_000 : WAIT_MS_DEFAULT
    if (waitMs > waits.leftMs)
      throw new ReportFailed(
        `${path}: the provider limits the rate of reports (429). Try again in some minutes.`,
      )
    waits.leftMs -= Math.max(waitMs, 1)
    await (source.pause ?? sleep)(waitMs)
  }
}

function urlOf(base: URL, path: string, query: Query): URL {
  const url = new URL(base)
  url.pathname = url.pathname.replace(/\/$/, '') + path
  for (const [name, value] of query) url.searchParams.append(name, value)
  return url
}

function parseAnswer(text: string, path: string): unknown {
  try {
    return parseWithDigits(text, (_, value, digits) => (typeof value === 'number' ? digits : value))
  } catch {
    throw new ReportFailed(
      `${path}: the answer is not JSON. Is the URL of the upstream a proxy without reports?`,
    )
  }
}

function explainStatus(status: number, path: string, variable: string): string {
  if (status === 401 || status === 403)
    return `${path}: the provider refused ${variable} (${status}). It must be an admin key of the organisation, not a key for calls.`
  if (status === 404)
    return `${path}: this upstream has no such report (404). Reports exist at the provider only.`
  if (status >= 500) return `${path}: the provider answered ${status}. Try again later.`
  return `${path}: the provider answered ${status}. Check the filters.`
}
