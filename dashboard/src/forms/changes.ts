import type { Reading } from './readings.ts'

export type Readings = Readonly<Record<string, Reading<unknown>>>

/** The members whose values differ. An edit sends only them, so that it never undoes the edit of somebody else. */
export function changesOf(before: Readings, after: Readings): Record<string, unknown> {
  const changed = Object.entries(after).filter(
    ([name, reading]) => JSON.stringify(reading) !== JSON.stringify(before[name]),
  )
  return Object.fromEntries(
    changed.map(([name, reading]) => [name, 'value' in reading ? reading.value : null]),
  )
}
