import { type RawHeaders, weightsOf } from '../http/raw-headers.ts'
import type { RawNumber } from '../kernel/money.ts'

export type CsvCell = string | number | bigint | boolean | null | RawNumber

export const CSV_TYPE = 'text/csv; charset=utf-8'

/** The characters that spreadsheets take for the beginning of a formula, also in full width and behind blanks. */
const FORMULA = /^(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])/u

/** One row as RFC 4180 writes it, with its line end. Null is an empty cell. */
export function csvRow(cells: readonly CsvCell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

function csvCell(cell: CsvCell): string {
  if (cell === null) return ''
  if (typeof cell === 'string') return csvText(cell)
  return typeof cell === 'object' ? cell.rawJSON : String(cell)
}

/**
 * A name such as `=HYPERLINK(…)` would be run by the spreadsheet that opens the file, so such text gets the apostrophe by
 * which spreadsheets mark text. Numbers get none: a negative number is a number.
 */
function csvText(text: string): string {
  if (FORMULA.test(text)) return quoted(`'${text}`)
  return /[",\r\n]/.test(text) ? quoted(text) : text
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}

/**
 * Whether `Accept` asks for CSV rather than JSON: it weighs more, or it is named where JSON is only covered by a
 * wildcard. A client that accepts neither gets JSON.
 */
export function prefersCsv(headers: RawHeaders): boolean {
  const weights = weightsOf(headers, 'accept')
  const csv = bestMatch(weights, ['text/csv', 'text/*', '*/*'])
  const json = bestMatch(weights, ['application/json', 'application/*', '*/*'])
  if (csv.weight !== json.weight) return csv.weight > json.weight
  return csv.weight > 0 && csv.vagueness < json.vagueness
}

/** The most exact range that covers a type decides about it. */
function bestMatch(weights: ReadonlyMap<string, number>, names: readonly string[]) {
  for (const [vagueness, name] of names.entries()) {
    const weight = weights.get(name)
    if (weight !== undefined) return { weight, vagueness }
  }
  return { weight: 0, vagueness: names.length }
}
