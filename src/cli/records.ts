import {
  alignAmounts,
  renderTable,
  shownCount,
  shownInstant,
  shownText,
  type TableCell,
  type TerminalStyle,
} from './terminal.ts'

/** The titles of the columns, each with its field. With several fields, the first that has a value is shown. */
export type Columns = Readonly<Record<string, string>>

/** Records as rows. A column in which no record has a value is left out. */
export function renderRecords(
  columns: Columns,
  records: readonly object[],
  style: TerminalStyle,
  dispensable: readonly string[] = [],
): string {
  const filled = Object.entries(columns).flatMap(([title, field]) => {
    const values = records.map((record) => valueIn(record, field))
    if (values.every((value) => value === null)) return []
    const aligned = alignAmounts(values.map((value) => (value === null ? '0' : String(value))))
    const texts = field.endsWith('_usd') ? aligned : values.map((value) => shownValue(field, value))
    const cells = values.map((value, at) => (value === null ? '-' : cellOf(field, texts[at] ?? '')))
    return [{ title: field.endsWith('_at') ? `${title} (UTC)` : title, cells }]
  })
  const rows = records.map((_, at) => filled.map(({ cells }) => cells[at] ?? ''))
  return renderTable(
    filled.map(({ title }) => title),
    rows,
    style,
    dispensable,
  )
}

/** The first value found, or null. `fields`: a path such as `usage.input_tokens`, or alternatives such as `model_served|model`. */
function valueIn(record: object, fields: string): unknown {
  const values = fields
    .split('|')
    .map((field) =>
      field
        .split('.')
        .reduce<unknown>((value, name) => (value as Record<string, unknown> | null)?.[name], record),
    )
  return values.find((value) => value !== null && value !== undefined) ?? null
}

const GOOD = /^(?:usable|active|settled|[123]\d\d)$/

function cellOf(field: string, text: string): TableCell {
  const shown = shownText(text, 40)
  return /^(?:status|state)$/.test(field) ? { text: shown, style: GOOD.test(text) ? 'green' : 'red' } : shown
}

/** Formats counts with commas. Numbers arrive as text, so the name of the field shows which of them are counts. */
function shownValue(field: string, value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.join(', ')
  const text = String(value ?? '')
  if (field.endsWith('_at')) return shownInstant(text)
  return /(?:_tokens|requests|quantity|rate_per)$/.test(field) ? shownCount(text) : text
}

export function renderRecord(record: object, style: TerminalStyle): string {
  const lines = linesOf(record, '')
  const width = Math.max(...lines.map(([name]) => name.length))
  return lines
    .map(([name, value]) => `${style.paint('dim', name.padEnd(width))} ${shownText(value, 600)}\n`)
    .join('')
}

function linesOf(record: object, prefix: string): (readonly [name: string, value: string])[] {
  return Object.entries(record).flatMap(([name, value]: [string, unknown]) => {
    if (value === null || (name === 'object' && prefix === '')) return []
    if (typeof value === 'object' && !Array.isArray(value)) return linesOf(value, `${prefix}${name}.`)
    const shown = shownValue(name, value)
    return [[prefix + name, name.endsWith('_at') ? `${shown} UTC` : shown] as const]
  })
}
