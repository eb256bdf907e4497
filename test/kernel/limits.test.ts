import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { limits } from '../../src/kernel/limits.ts'
import { test } from '../support/suite.ts'

const page = readFileSync(new URL('../../docs/CONFIGURATION.md', import.meta.url), 'utf8')
const section = page.split('\n## Limits\n')[1] ?? ''
const rows = new Map(
  [...section.matchAll(/^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|/gm)].map(([, name = '', value, text]) => [
    name,
    { value, text },
  ]),
)

/** A limit as the page writes it; its name ends in the unit. */
function shown(name: string, value: number): string {
  const units: readonly (readonly [string, number])[] = /Bytes/.test(name)
    ? [
        ['GiB', 1024 ** 3],
        ['MiB', 1024 ** 2],
        ['KiB', 1024],
      ]
    : /Ms(?=[A-Z]|$)/.test(name)
      ? [
          ['h', 3_600_000],
          ['min', 60_000],
          ['s', 1_000],
          ['ms', 1],
        ]
      : []
  const [unit, size] = units.find(([, size]) => value % size === 0) ?? ['', 1]
  return `${(value / size).toLocaleString('en-US')} ${unit}`.trim()
}

test('docs/CONFIGURATION.md lists every limit with its default and its effect', () => {
  const missing = Object.entries(limits).flatMap(([name, value]) => {
    const row = rows.get(name)
    const wanted = shown(name, value)
    if (row === undefined) return [`there is no row: | \`${name}\` | ${wanted} | … |`]
    return row.value === wanted ? [] : [`\`${name}\` is ${wanted}, and the page says ${row.value}`]
  })
  assert.deepEqual(missing, [])
})

test('docs/CONFIGURATION.md lists nothing that is not a limit', () => {
  assert.deepEqual(
    [...rows.keys()].filter((name) => !Object.hasOwn(limits, name)),
    [],
  )
})
