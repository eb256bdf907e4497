import { type Style, type TerminalStyle, widthOf } from './terminal.ts'

export interface Column {
  readonly title: string
  readonly align: 'left' | 'right'
}

export const left = (title: string): Column => ({ title, align: 'left' })
export const right = (title: string): Column => ({ title, align: 'right' })

/** A text, or one in a colour. */
export type Cell = string | { readonly text: string; readonly style: Style }

export type Rows = readonly (readonly Cell[])[]

/** Rows under their titles, each column as wide as it needs to be. */
export function renderTable(columns: readonly Column[], rows: Rows, style: TerminalStyle): string {
  const widths = widthsOf(columns, rows)
  return [titleLine(columns, widths, style), ...rows.map((row) => tableLine(columns, widths, row, style))]
    .map((line) => `${line}\n`)
    .join('')
}

export function widthsOf(columns: readonly Column[], rows: Rows): number[] {
  return columns.map(({ title }, at) =>
    rows.reduce((width, row) => Math.max(width, widthOf(textOf(row[at] ?? ''))), title.length),
  )
}

export function titleLine(
  columns: readonly Column[],
  widths: readonly number[],
  style: TerminalStyle,
): string {
  const titles = columns.map(({ title }): Cell => ({ text: title, style: 'bold' }))
  return tableLine(columns, widths, titles, style)
}

export function tableLine(
  columns: readonly Column[],
  widths: readonly number[],
  cells: readonly Cell[],
  style: TerminalStyle,
): string {
  const texts = columns.map(({ align }, at) => {
    const cell = cells[at] ?? ''
    const text = textOf(cell)
    const painted = typeof cell === 'string' || text === '' ? text : style.paint(cell.style, text)
    const blanks = ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(text)))
    return align === 'right' ? blanks + painted : painted + blanks
  })
  return texts.join('  ').trimEnd()
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text
}

/** Amounts of a column with the same number of decimals, so that their points stand below each other. */
export function alignAmounts(amounts: readonly string[], decimalsMin = 2): string[] {
  const decimals = amounts.reduce((most, amount) => Math.max(most, fractionOf(amount).length), decimalsMin)
  return amounts.map((amount) => withDecimals(amount, decimals))
}

/** An amount as the API writes it, with zeros behind it. No digit is ever taken away. */
export function withDecimals(amount: string, decimals: number): string {
  const [whole = ''] = amount.split('.')
  return `${whole}.${fractionOf(amount).padEnd(decimals, '0')}`
}

function fractionOf(amount: string): string {
  return amount.split('.')[1] ?? ''
}
