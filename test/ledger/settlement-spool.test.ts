import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { mock } from 'node:test'
import fc from 'fast-check'
import { SPOOL_WRITE_MS } from '../../src/ledger/settlement-spool.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { anyClosing, closingOf } from './closings.ts'
import { bench, idsOf, LARGE } from './spool-bench.ts'

const A = closingOf('req_a', { costNanos: 2n ** 63n - 1n })
const B = closingOf('req_b')
const C = closingOf('req_c')

test('the next process gets the spooled settlements exactly, in order', async () => {
  const { open, onDisk, lines } = await bench()
  const first = await open()
  assert.deepEqual(first.pending(), [])
  for (const closing of [A, B, C]) {
    await first.append(closing)
    assert.deepEqual((await onDisk()).at(-1), closing)
  }
  await first.close()
  const second = await open()
  assert.deepEqual(second.pending(), [A, B, C])
  assert.equal(second.waiting, 3)
  // A is already on disk.
  await second.append(A)
  await second.close()
  assert.deepEqual(lines, [])
})

test('append resolves once the settlement is on disk', async () => {
  const { open, disk } = await bench()
  const spool = await open()
  await spool.append(A)
  const { promise: gate, resolve: pass } = Promise.withResolvers<void>()
  disk.gate = gate
  let acknowledged = false
  const appended = spool.append(B).then(() => {
    acknowledged = true
  })
  await until('it is being written', async () => disk.changes.length === 2)
  assert.equal(acknowledged, false)
  pass()
  await appended
  await spool.close()
})

test('settlements that the store has taken are removed', async () => {
  const { open, onDisk } = await bench()
  const spool = await open()
  await Promise.all([A, B, C].map((closing) => spool.append(closing)))
  spool.remove('req_b')
  spool.remove('never spooled')
  await spool.append(closingOf('req_d'))
  await spool.close()
  assert.deepEqual(idsOf(await onDisk()), ['req_a', 'req_c', 'req_d'])
  const next = await open()
  for (const id of ['req_a', 'req_c', 'req_d']) next.remove(id)
  assert.equal(next.waiting, 0)
  await until('the file is empty', async () => (await onDisk()).length === 0)
  await next.close()
})

test('a refused settlement goes to a file for the operator, whether it was spooled or not', async () => {
  const { open, onDisk, dir } = await bench()
  const spool = await open()
  await Promise.all([spool.append(A), spool.append(B)])
  await spool.refuse(A, 'there is no call req_a')
  await spool.refuse(C, 'there is no call req_c')
  await spool.close()
  assert.deepEqual(await onDisk(), [B])
  const lines = (await readFile(join(dir, 'refused.jsonl'), 'utf8')).trim().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    [A, C].map((closing) => ({
      refused: `there is no call ${closing.requestId}`,
      kept: { ...closing, costNanos: String(closing.costNanos), listNanos: String(closing.listNanos) },
    })),
  )
})

for (const [file, obstruct] of [
  ['cannot be written', (path: string) => mkdir(path)],
  ['has its maximum size', (path: string) => writeFile(path, LARGE.repeat(4))],
] as const)
  test(`a refused settlement stays in the spool if the file for it ${file}`, async () => {
    const { open, onDisk, dir, lines } = await bench()
    const spool = await open()
    await spool.append(A)
    await obstruct(join(dir, 'refused.jsonl'))
    await spool.refuse(A, 'there is no such call')
    await spool.close()
    assert.deepEqual(lines, ['error: a refused settlement cannot be written to its file'])
    assert.deepEqual(await onDisk(), [A])
  })

test('a failing disk is reported, delays no call, and is written again when it works', async () => {
  const { open, onDisk, disk, lines } = await bench()
  const spool = await open()
  await spool.append(A)
  disk.fault = 'no room'
  await spool.append(B)
  assert.equal(spool.isDurable, false)
  await spool.append(C)
  assert.deepEqual(lines, [
    'error: the settlement spool cannot be written; no new call is admitted while settlements wait',
  ])
  // The earlier settlement is not lost with those that could not be written.
  assert.deepEqual(idsOf(await onDisk()), ['req_a'])
  disk.fault = null
  await until('the spool is written again', async () => spool.isDurable)
  assert.equal(lines.at(-1), 'info: the settlement spool works again')
  assert.deepEqual(idsOf(await onDisk()), ['req_a', 'req_b', 'req_c'])
  await spool.close()
})

test('after a failed fsync, all pending settlements are written again', async () => {
  const { open, onDisk, disk } = await bench()
  const spool = await open()
  await spool.append(A)
  disk.fault = 'failed fsync'
  await spool.append(B)
  assert.equal(spool.isDurable, false)
  disk.fault = null
  disk.changes.length = 0
  await spool.close()
  assert.deepEqual(disk.changes, [['req_a', 'req_b']])
  assert.deepEqual(await onDisk(), [A, B])
})

test('a disk that does not answer delays no call beyond the write timeout', async () => {
  const { open, onDisk, disk, lines } = await bench()
  const spool = await open()
  const { promise: gate, resolve: pass } = Promise.withResolvers<void>()
  disk.gate = gate
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const appended = spool.append(A)
    assert.equal(spool.isDurable, true)
    mock.timers.tick(SPOOL_WRITE_MS)
    await appended
    assert.equal(spool.isDurable, false)
    await spool.append(B)
    assert.deepEqual(lines, ['error: the disk of the settlement spool does not answer'])
  } finally {
    mock.timers.reset()
  }
  pass()
  await until('it answers', async () => spool.isDurable)
  await spool.close()
  assert.deepEqual(await onDisk(), [A, B])
})

test('above its maximum size the spool stops admissions, and every settlement is on disk', async () => {
  const { open, onDisk } = await bench()
  const spool = await open()
  const large = (id: string) => closingOf(id, { usage: LARGE })
  await Promise.all(['a', 'b', 'c'].map((id) => spool.append(large(id))))
  assert.equal(spool.isDurable, true)
  await spool.append(large('d'))
  assert.equal(spool.isDurable, false)
  assert.deepEqual(idsOf(await onDisk()), ['a', 'b', 'c', 'd'])
  spool.remove('a')
  assert.equal(spool.isDurable, true)
  await spool.close()
  assert.deepEqual(idsOf(await onDisk()), ['b', 'c', 'd'])
})

test('after any appends, removals and disk failures, pending settlements are on disk at the end', async () => {
  const id = fc.integer({ min: 0, max: 5 }).map((n) => `req_${n}`)
  const step = fc.oneof(
    fc.record({ do: fc.constant('keep' as const), id, wait: fc.boolean() }),
    fc.record({ do: fc.constant('done' as const), id }),
    fc.record({
      do: fc.constant('fault' as const),
      is: fc.constantFrom('no room', 'failed fsync', 'written and not acknowledged', null),
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { open, onDisk, disk } = await bench()
      const spool = await open()
      for (const now of steps) {
        if (now.do === 'fault') disk.fault = now.is
        if (now.do === 'done') spool.remove(now.id)
        if (now.do !== 'keep') continue
        const appended = spool.append(closingOf(now.id))
        if (!now.wait) continue
        await appended
        if (spool.isDurable) assert.ok(idsOf(await onDisk()).includes(now.id))
      }
      disk.fault = null
      await spool.close()
      const left = spool.pending()
      assert.deepEqual(left.length === 0 ? [] : await onDisk(), left)
    }),
    { numRuns: runs(50) },
  )
})

test('a closing with any texts and amounts is read back unchanged', async () => {
  const { open } = await bench()
  await fc.assert(
    fc.asyncProperty(anyClosing, async (closing) => {
      const first = await open()
      await first.append(closing)
      await first.close()
      const second = await open()
      assert.deepEqual(second.pending(), [closing])
      second.remove(closing.requestId)
      await second.close()
    }),
    { numRuns: runs(20) },
  )
})

test('a line with a changed figure is not sent, and its file is renamed', async () => {
  const { open, dir, file, lines } = await bench()
  const first = await open()
  for (const closing of [A, B, C]) await first.append(closing)
  await first.close()
  const bytes = await readFile(file)
  const at = bytes.indexOf('"costNanos":"', bytes.indexOf('req_b"')) + '"costNanos":"'.length
  bytes[at] = (bytes[at] ?? 0) ^ 1
  await writeFile(file, bytes)
  const second = await open()
  assert.deepEqual(idsOf(second.pending()), ['req_a', 'req_c'])
  await second.close()
  const [aside] = (await readdir(dir)).filter((name) => name.endsWith('.damaged'))
  assert.deepEqual(await readFile(join(dir, String(aside))), bytes)
  assert.deepEqual(lines, ['error: the settlement spool was damaged and has been renamed'])
  const third = await open()
  assert.deepEqual(idsOf(third.pending()), ['req_a', 'req_c'])
  await third.close()
})
