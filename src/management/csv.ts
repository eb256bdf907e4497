import { prefers, type RawHeaders } from '../http/raw-headers.ts'
import { type OwnReply, replyFile } from './route.ts'

/** Matches text that spreadsheets read as a formula. The characters may be full-width, or follow whitespace. */
const FORMULA = /^(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])/u

/** RFC 4180. Null is an empty cell; lists and objects are JSON. */
export function csvRow(cells: readonly unknown[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

function csvCell(cell: unknown): string {
  if (cell === null || cell === undefined) return ''
  if (typeof cell === 'string') return csvText(cell)
  if (typeof cell !== 'object') return String(cell)
  return 'rawJSON' in cell ? String(cell.rawJSON) : csvText(JSON.stringify(cell))
}

/** The text of a cell. A name such as `=HYPERLINK(…)` gets a leading apostrophe, so that spreadsheets do not run it. */
function csvText(text: string): string {
  if (FORMULA.test(text)) return quoted(`'${text}`)
  return /[",\r\n]/.test(text) ? quoted(text) : text
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}

interface CsvPage<Cursor> {
  readonly rows: readonly object[]
  readonly next: Cursor | null
}

interface Export<Cursor> {
  readonly name: string
  readonly columns: readonly string[]
  readonly after: Cursor | null
  readonly limit: number | undefined
  readonly pageMax: number
  read(after: Cursor | null, limit: number): Promise<CsvPage<Cursor>>
}

const CONTENT_TYPES = { csv: 'text/csv; charset=utf-8', ndjson: 'application/x-ndjson' } as const

export function replyExport<Cursor>(format: keyof typeof CONTENT_TYPES, parts: Export<Cursor>): OwnReply {
  const { columns } = parts
  const chunks =
    format === 'csv'
      ? chunksOf(parts, csvRow(columns), (row) => csvRow(columns.map((name) => row[name])))
      : chunksOf(parts, '', (row) => `${JSON.stringify(row)}\n`)
  return replyFile(CONTENT_TYPES[format], `${parts.name}.${format}`, chunks)
}

/** Yields a chunk for each page, even for an empty one, so that the sender can stop in between. */
async function* chunksOf<Cursor>(
  { after, limit, pageMax, read }: Export<Cursor>,
  head: string,
  line: (row: Readonly<Record<string, unknown>>) => string,
): AsyncGenerator<Buffer, void, undefined> {
  let left = limit ?? Number.POSITIVE_INFINITY
  let text = head
  let next = after
  do {
    const page = await read(next, Math.min(left, pageMax))
    yield Buffer.from(text + page.rows.map((row) => line({ ...row })).join(''))
    text = ''
    left -= page.rows.length
    next = page.next
  } while (next !== null && left > 0)
}

/** The format in the query, else the format that `Accept` prefers. A client that accepts neither gets JSON. */
export function formatOf(named: 'json' | 'csv' | undefined, headers: RawHeaders): 'json' | 'csv' {
  return named ?? (prefers(headers, 'text/csv', 'application/json') ? 'csv' : 'json')
}
