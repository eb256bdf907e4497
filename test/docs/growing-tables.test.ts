import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { TABLES } from '../../src/store/tables.ts'
import { test } from '../support/suite.ts'

test('the page about operation says of each table what bounds it', () => {
  const page = readFileSync(new URL('../../docs/OPERATIONS.md', import.meta.url), 'utf8')
  const [, section = ''] = page.split('### What grows\n')
  const rows = section.split('\n## ', 1)[0]?.matchAll(/^\| (`.*?`) \|/gm) ?? []
  const named = [...rows].flatMap(([, names = '']) => names.replaceAll('`', '').split(', '))
  assert.deepEqual(named.sort(), TABLES.map(({ name }) => name).sort())
})
