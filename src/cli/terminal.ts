import { styleText } from 'node:util'
import type { Environment } from '../config.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import { withCommas } from '../kernel/money.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

/** The style of output: for a terminal, or plain. */
export interface TerminalStyle {
  readonly isTerminal: boolean
  /** The width of the terminal; infinite in a pipe. */
  readonly columns: number
  paint(style: Style, text: string): string
}

/** Colour only on a terminal, and not with NO_COLOR (https://no-color.org). */
export function terminalStyle(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  environment: Environment,
  noColor: boolean,
): TerminalStyle {
  const isTerminal = stream.isTTY === true
  const refused = noColor || (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb'
  return {
    isTerminal,
    columns: isTerminal ? (stream.columns ?? 80) : Number.POSITIVE_INFINITY,
    paint: (style, text) =>
      isTerminal && !refused ? styleText(style, text, { validateStream: false }) : text,
  }
}

/** The style of standard output. */
export function outputStyle({ color }: { readonly color: boolean }): TerminalStyle {
  return terminalStyle(process.stdout, process.env, !color)
}

/** The style of output that is the same on a terminal and in a pipe. */
export const PLAIN: TerminalStyle = terminalStyle({}, {}, true)

/**
 * Makes untrusted text safe for a terminal: names of keys and models must not move the cursor, change the text
 * direction or fill the screen. Letters of all scripts stay.
 */
export function shownText(text: string, widthMax = 100): string {
  const plain = text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '?')
  if (widthOf(plain) <= widthMax && plain.length <= 4 * widthMax) return plain
  let shown = ''
  for (const char of plain) {
    // Combining marks have no width, so the number of characters is limited too.
    if (widthOf(shown + char) >= widthMax || shown.length >= 2 * widthMax) break
    shown += char
  }
  return `${shown}…`
}

/** Control and formatting characters except newline and tab: they move the cursor or change the text direction. */
const UNSAFE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Makes multi-line text safe for a terminal. */
export function shownLines(text: string): string {
  return text.replace(/\r/g, '').replace(UNSAFE, '\ufffd')
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u

/** The text's width in terminal columns. */
function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const char of text) width += /\p{M}/u.test(char) ? 0 : WIDE.test(char) ? 2 : 1
  return width
}

/** A timestamp of the API, in UTC, without saying so: the caller must. */
export function shownInstant(instant: string | null): string {
  return instant === null ? '-' : shownText(instant.replace(/^(.{10})T(.{8}).*$/, '$1 $2'), 30)
}

/** A number with thousands separators. Text that is not a number stays unchanged. */
export function shownCount(count: number | string): string {
  if (typeof count === 'number') return withCommas(count)
  return /^\d+$/.test(count) ? withCommas(BigInt(count)) : count
}

export function counted(count: number, noun: string): string {
  return `${shownCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

export interface TableColumn {
  readonly title: string
  readonly align: 'left' | 'right'
}

export const left = (title: string): TableColumn => ({ title, align: 'left' })
export const right = (title: string): TableColumn => ({ title, align: 'right' })

/** A text, or a text with a style. */
export type TableCell = string | { readonly text: string; readonly style: Style }

export type Rows = readonly (readonly TableCell[])[]

/**
 * Rows under their titles, with columns as wide as needed. On a narrow terminal the `dispensable` columns are dropped
 * one by one.
 */
export function renderTable(
  columns: readonly TableColumn[],
  rows: Rows,
  style: TerminalStyle,
  dispensable: readonly string[] = [],
): string {
  const widths = columns.map(({ title }, at) =>
    rows.reduce((width, row) => Math.max(width, widthOf(textOf(row[at] ?? ''))), title.length),
  )
  const width = widths.reduce((sum, each) => sum + each + 2, -2)
  const dropped = columns.findIndex(({ title }) => title === dispensable[0])
  if (width > style.columns && dropped >= 0) {
    const others = <T>(cells: readonly T[]) => cells.filter((_, at) => at !== dropped)
    return renderTable(others(columns), rows.map(others), style, dispensable.slice(1))
  }
  const titles = columns.map(({ title }): TableCell => ({ text: title, style: 'bold' }))
  return [titles, ...rows].map((cells) => `${tableLine(columns, widths, cells, style)}\n`).join('')
}

function tableLine(
  columns: readonly TableColumn[],
  widths: readonly number[],
  cells: readonly TableCell[],
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

function textOf(cell: TableCell): string {
  return typeof cell === 'string' ? cell : cell.text
}

/** A column of a table. Amounts are aligned at the decimal point; null is a dash. */
export interface Field<Row> {
  readonly title: string
  of(row: Row): TableCell | null
  readonly kind?: 'right' | 'amount'
}

export function renderRows<Row>(
  fields: readonly Field<Row>[],
  rows: readonly Row[],
  style: TerminalStyle,
  dispensable: readonly string[] = [],
): string {
  const columns = fields.map(({ of, kind }) => {
    const cells = rows.map((row) => of(row))
    if (kind !== 'amount') return cells.map((cell) => cell ?? '-')
    const aligned = alignAmounts(cells.map((cell) => (cell === null ? '0' : textOf(cell))))
    return cells.map((cell, at) => (cell === null ? '-' : shownText(aligned[at] ?? '')))
  })
  const titles = fields.map(({ title, kind }) => (kind === undefined ? left(title) : right(title)))
  const cells = rows.map((_, at) => columns.map((column) => column[at] ?? ''))
  return renderTable(titles, cells, style, dispensable)
}

/** The fields of one record, each on a line. */
export function renderLines(lines: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...lines.map(([name]) => name.length))
  return lines.map(([name, value]) => `${name.padEnd(width)} ${shownText(value)}\n`).join('')
}

/** An amount for display, with at least two decimals. */
export function shownUsd(amount: string): string {
  return `${amount.startsWith('-') ? '-' : ''}$${shownText(alignAmounts([amount.replace('-', '')])[0] ?? '')}`
}

/** Pads the amounts of a column to the same number of decimals, so that the points align. */
export function alignAmounts(amounts: readonly string[]): string[] {
  const parts = amounts.map((amount) => amount.split('.'))
  const decimals = parts.reduce((most, [, fraction = '']) => Math.max(most, fraction.length), 2)
  return parts.map(([whole = '', fraction = '']) => `${whole}.${fraction.padEnd(decimals, '0')}`)
}

/** The reader of the output is gone, as with `| head`. Not an error. */
export class ReaderGone extends Error {}

/** The output could not be written. Part of an export must not look complete. */
export class OutputFailed extends Error {}

/** Writes to standard output and resolves when there is room for more. */
export function print(chunk: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      const isGone = 'code' in error && error.code === 'EPIPE'
      reject(isGone ? new ReaderGone() : new OutputFailed(`the output cannot be written: ${error.message}`))
    }
    try {
      process.stdout.write(chunk, (error) => {
        if (error === null || error === undefined) resolve()
        else fail(error)
      })
    } catch (error) {
      // Writing to a file is synchronous, and throws.
      fail(error as Error)
    }
  })
}

/** Prints an answer: byte for byte to a pipe, made safe on a terminal. */
export async function printData(chunks: AsyncIterable<Uint8Array> | readonly string[]): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of chunks) {
    if (!process.stdout.isTTY) await print(chunk)
    else await print(shownLines(typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })))
  }
}

/** Prints even if the reader is gone: a command that moves money must finish its work. */
export async function printUnread(chunk: string): Promise<void> {
  await print(chunk).catch((error: unknown) => {
    if (!(error instanceof ReaderGone)) throw error
  })
}

/** Asks for confirmation on the terminal. No terminal or no answer means no. */
export async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    // Rejects if the input ends or is interrupted.
    const answer = await terminal.question(`${question} [y/N] `).catch(() => '')
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    terminal.close()
  }
}

// Progress

type BarStream = Pick<NodeJS.WriteStream, 'isTTY' | 'write'> & { readonly columns?: number }

export interface Progress {
  /** Without a total, only the count is shown. */
  show(done: number, total: number | null): void
  /** Removes the bar before the next output. */
  end(): void
}

const REDRAW_MS = 100
const CLEAR_LINE = '\r\x1b[K'

/** A bar on a terminal, nothing elsewhere. */
export function createProgress(
  label: string,
  stream: BarStream = process.stderr,
  clock: Clock = systemClock,
): Progress {
  if (!stream.isTTY) return { show() {}, end() {} }
  let drawnAtMs = -Infinity
  return {
    show(done, total) {
      const nowMs = clock.monotonicMs()
      if (nowMs - drawnAtMs < REDRAW_MS) return
      drawnAtMs = nowMs
      if (total === null) {
        stream.write(`\r${label} ${shownCount(done)}`)
        return
      }
      const part = total <= 0 ? 1 : Math.min(1, done / total)
      const bar = barOf(Math.round(part * 30), 30)
      stream.write(`\r${label} [${bar}] ${String(Math.floor(part * 100)).padStart(3)} %`)
    },
    end() {
      if (drawnAtMs !== -Infinity) stream.write(CLEAR_LINE)
    },
  }
}

function barOf(filled: number, width: number): string {
  return '#'.repeat(filled).padEnd(width, '.')
}
