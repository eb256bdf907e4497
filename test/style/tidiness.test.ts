import assert from 'node:assert/strict'
import { test } from '../support/suite.ts'
import { readSourceTree } from './source-tree.ts'

const files = readSourceTree('src', 'simulator', 'dashboard', 'test')
const source = files.filter((file) => !file.path.startsWith('test/'))

function offenders(pattern: RegExp, among = source): string[] {
  return among.filter((file) => pattern.test(file.text)).map((file) => file.path)
}

test('no file is longer than 450 lines', () => {
  const long = files.filter((file) => file.text.split('\n').length > 451).map((file) => file.path)
  assert.deepEqual(long, [], 'split the file into one file per idea')
})

test('no folder or file has a vague name', () => {
  const vague = /(^|\/)(utils?|helpers?|common|misc|shared|manager|index)(\/|\.ts$)/
  assert.deepEqual(
    files.map((file) => file.path).filter((path) => vague.test(path)),
    [],
  )
})

test('nothing silences the type checker or the linter', () => {
  assert.deepEqual(offenders(/@ts-(ignore|nocheck|expect-error)|biome-ignore/), [])
})

test('time comes from the injected clock', () => {
  const readers = offenders(
    /\bDate\.now\(\)|new Date\(\)/,
    source.filter((file) => file.path.startsWith('src/')),
  )
  // The log uses the machine's time, whatever the service's Clock is.
  assert.deepEqual(readers, ['src/kernel/clock.ts', 'src/kernel/log.ts'], 'take a Clock as an argument')
})

test('no test is skipped, exclusive or todo', () => {
  const tests = files.filter((file) => file.path.endsWith('.test.ts'))
  assert.deepEqual(offenders(/\b(?:it|test|describe|suite)\.(?:only|skip|todo)\b|\bt\.skip\(/, tests), [])
})
