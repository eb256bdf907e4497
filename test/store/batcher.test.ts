import assert from 'node:assert/strict'
import { StoreGone, StoreRefused, StoreUnavailable } from '../../src/kernel/errors.ts'
import { type BatcherParts, createBatcher, type Outcome } from '../../src/store/batcher.ts'
import { test } from '../support/suite.ts'

/** A batcher that answers its batches when the test says so. */
function laneUnderTest(more: Partial<BatcherParts<string, string>> = {}) {
  const sent: { readonly batch: readonly string[]; answer(): void; fail(error: Error): void }[] = []
  const arrivals: (() => void)[] = []
  const lane = createBatcher<string, string>({
    send: (batch) =>
      new Promise((resolve, reject) => {
        const outcomes: Outcome<string>[] = batch.map((word) => ({ ok: true, value: word.toUpperCase() }))
        sent.push({ batch, answer: () => resolve(outcomes), fail: reject })
        for (const arrived of arrivals.splice(0)) arrived()
      }),
    batchMax: 3,
    answerMs: 20_000,
    ...more,
  })
  async function batch(n: number) {
    while (sent.length <= n) await new Promise<void>((resolve) => arrivals.push(resolve))
    const found = sent[n]
    assert.ok(found !== undefined)
    return found
  }
  return { lane, sent, batch }
}

test('commands of one turn, or that arrive during a batch, share a batch up to its maximum size', async () => {
  const { lane, batch } = laneUnderTest()
  const first = [lane.ask('a'), lane.ask('b')]
  const one = await batch(0)
  assert.deepEqual(one.batch, ['a', 'b'])
  const later = ['c', 'd', 'e', 'f'].map((word) => lane.ask(word))
  one.answer()
  assert.deepEqual(await Promise.all(first), ['A', 'B'])
  const two = await batch(1)
  assert.deepEqual(two.batch, ['c', 'd', 'e'])
  two.answer()
  const three = await batch(2)
  assert.deepEqual(three.batch, ['f'])
  three.answer()
  assert.deepEqual(await Promise.all(later), ['C', 'D', 'E', 'F'])
  await lane.close()
})

test('a batch waits for four turns of the event loop at most, and only while each adds a command', async () => {
  const { lane, batch } = laneUnderTest({ batchMax: 10 })
  const words = ['b', 'c', 'd', 'e', 'f']
  const asked: Promise<string>[] = []
  setImmediate(function askNext() {
    const word = words.shift()
    if (word === undefined) return
    asked.push(lane.ask(word))
    setImmediate(askNext)
  })
  asked.push(lane.ask('a'))
  const one = await batch(0)
  assert.deepEqual(one.batch, ['a', 'b', 'c', 'd', 'e'])
  const late = lane.ask('g')
  one.answer()
  const two = await batch(1)
  assert.deepEqual(two.batch, ['g', 'f'])
  two.answer()
  assert.deepEqual(await Promise.all([...asked, late]), ['A', 'B', 'C', 'D', 'E', 'F', 'G'])
  await lane.close()
})

test('an invalid command fails alone', async () => {
  const lane = createBatcher<string, string>({
    async send(batch) {
      if (batch.includes('bad')) throw new StoreRefused(`${batch.length} at once`)
      return batch.map((word) => ({ ok: true, value: word }))
    },
    batchMax: 10,
    answerMs: 20_000,
  })
  const outcomes = await Promise.allSettled(['a', 'b', 'bad', 'c', 'd'].map((word) => lane.ask(word)))
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message)),
    ['a', 'b', '1 at once', 'c', 'd'],
  )
})

test('a command is not retried while the database is unavailable', async () => {
  const { lane, sent, batch } = laneUnderTest()
  const asked = Promise.allSettled([lane.ask('a'), lane.ask('b')])
  const failure = new StoreUnavailable('away')
  ;(await batch(0)).fail(failure)
  assert.deepEqual(await asked, [
    { status: 'rejected', reason: failure },
    { status: 'rejected', reason: failure },
  ])
  assert.equal(sent.length, 1)
})

test('a failed batch names its commands', async () => {
  const failed: string[] = []
  const { lane, batch } = laneUnderTest({ onFailure: (commands) => failed.push(...commands) })
  const asked = Promise.allSettled([lane.ask('a'), lane.ask('b')])
  ;(await batch(0)).fail(new StoreUnavailable('cut off'))
  await asked
  assert.deepEqual(failed, ['a', 'b'])
})

const SOON_MS = 200

test('an answer after the deadline is discarded and reported to onLate', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const late: string[] = []
  const { lane, batch } = laneUnderTest({
    answerMs: SOON_MS,
    onLate: (command, answer) => late.push(`${command} ${answer}`),
  })
  const refused = assert.rejects(lane.ask('a'), StoreUnavailable)
  const one = await batch(0)
  t.mock.timers.tick(SOON_MS)
  await refused
  one.answer()
  await lane.close()
  assert.deepEqual(late, ['a A'])
})

test('a command is not sent after its caller has given up', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { lane, sent, batch } = laneUnderTest({ answerMs: SOON_MS })
  const first = assert.rejects(lane.ask('a'), StoreUnavailable)
  const one = await batch(0)
  const second = assert.rejects(lane.ask('b'), StoreUnavailable)
  t.mock.timers.tick(SOON_MS)
  await Promise.all([first, second])
  one.answer()
  await lane.close()
  assert.equal(sent.length, 1)
})

test('a closing lane answers pending commands and refuses new ones', async () => {
  const { lane, batch } = laneUnderTest()
  const asked = lane.ask('a')
  const closed = lane.close()
  await assert.rejects(lane.ask('b'), StoreGone)
  ;(await batch(0)).answer()
  assert.equal(await asked, 'A')
  await closed
})
