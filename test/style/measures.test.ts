import assert from 'node:assert/strict'
import { test } from '../support/suite.ts'
import {
  fieldsOfClasses,
  hiddenShapes,
  linesOfFunctions,
  type Measured,
  namesExportedTwice,
  testsOfProviderWords,
  typesDeclaredTwice,
} from './source-measures.ts'
import { readSourceTree } from './source-tree.ts'

const files = readSourceTree('src')

/** The limits of CONTRIBUTING.md, or the figure reached so far. If yours is lower, lower the limit. */
const LIMITS = [
  { what: 'classes with more than 12 fields', found: above(12, fieldsOfClasses(files)), max: 4 },
  { what: 'classes with more than 16 fields', found: above(16, fieldsOfClasses(files)), max: 0 },
  { what: 'functions of more than 60 lines', found: above(60, linesOfFunctions(files)), max: 6 },
  { what: 'names that two modules export', found: namesExportedTwice(files), max: 0 },
  { what: 'names of types declared twice', found: typesDeclaredTwice(files), max: 8 },
  { what: 'files that test words of a provider', found: testsOfProviderWords(files), max: 3 },
  { what: 'files with a hidden shape', found: hiddenShapes(files), max: 6 },
]

for (const { what, found, max } of LIMITS) {
  test(`${what}: at most ${max}`, (t) => {
    const list = found
      .sort((a, b) => b.size - a.size)
      .map(({ name, size, path }) => `${name} ${size} ${path}`)
    t.diagnostic(`${found.length} ${what}: ${list.join(', ')}`)
    assert.ok(found.length <= max, `${found.length} ${what}:\n${list.join('\n')}`)
  })
}

function above(max: number, measured: readonly Measured[]): Measured[] {
  return measured.filter(({ size }) => size > max)
}
