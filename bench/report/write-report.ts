import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawCharts } from './charts.ts'
import { writeMarkdown } from './markdown.ts'
import type { Results } from './results.ts'

/** Writes the raw rounds, the tables and the charts side by side. Returns the names of the files. */
export function writeReport(results: Results, folder: string): string[] {
  mkdirSync(folder, { recursive: true })
  const compared = results.comparedTo === null ? '' : `-against-${results.comparedTo}`
  const name = `${results.date.slice(0, 10)}-${results.revision}${compared}`
  const charts = drawCharts(results).map((chart) => ({ ...chart, file: `${name}-${chart.name}.svg` }))
  const files: [string, string][] = [
    [`${name}.json`, `${JSON.stringify(results, null, 1)}\n`],
    [`${name}.md`, writeMarkdown(results, charts)],
    ...charts.map(({ file, svg }): [string, string] => [file, svg]),
  ]
  for (const [file, text] of files) writeFileSync(join(folder, file), text)
  return files.map(([file]) => join(folder, file))
}
