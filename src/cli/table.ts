import type { Look, Style } from './look.ts'
import { widthOf } from './shown-text.ts'

export interface Column {
  readonly title: string
  readonly align: 'left' | 'right'
}

/** A text, or one in a colour. */
export type Cell = string | { readonly text: string; readonly style: Style }

/** Rows under their titles, each column as wide as it needs to be. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  look: Look,
): string {
  const widths = widthsOf(columns, rows)
  return [titleLine(columns, widths, look), ...rows.map((row) => tableLine(columns, widths, row, look))]
    .map((line) => `${line}\n`)
    .join('')
}

export function widthsOf(columns: readonly Column[], rows: readonly (readonly Cell[])[]): number[] {
  return columns.map(({ title }, at) =>
    rows.reduce((width, row) => Math.max(width, widthOf(textOf(row[at] ?? ''))), title.length),
  )
}

export function titleLine(columns: readonly Column[], widths: readonly number[], look: Look): string {
  const titles = columns.map(({ title }): Cell => ({ text: title, style: 'bold' }))
  return tableLine(columns, widths, titles, look)
}

export function tableLine(
  columns: readonly Column[],
  widths: readonly number[],
  cells: readonly Cell[],
  look: Look,
): string {
  const texts = columns.map(({ align }, at) => {
    const cell = cells[at] ?? ''
    const text = textOf(cell)
    const painted = typeof cell === 'string' || text === '' ? text : look.paint(cell.style, text)
    const blanks = ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(text)))
    return align === 'right' ? blanks + painted : painted + blanks
  })
  return texts.join('  ').trimEnd()
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text
}
