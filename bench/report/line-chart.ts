import type { Sample } from '../groups/group.ts'
import { svgDocument, svgLine, svgText } from './svg.ts'

const WIDTH = 760
const HEIGHT = 320
const LEFT = 60
const TOP = 56
const RIGHT = 20
const BOTTOM = 40
const GRID_LINES = 4

/** Memory over time, from zero, so that a flat line looks flat and a growing one does not. */
export function memoryChart(title: string, samples: readonly Sample[]): string {
  const most = Math.max(...samples.map((sample) => sample.memoryMb)) * 1.1
  const lastSeconds = Math.max(...samples.map((sample) => sample.atSeconds), 1)
  const x = (seconds: number): number => LEFT + (seconds / lastSeconds) * (WIDTH - LEFT - RIGHT)
  const y = (megabytes: number): number => HEIGHT - BOTTOM - (megabytes / most) * (HEIGHT - TOP - BOTTOM)
  const parts = [svgText(12, 24, title, 'title'), svgText(12, 42, 'MB of memory over minutes', 'faint')]
  for (let i = 0; i <= GRID_LINES; i += 1) {
    const level = (most * i) / GRID_LINES
    parts.push(
      svgLine(
        [
          [LEFT, y(level)],
          [WIDTH - RIGHT, y(level)],
        ],
        'grid',
      ),
    )
    parts.push(svgText(LEFT - 8, y(level) + 4.5, level.toFixed(0), 'faint', 'end'))
    const seconds = (lastSeconds * i) / GRID_LINES
    parts.push(svgText(x(seconds), HEIGHT - BOTTOM + 20, (seconds / 60).toFixed(1), 'faint', 'middle'))
  }
  parts.push(
    svgLine(
      samples.map((sample) => [x(sample.atSeconds), y(sample.memoryMb)] as const),
      'line',
    ),
  )
  return svgDocument(title, WIDTH, HEIGHT, parts)
}
