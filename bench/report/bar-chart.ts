import { shownNumber } from './columns.ts'
import type { Spread } from './results.ts'
import { svgDocument, svgLine, svgRect, svgText } from './svg.ts'

export interface Bar {
  readonly label: string
  readonly spread: Spread
  /** The bars of Tollgate stand out. */
  readonly own: boolean
}

export interface Panel {
  readonly title: string
  readonly bars: readonly Bar[]
}

const WIDTH = 760
const LABEL_WIDTH = 190
const VALUE_WIDTH = 130
const BAR_HEIGHT = 16
const ROW_HEIGHT = 24
const PANEL_HEAD = 30
const TITLE_HEIGHT = 52

/** Horizontal bars with the median and a line from the lowest to the highest round; each panel has its own scale. */
export function barChart(title: string, unit: string, digits: number, panels: readonly Panel[]): string {
  const parts = [
    svgText(12, 24, title, 'title'),
    svgText(12, 42, `${unit}; bars: median of the rounds, lines: lowest to highest round`, 'faint'),
  ]
  let y = TITLE_HEIGHT
  for (const panel of panels) {
    parts.push(svgText(12, y + 20, panel.title, 'panel'))
    y += PANEL_HEAD
    const most = Math.max(...panel.bars.map((bar) => bar.spread.max), Number.MIN_VALUE)
    const scale = (value: number): number =>
      LABEL_WIDTH + (Math.max(0, value) / most) * (WIDTH - LABEL_WIDTH - VALUE_WIDTH)
    for (const bar of panel.bars) {
      const middle = y + BAR_HEIGHT / 2
      const { median, min, max } = bar.spread
      parts.push(
        svgText(LABEL_WIDTH - 8, middle + 4.5, bar.label, '', 'end'),
        svgRect(
          LABEL_WIDTH,
          y,
          Math.max(1, scale(median) - LABEL_WIDTH),
          BAR_HEIGHT,
          bar.own ? 'own' : 'bar',
        ),
        svgLine(
          [
            [scale(min), middle],
            [scale(max), middle],
          ],
          'spread',
        ),
        ...[min, max].map((end) =>
          svgLine(
            [
              [scale(end), middle - 4],
              [scale(end), middle + 4],
            ],
            'spread',
          ),
        ),
        svgText(scale(Math.max(median, max)) + 8, middle + 4.5, shownNumber(median, digits)),
      )
      y += ROW_HEIGHT
    }
    y += 6
  }
  return svgDocument(title, WIDTH, y + 8, parts)
}
