import { styleText } from 'node:util'
import type { Environment } from '../config.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** What the output may look like: for people on a terminal, or plain. */
export interface Look {
  readonly isTerminal: boolean
  /** How wide it is. Without an end in a pipe. */
  readonly columns: number
  /** What bars are made of. */
  readonly bar: string
  paint(style: Style, text: string): string
}

/** Colour only on a terminal, and not where it was asked to be left out (https://no-color.org). */
export function lookOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  environment: Environment,
  noColor: boolean,
): Look {
  const isTerminal = stream.isTTY === true
  const refused = noColor || (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb'
  const charset = environment['LC_ALL'] || environment['LC_CTYPE'] || environment['LANG'] || ''
  return {
    isTerminal,
    columns: isTerminal ? (stream.columns ?? 80) : Number.POSITIVE_INFINITY,
    bar: /utf-?8/i.test(charset) ? '█' : '#',
    paint: (style, text) =>
      isTerminal && !refused ? styleText(style, text, { validateStream: false }) : text,
  }
}
