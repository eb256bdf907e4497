import { styleText } from 'node:util'
import type { Environment } from '../config/read-config.ts'
import { withCommas } from '../kernel/money.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

export type TerminalStyle = ReturnType<typeof terminalStyle>

/** Colours are used only on a terminal, and not if NO_COLOR is set (https://no-color.org). */
export function terminalStyle(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  environment: Environment,
  noColor: boolean,
) {
  const isTerminal = stream.isTTY === true
  const refused = noColor || (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb'
  return {
    isTerminal,
    columns: isTerminal ? (stream.columns ?? 80) : Number.POSITIVE_INFINITY,
    paint: (style: Style, text: string) =>
      isTerminal && !refused ? styleText(style, text, { validateStream: false }) : text,
  }
}

export function outputStyle({ color = true }: { readonly color?: boolean }) {
  return terminalStyle(process.stdout, process.env, !color)
}

/** The style of output that is the same on a terminal and in a pipe. */
export const PLAIN = terminalStyle({}, {}, true)

/** Names of keys and models must not move the cursor, change the text direction or fill the screen. */
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

export function shownLines(text: string): string {
  return text.replace(/\r/g, '').replace(UNSAFE, '\ufffd')
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u

function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const char of text) width += /\p{M}/u.test(char) ? 0 : WIDE.test(char) ? 2 : 1
  return width
}

/** A timestamp of the API in UTC. The caller must say that it is UTC. */
export function shownInstant(instant: string | null): string {
  return instant === null ? '-' : shownText(instant.replace(/^(.{10})T(.{8}).*$/, '$1 $2'), 30)
}

export function shownCount(count: number | string): string {
  if (typeof count === 'number') return withCommas(count)
  return /^\d+$/.test(count) ? withCommas(BigInt(count)) : count
}

export function counted(count: number, noun: string): string {
  return `${shownCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

export type TableCell = string | { readonly text: string; readonly style: Style }

const textOf = (cell: TableCell): string => (typeof cell === 'string' ? cell : cell.text)

const isFigure = (cell: TableCell): boolean => /^(?:-|-?[\d,]+(?:\.\d+)?)?$/.test(textOf(cell))

/** Numbers are right-aligned. On a narrow terminal the `dispensable` columns are left out one by one. */
export function renderTable(
  titles: readonly string[],
  rows: readonly (readonly TableCell[])[],
  style: TerminalStyle,
  dispensable: readonly string[] = [],
): string {
  const columns = titles.map((title, at) => {
    const cells = rows.map((row) => row[at] ?? '')
    const width = Math.max(title.length, ...cells.map((cell) => widthOf(textOf(cell))))
    return { width, isRight: cells.every(isFigure) }
  })
  const dropped = titles.indexOf(dispensable[0] ?? '')
  if (columns.reduce((sum, { width }) => sum + width + 2, -2) > style.columns && dropped >= 0) {
    const others = <T>(cells: readonly T[]) => cells.filter((_, at) => at !== dropped)
    return renderTable(others(titles), rows.map(others), style, dispensable.slice(1))
  }
  const lines = [titles.map((text): TableCell => ({ text, style: 'bold' })), ...rows].map((cells) => {
    const shown = columns.map(({ width, isRight }, at) => {
      const cell = cells[at] ?? ''
      const text = textOf(cell)
      const painted = typeof cell === 'string' || text === '' ? text : style.paint(cell.style, text)
      const blanks = ' '.repeat(width - widthOf(text))
      return isRight ? blanks + painted : painted + blanks
    })
    return `${shown.join('  ').trimEnd()}\n`
  })
  return lines.join('')
}

export function shownUsd(amount: string): string {
  return `${amount.startsWith('-') ? '-' : ''}$${shownText(alignAmounts([amount.replace('-', '')])[0] ?? '')}`
}

/** Pads the amounts of a column to the same number of decimals, so that the points align. */
export function alignAmounts(amounts: readonly string[]): string[] {
  const parts = amounts.map((amount) => amount.split('.'))
  const decimals = parts.reduce((most, [, fraction = '']) => Math.max(most, fraction.length), 2)
  return parts.map(([whole = '', fraction = '']) => `${whole}.${fraction.padEnd(decimals, '0')}`)
}

/** The reader of the output has gone, as with `| head`. This is not a failure. */
export class ReaderGone extends Error {}

/** The output could not be written. The command fails, so that part of an export does not look complete. */
export class OutputFailed extends Error {}

export function print(chunk: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      const isGone = 'code' in error && error.code === 'EPIPE'
      reject(isGone ? new ReaderGone() : new OutputFailed(`The output cannot be written: ${error.message}.`))
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

/** Prints an answer: byte for byte to a pipe, without control characters on a terminal. */
export async function printData(chunks: AsyncIterable<Uint8Array> | readonly string[]): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of chunks) {
    if (!process.stdout.isTTY) await print(chunk)
    else await print(shownLines(typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })))
  }
}

/** The option of every command that calls `printResult` and sends no request of the API. */
export const JSON_OPTION = ['--json', 'print one JSON object'] as const

/** The result of a command: text for people or, with --json, an object for programs. */
export async function printResult(
  { json }: { readonly json?: boolean },
  result: object,
  text: string,
): Promise<void> {
  await print(json === true ? `${JSON.stringify(result)}\n` : text)
}

/** For commands that change balances: they must finish their work even if the reader of the output has gone. */
export async function printIgnoringClosedPipe(chunk: string): Promise<void> {
  await print(chunk).catch((error: unknown) => {
    if (!(error instanceof ReaderGone)) throw error
  })
}
