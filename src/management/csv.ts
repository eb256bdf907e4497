import { prefers, type RawHeaders } from '../http/raw-headers.ts'

export const CSV_TYPE = 'text/csv; charset=utf-8'

/** Characters that spreadsheets treat as the start of a formula, also full-width and after whitespace. */
const FORMULA = /^(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])/u

/** One row of RFC 4180, with its line break. Null is an empty cell; lists and objects are JSON. */
export function csvRow(cells: readonly unknown[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

function csvCell(cell: unknown): string {
  if (cell === null || cell === undefined) return ''
  if (typeof cell === 'string') return csvText(cell)
  if (typeof cell !== 'object') return String(cell)
  return 'rawJSON' in cell ? String(cell.rawJSON) : csvText(JSON.stringify(cell))
}

/** A spreadsheet would run a name such as `=HYPERLINK(…)`, so such text gets a leading apostrophe. */
function csvText(text: string): string {
  if (FORMULA.test(text)) return quoted(`'${text}`)
  return /[",\r\n]/.test(text) ? quoted(text) : text
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}

interface ExportPage<Cursor> {
  readonly rows: readonly string[]
  /** Null on the last page. */
  readonly next: Cursor | null
}

/** All rows that match, one chunk per page: even an empty chunk lets the sender stop. */
export async function* exportPages<Cursor>(
  head: string,
  after: Cursor | null,
  {
    limit = Number.POSITIVE_INFINITY,
    pageMax,
  }: { readonly limit?: number | undefined; readonly pageMax: number },
  read: (after: Cursor | null, limit: number) => Promise<ExportPage<Cursor>>,
): AsyncGenerator<Buffer, void, undefined> {
  let next = after
  let left = limit
  let text = head
  do {
    const page = await read(next, Math.min(left, pageMax))
    yield Buffer.from(text + page.rows.join(''))
    text = ''
    left -= page.rows.length
    next = page.next
  } while (next !== null && left > 0)
}

/** Whether `Accept` prefers CSV to JSON. A client that accepts neither gets JSON. */
export function prefersCsv(headers: RawHeaders): boolean {
  return prefers(headers, 'text/csv', 'application/json')
}
