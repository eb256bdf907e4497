import assert from 'node:assert/strict'
import { mkdtempSync, promises, readFileSync, rmSync, statSync, truncateSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { Ballast } from '../../src/store/ballast.ts'
import { createLogLines } from '../support/log-lines.ts'

const BYTES = 3_000_000

/** A folder whose ballast is made when the test lets time pass. */
function openBallast(t: TestContext, bytes = BYTES) {
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-ballast-'))
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { log, lines } = createLogLines()
  const file = join(dir, 'ballast')
  const sizeOf = () => statSync(file, { throwIfNoEntry: false })?.size ?? null
  const open = () => new Ballast(dir, log, bytes)
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return {
    ...{ file, sizeOf, lines, open },
    pass: (ms: number) => t.mock.timers.tick(ms),
    /** Polls by the real clock: the mocked timers do not move the writing of files. */
    async becomes(what: string, isSo: () => boolean) {
      const deadline = performance.now() + 20_000
      while (!isSo()) {
        assert.ok(performance.now() < deadline, `still not so: ${what}`)
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  }
}

test('the ballast is written after the start, private, and of bytes that no file system keeps in less room', async (t) => {
  const { file, sizeOf, lines, open, pass, becomes } = openBallast(t)
  const ballast = open()
  ballast.start()
  pass(limits.ballastFirstMs - 1)
  assert.equal(sizeOf(), null)
  pass(1)
  await becomes('it is there', () => sizeOf() === BYTES)
  await ballast.close()
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.ok(new Set(readFileSync(file).subarray(0, 4_096)).size > 200)
  assert.ok(statSync(file).blocks * 512 >= BYTES)
  assert.deepEqual(lines, [])
})

test('when the disk is full the ballast goes, and nothing may begin before it is there again', async (t) => {
  const { sizeOf, lines, open, pass, becomes } = openBallast(t)
  const ballast = open()
  ballast.start()
  pass(limits.ballastFirstMs)
  await becomes('it is there', () => sizeOf() === BYTES)
  // Warnings are left out: a ballast that is given back while it is being written is logged, too.
  const said = () => lines.filter((line) => !line.startsWith('warn'))
  for (let round = 1; round <= 2; round++) {
    assert.equal(ballast.isFull, false)
    for (let told = 0; told < 5; told++) ballast.wasFull()
    assert.equal(ballast.isFull, true)
    await becomes('it is gone', () => sizeOf() === null)
    assert.equal(said().length, 2 * round - 1, 'it is told once')
    await becomes('there is room', () => {
      pass(limits.ballastEveryMs)
      return !ballast.isFull
    })
    assert.equal(sizeOf(), BYTES)
  }
  await ballast.close()
  assert.deepEqual(said().slice(0, 2), [
    'error: the disk is full: nothing is admitted until there is room again',
    'info: there is room on the disk again',
  ])
})

test('a ballast for which there is no room is tried again, told once, and nobody is refused for it', async (t) => {
  const { sizeOf, lines, open, pass, becomes } = openBallast(t, 2 ** 52)
  const ballast = open()
  ballast.start()
  pass(limits.ballastFirstMs)
  await becomes('it is told', () => lines.length === 1)
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setImmediate(resolve))
    pass(limits.ballastEveryMs)
  }
  assert.deepEqual(lines, ['warn: the ballast cannot be written yet'])
  assert.equal(sizeOf(), null)
  assert.equal(ballast.isFull, false)
  ballast.wasFull()
  assert.equal(ballast.isFull, true, 'but where a write failed, everybody is')
  await ballast.close()
})

test('a ballast that cannot be deleted is no room: it is tried again, and nothing begins before there is some', async (t) => {
  const { sizeOf, open, pass, becomes } = openBallast(t)
  const ballast = open()
  ballast.start()
  pass(limits.ballastFirstMs)
  await becomes('it is there', () => sizeOf() === BYTES)
  const noRoom = t.mock.method(promises, 'statfs', async () => ({ bavail: 0, bsize: 4_096 }))
  const undeletable = t.mock.method(promises, 'rm', () => Promise.reject(new Error('not permitted')))
  syncBuiltinESMExports()
  try {
    ballast.wasFull()
    await becomes('its room is looked at', () => {
      assert.equal(ballast.isFull, true)
      pass(limits.ballastEveryMs)
      return noRoom.mock.callCount() > 0
    })
    assert.equal(sizeOf(), BYTES)
    undeletable.mock.restore()
    syncBuiltinESMExports()
    await becomes('it is gone', () => {
      pass(limits.ballastEveryMs)
      return sizeOf() === null
    })
    assert.equal(ballast.isFull, true)
  } finally {
    undeletable.mock.restore()
    noRoom.mock.restore()
    syncBuiltinESMExports()
  }
  await becomes('there is room', () => {
    pass(limits.ballastEveryMs)
    return !ballast.isFull
  })
  assert.equal(sizeOf(), BYTES)
  await ballast.close()
})

test('a ballast of an earlier life is kept, and one that a crash left half written is written anew', async (t) => {
  const { file, sizeOf, open, pass, becomes } = openBallast(t)
  const first = open()
  first.start()
  pass(limits.ballastFirstMs)
  await becomes('it is there', () => sizeOf() === BYTES)
  await first.close()
  const before = readFileSync(file)
  for (const [left, isSame] of [
    [BYTES, true],
    [BYTES / 2, false],
  ] as const) {
    truncateSync(file, left)
    const again = open()
    again.start()
    pass(limits.ballastFirstMs)
    await becomes('it is whole', () => sizeOf() === BYTES)
    await again.close()
    assert.equal(readFileSync(file).equals(before), isSame)
  }
})
