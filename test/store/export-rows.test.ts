import assert from 'node:assert/strict'
import { exportLines, whyNotExported } from '../../src/store/export-rows.ts'
import { importLines } from '../../src/store/import-rows.ts'
import { DataDir, fillLedger } from '../ledger/test-ledger.ts'
import { after, before, test } from '../support/suite.ts'

const ledger = new DataDir()
let lines: string[]
before(async () => {
  await fillLedger(ledger)
  await ledger.tamper(`UPDATE credit SET amount_nanos = 9100000000000001;
    INSERT INTO setting (name, value) VALUES ('pepper', 'fingerprint')`)
  const reader = await ledger.openReader()
  lines = []
  await exportLines(reader, async (group) => lines.push(...group))
  await reader.close()
})
after(() => ledger.remove())

async function* each(texts: readonly string[]) {
  yield* texts
}

async function imported(texts: readonly string[], pepper = 'fingerprint') {
  const tables = new Map<string, unknown[]>()
  const rows = await importLines(each(texts), pepper, async (table, _columns, cells) => {
    tables.set(table, [...(tables.get(table) ?? []), ...cells])
  })
  assert.equal(rows, [...tables.values()].flat().length)
  return tables
}

test('an export and import preserves all rows, with every digit of integers beyond 2^53', async () => {
  const tables = await imported(lines)
  assert.equal(tables.get('call')?.length, 9)
  assert.equal(tables.get('hold')?.length, 1)
  assert.ok(tables.get('credit')?.flat().includes('9100000000000001'))
})

test('an import refuses a missing row, another pepper or missing columns', async () => {
  const firstCall = lines.findIndex((line) => line.startsWith('["req_'))
  await assert.rejects(imported(lines.toSpliced(firstCall, 1)), /its end is missing/)
  await assert.rejects(imported(lines, 'another'), /another pepper/)
  const fewer = lines.map((line) => line.replace('"columns":["name","value"]', '"columns":["name"]'))
  await assert.rejects(imported(fewer), /the columns of setting are not those of this version/)
})

test('an open call prevents an export, a deferred object does not', async () => {
  const why = async () => {
    const reader = await ledger.openReader()
    const reason = await whyNotExported(reader)
    await reader.close()
    return reason
  }
  assert.match((await why()) ?? '', /ended without closing its calls/)
  await ledger.tamper("UPDATE hold SET object_id = 'batch_1', node_id = ''")
  assert.equal(await why(), null)
})
