import assert from 'node:assert/strict'
import { mkdir, mkdtemp, open, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { openSpoolWriter } from '../../src/ledger/settlement-spool.ts'
import { readSpoolFile, toSpoolRow } from '../../src/ledger/spool-file.ts'
import { test } from '../support/suite.ts'
import { anyClosing, closingOf } from './closings.ts'
import { bench, idsOf, parent } from './spool-bench.ts'

const A = closingOf('req_a', { costNanos: 2n ** 63n - 1n })
const B = closingOf('req_b')
const C = closingOf('req_c')

test('whatever a closing has in its texts and amounts, it comes back as it was', async () => {
  const { open } = await bench()
  await fc.assert(
    fc.asyncProperty(anyClosing, async (closing) => {
      const first = await open()
      await first.keep(closing)
      await first.close()
      const second = await open()
      assert.deepEqual(second.left(), [closing])
      second.done(closing.requestId)
      await second.close()
    }),
    { numRuns: 20 },
  )
})

test('directory and files are for their owner alone', async () => {
  const { dir, open } = await bench()
  // The program sets this umask at its start.
  const umask = process.umask(0o077)
  const spool = await open().finally(() => process.umask(umask))
  await Promise.all([spool.keep(A), spool.keep(B)])
  await spool.refuse(A, 'there is no such call')
  await spool.close()
  const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)
  assert.equal(await modeOf(dir), '700')
  const names = (await readdir(dir)).sort()
  assert.deepEqual(names, ['refused.jsonl', 'settlements.db'])
  for (const name of names) assert.equal(await modeOf(join(dir, name)), '600')
})

test('a row of which a figure was changed is not sent, and the file with it is kept aside', async () => {
  const { open, dir, file, lines } = await bench()
  const first = await open()
  for (const closing of [A, B, C]) await first.keep(closing)
  await first.close()
  const bytes = await readFile(file)
  const at = bytes.indexOf('"costNanos":"', bytes.indexOf('req_b"')) + '"costNanos":"'.length
  bytes[at] = (bytes[at] ?? 0) ^ 1
  await writeFile(file, bytes)
  const second = await open()
  assert.deepEqual(idsOf(second.left()), ['req_a', 'req_c'])
  await second.close()
  const aside = (await readdir(dir)).filter((name) => name.endsWith('.damaged'))
  assert.equal(aside.length, 1)
  // All pages are the same except the first, in which SQLite counts changes.
  const kept = await readFile(join(dir, String(aside[0])))
  assert.deepEqual(kept.subarray(4_096), bytes.subarray(4_096))
  assert.deepEqual(lines, ['error: the settlement spool was damaged and is kept aside'])
  const third = await open()
  assert.deepEqual(idsOf(third.left()), ['req_a', 'req_c'])
  await third.close()
})

test('of a file with a damaged page all other settlements are sent, those behind it too', async () => {
  const { open: openSpool, file, lines } = await bench()
  const first = await openSpool()
  const many = Array.from({ length: 30 }, (_, i) => closingOf(`req_${i}`, { usage: 'x'.repeat(700) }))
  await Promise.all(many.map((closing) => first.keep(closing)))
  await first.close()
  const bytes = await readFile(file)
  const page = Math.floor(bytes.indexOf('"req_15"') / 4_096)
  const handle = await open(file, 'r+')
  await handle.write(Buffer.alloc(4_096, 0xff), 0, 4_096, page * 4_096)
  await handle.close()
  const second = await openSpool()
  const left = new Set(idsOf(second.left()))
  const lost = many.filter(({ requestId }) => !left.has(requestId))
  assert.ok(lost.length > 0 && lost.length < 5, idsOf(lost).join())
  await second.close()
  assert.deepEqual(lines, ['error: the settlement spool was damaged and is kept aside'])
})

test('a file that is no database is kept aside, and another is begun', async () => {
  const { open, onDisk, dir, file } = await bench()
  await (await open()).close()
  await writeFile(file, 'garbage'.repeat(1_000))
  const spool = await open()
  assert.deepEqual(spool.left(), [])
  await spool.keep(A)
  await spool.close()
  assert.deepEqual(await onDisk(), [A])
  assert.equal((await readdir(dir)).filter((name) => name.endsWith('.damaged')).length, 1)
})

test('a spool of an earlier version in which settlements wait fails the start, an empty one does not', async () => {
  const { open, dir } = await bench()
  await mkdir(dir)
  const log = join(dir, 'settlements.log')
  await writeFile(log, 'a settlement')
  await assert.rejects(open, /Start that version once more, until the file is empty/)
  await writeFile(log, '')
  await (await open()).close()
})

test('a thread that died fails its write, and the next one starts another', async () => {
  const dir = join(await mkdtemp(join(parent, 'dir-')), 'later')
  const path = join(dir, 'settlements.db')
  const writer = openSpoolWriter(path)
  const change = { takenIds: [], rows: [toSpoolRow(A)] }
  await assert.rejects(writer.write(change), /unable to open database file/)
  await mkdir(dir)
  await writer.write(change)
  await writer.close()
  assert.deepEqual(readSpoolFile(path).left, [A])
})
