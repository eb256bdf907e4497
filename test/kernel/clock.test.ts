import assert from 'node:assert/strict'
import { atMostEvery } from '../../src/kernel/clock.ts'
import { loadLater } from '../../src/kernel/shared-work.ts'
import { createWorkLoop } from '../../src/kernel/work-loop.ts'
import { withDeadline } from '../support/deadline.ts'
import { test } from '../support/suite.ts'

/** A loop whose rounds the test ends, each with the following pause. */
function loopOfLooks() {
  const stopping = new AbortController()
  const begun: PromiseWithResolvers<number>[] = []
  const failed: unknown[] = []
  let onPoll = () => {}
  const loop = createWorkLoop({
    poll() {
      const polled = Promise.withResolvers<number>()
      begun.push(polled)
      onPoll()
      return polled.promise
    },
    onFailure(error) {
      failed.push(error)
      return 60_000
    },
    stopping: stopping.signal,
  })
  const untilPolls = (count: number) =>
    withDeadline(
      (async () => {
        while (begun.length < count) await new Promise<void>((resolve) => (onPoll = resolve))
        return begun[count - 1] as PromiseWithResolvers<number>
      })(),
      () => `${count} looks were to begin, and ${begun.length} did`,
    )
  return { loop, stopping, failed, begun, untilPolls }
}

test('a round without a pause is followed at once, and waking ends a pause', async () => {
  const { loop, stopping, untilPolls, begun } = loopOfLooks()
  loop.start()
  ;(await untilPolls(1)).resolve(0)
  ;(await untilPolls(2)).resolve(60_000)
  await new Promise((resolve) => setImmediate(resolve))
  loop.wake()
  ;(await untilPolls(3)).resolve(60_000)
  stopping.abort()
  await loop.ended()
  assert.equal(begun.length, 3)
})

test('a failed round is reported and does not end the loop', async () => {
  const { loop, stopping, failed, untilPolls } = loopOfLooks()
  loop.start()
  const first = await untilPolls(1)
  first.reject(new Error('away'))
  await first.promise.catch(() => {})
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(failed.map(String), ['Error: away'])
  loop.wake()
  ;(await untilPolls(2)).resolve(0)
  stopping.abort()
  await loop.ended()
})

test('the same trouble is reported at most once per interval', () => {
  let nowMs = 0
  const reports: string[] = []
  const report = atMostEvery(60_000, { nowMs: () => 0, monotonicMs: () => nowMs }, (what: string) =>
    reports.push(what),
  )
  report('a')
  nowMs = 59_999
  report('b')
  nowMs = 60_000
  report('c')
  assert.deepEqual(reports, ['a', 'c'])
})

test('a lazy part is loaded once, at its first use', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const load = t.mock.fn(async () => 'part')
  const later = loadLater(load, 1_000)
  assert.equal(load.mock.callCount(), 0)
  assert.deepEqual(await Promise.all([later.get(), later.get()]), ['part', 'part'])
  t.mock.timers.tick(1_000)
  assert.equal(await later.get(), 'part')
  assert.equal(load.mock.callCount(), 1)
})
