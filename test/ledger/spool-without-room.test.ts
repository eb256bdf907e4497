import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSettlementSpool } from '../../src/ledger/settlement-spool.ts'
import { createLogLines } from '../support/log-lines.ts'
import { until } from '../support/until.ts'
import { closingOf } from './closings.ts'
import { watchWriter } from './spool-bench.ts'

test('a spool without room tells whoever can make some, and no other fault of the disk is taken for that', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'tollgate-spool-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const disk = watchWriter()
  let timesFull = 0
  const onFull = () => {
    timesFull += 1
    // From here on there is room.
    disk.fault = null
  }
  const spool = await openSettlementSpool(dir, createLogLines().log, { openWriter: disk.open, onFull })
  await spool.keep(closingOf('req_0'))
  disk.fault = 'failed fsync'
  await spool.keep(closingOf('req_a'))
  assert.equal(spool.isSound, false)
  disk.fault = null
  await until('it is written again', async () => spool.isSound)
  assert.equal(timesFull, 0)

  disk.fault = 'no room'
  await spool.keep(closingOf('req_b'))
  assert.equal(timesFull, 1)
  await until('it is written in the room that was made', async () => spool.isSound)
  await spool.close()
})
