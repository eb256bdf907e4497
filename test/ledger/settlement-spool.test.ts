import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, mock, test } from 'node:test'
import fc from 'fast-check'
import { limits } from '../../src/kernel/limits.ts'
import type { CallClosing } from '../../src/ledger/call.ts'
import { readSpool } from '../../src/ledger/read-spool.ts'
import { openSettlementSpool, type SettlementSpool } from '../../src/ledger/settlement-spool.ts'
import { keptLine } from '../../src/ledger/spool-line.ts'
import { createLogLines } from '../support/log-lines.ts'
import { until } from '../support/until.ts'
import { closingOf } from './closings.ts'
import { type DiskWatch, watchDisk } from './faulty-spool-disk.ts'

let parent: string
before(async () => {
  parent = await mkdtemp(join(tmpdir(), 'tollgate-test-spool-'))
})
after(() => rm(parent, { recursive: true }))

const A = closingOf('req_a', { costNanos: 2n ** 63n - 1n })
const B = closingOf('req_b')
const C = closingOf('req_c')
const idsOf = (closings: readonly CallClosing[]) => closings.map(({ requestId }) => requestId)

interface Bench {
  readonly dir: string
  readonly file: string
  readonly lines: string[]
  readonly disk: DiskWatch
  open(): Promise<SettlementSpool>
  /** What another life would find, if this one ended now. */
  onDisk(): Promise<readonly CallClosing[]>
}

/** So large that four records do not fit, and small enough to be written many times over. */
const BYTES_MAX = 40_000
const LARGE = 'x'.repeat(BYTES_MAX / 4)

async function bench(): Promise<Bench> {
  const dir = join(await mkdtemp(join(parent, 'dir-')), 'spool')
  const { log, lines } = createLogLines()
  const disk = watchDisk()
  const file = join(dir, 'settlements.log')
  return {
    ...{ dir, file, lines, disk },
    open: () => openSettlementSpool(dir, log, { openDisk: disk.open, bytesMax: BYTES_MAX }),
    onDisk: async () => readSpool(await readFile(file)).left,
  }
}

test('what was kept is left to the next life, in order and exactly', async () => {
  const { open, onDisk, lines } = await bench()
  const first = await open()
  assert.deepEqual(first.left(), [])
  for (const closing of [A, B, C]) {
    await first.keep(closing)
    assert.deepEqual((await onDisk()).at(-1), closing)
  }
  await first.close()
  const second = await open()
  assert.deepEqual(second.left(), [A, B, C])
  assert.equal(second.waiting, 3)
  await second.close()
  assert.deepEqual(lines, [])
})

test('a settlement is on the disk when it is said to be', async () => {
  const { open, disk } = await bench()
  const spool = await open()
  await spool.keep(A)
  const { promise: gate, resolve: pass } = Promise.withResolvers<void>()
  disk.gate = gate
  let told = false
  const kept = spool.keep(B).then(() => {
    told = true
  })
  await until('it is being synced', async () => disk.done.includes('sync'))
  assert.equal(told, false)
  pass()
  await kept
  await spool.close()
})

test('settlements that come while others are written go together, with one sync', async () => {
  const { open, onDisk, disk } = await bench()
  const spool = await open()
  await spool.keep(A)
  disk.done.length = 0
  const { promise: gate, resolve: pass } = Promise.withResolvers<void>()
  disk.gate = gate
  const many = Array.from({ length: 30 }, (_, i) => closingOf(`req_${i}`))
  const [first, ...others] = many.map((closing) => () => spool.keep(closing))
  const kept = [first?.()]
  await until('the first is being synced', async () => disk.done.includes('sync'))
  for (const keep of others) kept.push(keep())
  pass()
  await Promise.all(kept)
  assert.deepEqual(disk.done, ['append', 'sync', 'append', 'sync'])
  assert.deepEqual(await onDisk(), [A, ...many])
  await spool.close()
})

test('what the store has taken is not left, and the file is emptied when nothing waits', async () => {
  const { open, onDisk, file } = await bench()
  const spool = await open()
  await Promise.all([A, B, C].map((closing) => spool.keep(closing)))
  spool.done('req_b')
  spool.done('never kept')
  await spool.keep(closingOf('req_d'))
  assert.deepEqual(idsOf(await onDisk()), ['req_a', 'req_c', 'req_d'])
  for (const id of ['req_a', 'req_c', 'req_d']) spool.done(id)
  await spool.close()
  assert.equal((await stat(file)).size, 0)
  assert.equal(spool.waiting, 0)
})

test('after it was emptied it is written from its beginning', async () => {
  const { open, file } = await bench()
  const spool = await open()
  await spool.keep(A)
  spool.done('req_a')
  await until('it is empty', async () => (await stat(file)).size === 0)
  await spool.keep(B)
  await spool.close()
  assert.deepEqual(await readFile(file), keptLine(B))
})

test('marks need no sync', async () => {
  const { open, disk, file } = await bench()
  const spool = await open()
  await Promise.all([spool.keep(A), spool.keep(B)])
  disk.done.length = 0
  spool.done('req_a')
  await spool.close()
  assert.deepEqual(disk.done, ['append'])
  assert.match(await readFile(file, 'utf8'), /"done":"req_a"/)
})

test('a settlement that was taken before it was written needs no line', async () => {
  const { open, file } = await bench()
  const spool = await open()
  const kept = [spool.keep(A), spool.keep(B), spool.keep(C)]
  spool.done('req_b')
  await Promise.all(kept)
  await spool.close()
  assert.doesNotMatch(await readFile(file, 'utf8'), /req_b/)
})

test('of settlements of the same call the first is kept', async () => {
  const { open, onDisk } = await bench()
  const spool = await open()
  await Promise.all([spool.keep(A), spool.keep({ ...A, state: 'released', costNanos: 0n })])
  await spool.close()
  assert.deepEqual(await onDisk(), [A])
})

test('directory and files are for their owner alone', async () => {
  const { dir, open } = await bench()
  const spool = await open()
  await Promise.all([spool.keep(A), spool.keep(B)])
  await spool.refuse('req_a', 'there is no such call')
  await spool.close()
  const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)
  assert.equal(await modeOf(dir), '700')
  const names = (await readdir(dir)).sort()
  assert.deepEqual(names, ['refused.jsonl', 'settlements.log'])
  for (const name of names) assert.equal(await modeOf(join(dir, name)), '600')
})

test('a torn end is skipped with a warning and written over', async () => {
  const { open, file, lines } = await bench()
  const first = await open()
  await first.keep(A)
  await first.keep(B)
  await first.close()
  await truncate(file, (await stat(file)).size - 10)
  const second = await open()
  assert.deepEqual(second.left(), [A])
  assert.deepEqual(lines, ['warn: the last line of the settlement spool was cut off while it was written'])
  await second.keep(C)
  await second.close()
  assert.deepEqual(await readFile(file), Buffer.concat([keptLine(A), keptLine(C)]))
})

test('a damaged spool is kept aside as it was, and what is legible in it is left', async () => {
  const { open, dir, file, lines } = await bench()
  await (await open()).close()
  const damaged = Buffer.concat([keptLine(A), Buffer.from('garbage\n'), keptLine(B)])
  for (const name of ['settlements.log.1.damaged', 'settlements.log.2.damaged']) {
    await writeFile(file, damaged)
    const spool = await open()
    assert.deepEqual(spool.left(), [A, B])
    await spool.close()
    assert.deepEqual(await readFile(join(dir, name)), damaged)
    assert.deepEqual(await readFile(file), Buffer.concat([keptLine(A), keptLine(B)]))
  }
  assert.ok(lines.includes('error: the settlement spool is damaged'))
})

test('what the store refuses is put into a file for a person and is not left', async () => {
  const { open, onDisk, dir } = await bench()
  const spool = await open()
  await Promise.all([spool.keep(A), spool.keep(B)])
  await spool.refuse('req_a', 'there is no call req_a')
  await spool.refuse('never kept', 'there is no such call')
  await spool.close()
  assert.deepEqual(await onDisk(), [B])
  const refused = (await readFile(join(dir, 'refused.jsonl'), 'utf8')).trim().split('\n')
  assert.equal(refused.length, 1)
  const { refused: reason, kept } = JSON.parse(refused[0] ?? '')
  assert.equal(reason, 'there is no call req_a')
  assert.deepEqual(kept, { ...A, costNanos: String(A.costNanos), listNanos: String(A.listNanos) })
})

test('a refused settlement that cannot be put aside stays where it is', async () => {
  const { open, onDisk, disk } = await bench()
  const spool = await open()
  await spool.keep(A)
  disk.fault = 'ENOSPC'
  await spool.refuse('req_a', 'there is no such call')
  disk.fault = null
  await spool.close()
  assert.deepEqual(await onDisk(), [A])
})

test('a disk that fails is said to, holds nobody up, and is written again when it can be', async () => {
  const { open, onDisk, disk, lines } = await bench()
  const spool = await open()
  await spool.keep(A)
  disk.fault = 'ENOSPC'
  await spool.keep(B)
  assert.equal(spool.isSound, false)
  await spool.keep(C)
  assert.deepEqual(lines, [
    'error: the settlement spool cannot be written; no new call is admitted while settlements wait',
  ])
  // The one that was there before is not lost with those that could not be written.
  assert.deepEqual(idsOf(await onDisk()), ['req_a'])
  disk.fault = null
  await until('it is written again', async () => spool.isSound)
  assert.equal(lines.at(-1), 'info: the settlement spool works again')
  assert.deepEqual(idsOf(await onDisk()), ['req_a', 'req_b', 'req_c'])
  await spool.close()
})

test('a sync that fails is not tried again on the same file', async () => {
  const { open, onDisk, disk } = await bench()
  const spool = await open()
  await spool.keep(A)
  disk.done.length = 0
  disk.fault = 'EIO on sync'
  await spool.keep(B)
  assert.equal(spool.isSound, false)
  await spool.close()
  assert.deepEqual(disk.done, ['append', 'replace'])
  assert.deepEqual(await onDisk(), [A, B])
})

test('a disk that failed stands in nobody’s way once the store has taken all', async () => {
  const { open, disk } = await bench()
  const spool = await open()
  disk.fault = 'ENOSPC'
  await spool.keep(A)
  assert.equal(spool.isSound, false)
  spool.done('req_a')
  assert.equal(spool.isSound, true)
  await spool.close()
})

test('what a failed write may have left in the file is cleared once the store has taken all', async () => {
  const { open, onDisk, disk } = await bench()
  const spool = await open()
  disk.fault = 'EIO after replace'
  await spool.keep(A)
  assert.deepEqual(await onDisk(), [A])
  spool.done('req_a')
  disk.fault = null
  await spool.close()
  assert.deepEqual(await onDisk(), [])
})

test('a settlement that comes just when another was written is written too', async () => {
  const { open, onDisk } = await bench()
  const spool = await open()
  for (let turns = 0; turns < 20; turns++) {
    await spool.keep(closingOf(`req_${turns}`))
    // The end of a write is some turns of the queue of promises long.
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    await spool.keep(closingOf(`req_${turns}_next`))
  }
  assert.equal((await onDisk()).length, 40)
  await spool.close()
})

test('a disk that does not answer holds nobody up for ever', async () => {
  const { open, onDisk, disk, lines } = await bench()
  const spool = await open()
  const { promise: gate, resolve: pass } = Promise.withResolvers<void>()
  disk.gate = gate
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const kept = spool.keep(A)
    assert.equal(spool.isSound, true)
    mock.timers.tick(limits.spoolWriteMs)
    await kept
    assert.equal(spool.isSound, false)
    await spool.keep(B)
    assert.deepEqual(lines, ['error: the disk of the settlement spool does not answer'])
  } finally {
    mock.timers.reset()
  }
  pass()
  await until('it answers', async () => spool.isSound)
  await spool.close()
  assert.deepEqual(await onDisk(), [A, B])
})

test('beyond its size settlements wait in memory alone until half of it is free', async () => {
  const { open, onDisk, lines } = await bench()
  const spool = await open()
  const large = (id: string) => closingOf(id, { usage: LARGE })
  await Promise.all(['a', 'b', 'c'].map((id) => spool.keep(large(id))))
  assert.equal(spool.isSound, true)
  await spool.keep(large('d'))
  assert.equal(spool.isSound, false)
  assert.deepEqual(lines, ['error: the settlement spool is full'])
  spool.done('a')
  assert.equal(spool.isSound, false)
  spool.done('b')
  assert.equal(spool.isSound, true)
  await spool.close()
  assert.deepEqual(idsOf(await onDisk()), ['c'])
})

test('a spool that never is empty does not grow without end', async () => {
  const { open, onDisk, file } = await bench()
  const spool = await open()
  await spool.keep(A)
  for (let i = 0; i < 40; i++) {
    await spool.keep(closingOf(`req_${i}`, { usage: LARGE }))
    spool.done(`req_${i}`)
  }
  await spool.close()
  assert.ok((await stat(file)).size < 3 * BYTES_MAX)
  assert.deepEqual(await onDisk(), [A])
})

test('what comes after the end is not kept, and the log says so', async () => {
  const { open, lines } = await bench()
  const spool = await open()
  await spool.close()
  await spool.keep(A)
  assert.deepEqual(lines, ['error: a settlement came after the spool was closed'])
})

test('a directory that cannot be made fails the start', async () => {
  const { dir } = await bench()
  await writeFile(dir, '')
  await assert.rejects(openSettlementSpool(dir, createLogLines().log), /EEXIST/)
})

test('whatever was kept and taken, and whenever the disk failed, what waits at the end is on it', async () => {
  const id = fc.integer({ min: 0, max: 5 }).map((n) => `req_${n}`)
  const step = fc.oneof(
    fc.record({ do: fc.constant('keep' as const), id, wait: fc.boolean() }),
    fc.record({ do: fc.constant('done' as const), id }),
    fc.record({
      do: fc.constant('fault' as const),
      is: fc.constantFrom('ENOSPC', 'EIO on sync', 'EIO after replace', null),
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { open, onDisk, disk } = await bench()
      const spool = await open()
      for (const now of steps) {
        if (now.do === 'fault') disk.fault = now.is
        if (now.do === 'done') spool.done(now.id)
        if (now.do !== 'keep') continue
        const kept = spool.keep(closingOf(now.id))
        if (!now.wait) continue
        await kept
        if (spool.isSound) assert.ok(idsOf(await onDisk()).includes(now.id))
      }
      disk.fault = null
      await spool.close()
      const left = spool.left()
      assert.deepEqual(left.length === 0 ? [] : await onDisk(), left)
    }),
    { numRuns: 50 },
  )
})
