import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'

/** The paths in the first column of the table, in docs/BILLING.md. */
function documented(): string[] {
  const text = readFileSync(new URL('../../docs/BILLING.md', import.meta.url), 'utf8')
  const section = text.split('## Every paid endpoint')[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| `/v1'))
  return rows.flatMap((row) => row.split(' | ')[0]?.match(/\/v1[^`]*/g) ?? [])
}

test('the table of paid endpoints has all that cost something, each once, and no other', () => {
  const paid = allEndpoints().filter(({ billing }) => billing !== 'free' && billing !== 'mints_credential')
  assert.deepEqual(documented().sort(), [...new Set(paid.map(({ template }) => template))].sort())
})
