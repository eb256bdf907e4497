import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ReadingPace } from '../../src/metering/reading-pace.ts'
import { test } from '../support/suite.ts'

test('the pieces of a key are read one by one, and keys that have read for long pause one after the other', async ({
  mock,
}) => {
  let nowMs = 1_000
  mock.method(performance, 'now', () => nowMs)
  mock.timers.enable({ apis: ['setTimeout'] })
  const pauses = { endMs: 0 }
  const [a, b] = [new ReadingPace(pauses), new ReadingPace(pauses)]
  const read: string[] = []
  const take = (name: string, pace: ReadingPace) => {
    read.push(name)
    pace.read(() => {
      nowMs += 10
    })
  }
  const after = async (ms: number) => {
    nowMs += ms
    mock.timers.tick(ms)
    await nextTurn()
    return read.splice(0)
  }
  take('a1', a)
  for (const name of ['a2', 'a3']) void a.pause()?.then(() => take(name, a))
  assert.equal(b.pause(), null)
  take('b1', b)
  await nextTurn()
  void b.pause()?.then(() => take('b2', b))
  assert.deepEqual(await after(9), ['a1', 'b1'])
  assert.deepEqual(await after(1), ['a2'])
  assert.deepEqual(await after(20), ['b2'])
  assert.deepEqual(await after(10), ['a3'])
  assert.deepEqual([await after(100), a.pause(), b.pause()], [[], null, null])
})
