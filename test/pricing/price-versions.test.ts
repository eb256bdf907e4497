import assert from 'node:assert/strict'
import { buildBook } from '../../src/pricing/build-book.ts'
import { versionAt } from '../../src/pricing/price-book.ts'
import type { PriceList } from '../../src/pricing/price-file.ts'
import { mergeLists } from '../../src/pricing/price-list.ts'
import { test } from '../support/suite.ts'

const model = (id: string) => ({ id, provider: 'openai', rates: { standard: { input: '1', output: '2' } } })
const change = (id: string, effective_from: string) => ({ id, effective_from, models: [model(`of-${id}`)] })
const base = { id: 'base', effective_from: '2026-01-01', models: [model('alpha')] }
const known = { revision: 1, base, changes: [change('march', '2026-03-01')] } as PriceList

const versionOf = (list: PriceList) =>
  versionAt(buildBook({ list, sets: [], overlays: [] }), Date.parse('2026-09-01'))

function pushed(list: object): PriceList {
  const merged = mergeLists(known, { ...known, revision: 2, ...list } as PriceList)
  return 'list' in merged ? merged.list : assert.fail(merged.reason)
}

test('other prices have another id, however they came into the list', () => {
  assert.equal(versionOf(known).id, 'march')
  assert.equal(versionOf(pushed({ changes: [change('april', '2026-04-01')] })).id, 'april')
  const additions = [
    { changes: [change('february', '2026-02-01')] },
    { changes: [change('january', '2026-01-15')] },
    { base: { ...base, models: [model('beta')] } },
    { base: { ...base, models: [model('gamma')] } },
  ]
  const ids = additions.map((list) => versionOf(pushed(list)).id)
  for (const id of ids) assert.match(id, /^march\+[0-9a-f]{8}$/)
  assert.equal(new Set(ids).size, ids.length)
  const again = additions.map((list) => versionOf(pushed(structuredClone(list))).id)
  assert.deepEqual(again, ids, 'the same on every node')
})
