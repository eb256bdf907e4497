import assert from 'node:assert/strict'
import { StoreGone, StoreRefused, StoreUnavailable } from '../../src/kernel/errors.ts'
import { Batcher, type BatcherOptions, type Outcome } from '../../src/store/batcher.ts'
import { test } from '../support/suite.ts'

/** A batcher that answers its batches when the test says so. */
function batcherUnderTest(more: Partial<BatcherOptions<string, string>> = {}) {
  const sent: { readonly batch: readonly string[]; answer(): void; fail(error: Error): void }[] = []
  const arrivals: (() => void)[] = []
  const batcher = new Batcher<string, string>({
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
  return { batcher, sent, batch }
}

test('commands of one turn, or that arrive during a batch, share a batch up to its maximum size', async () => {
  const { batcher, batch } = batcherUnderTest()
  const first = [batcher.submit('a'), batcher.submit('b')]
  const one = await batch(0)
  assert.deepEqual(one.batch, ['a', 'b'])
  const later = ['c', 'd', 'e', 'f'].map((word) => batcher.submit(word))
  one.answer()
  assert.deepEqual(await Promise.all(first), ['A', 'B'])
  const two = await batch(1)
  assert.deepEqual(two.batch, ['c', 'd', 'e'])
  two.answer()
  const three = await batch(2)
  assert.deepEqual(three.batch, ['f'])
  three.answer()
  assert.deepEqual(await Promise.all(later), ['C', 'D', 'E', 'F'])
  await batcher.close()
})

test('a batch waits for four iterations of the event loop at most, and only while each adds a command', async () => {
  const { batcher, batch } = batcherUnderTest({ batchMax: 10 })
  const words = ['b', 'c', 'd', 'e', 'f']
  const submitted: Promise<string>[] = []
  setImmediate(function submitNext() {
    const word = words.shift()
    if (word === undefined) return
    submitted.push(batcher.submit(word))
    setImmediate(submitNext)
  })
  submitted.push(batcher.submit('a'))
  const one = await batch(0)
  assert.deepEqual(one.batch, ['a', 'b', 'c', 'd', 'e'])
  const late = batcher.submit('g')
  one.answer()
  const two = await batch(1)
  assert.deepEqual(two.batch, ['g', 'f'])
  two.answer()
  assert.deepEqual(await Promise.all([...submitted, late]), ['A', 'B', 'C', 'D', 'E', 'F', 'G'])
  await batcher.close()
})

test('an invalid command fails alone', async () => {
  const batcher = new Batcher<string, string>({
    async send(batch) {
      if (batch.includes('bad')) throw new StoreRefused(`${batch.length} at once`)
      return batch.map((word) => ({ ok: true, value: word }))
    },
    batchMax: 10,
    answerMs: 20_000,
  })
  const outcomes = await Promise.allSettled(['a', 'b', 'bad', 'c', 'd'].map((word) => batcher.submit(word)))
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message)),
    ['a', 'b', '1 at once', 'c', 'd'],
  )
})

test('a command is not retried while the database is unavailable', async () => {
  const { batcher, sent, batch } = batcherUnderTest()
  const submitted = Promise.allSettled([batcher.submit('a'), batcher.submit('b')])
  const failure = new StoreUnavailable('away')
  ;(await batch(0)).fail(failure)
  assert.deepEqual(await submitted, [
    { status: 'rejected', reason: failure },
    { status: 'rejected', reason: failure },
  ])
  assert.equal(sent.length, 1)
})

test('a failed batch names its commands', async () => {
  const failed: string[] = []
  const { batcher, batch } = batcherUnderTest({ onFailure: (commands) => failed.push(...commands) })
  const submitted = Promise.allSettled([batcher.submit('a'), batcher.submit('b')])
  ;(await batch(0)).fail(new StoreUnavailable('cut off'))
  await submitted
  assert.deepEqual(failed, ['a', 'b'])
})

const SOON_MS = 200

test('an answer after the deadline is discarded and reported to onLate', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const late: string[] = []
  const { batcher, batch } = batcherUnderTest({
    answerMs: SOON_MS,
    onLate: (command, answer) => late.push(`${command} ${answer}`),
  })
  const refused = assert.rejects(batcher.submit('a'), StoreUnavailable)
  const one = await batch(0)
  t.mock.timers.tick(SOON_MS)
  await refused
  one.answer()
  await batcher.close()
  assert.deepEqual(late, ['a A'])
})

test('a command is not sent after its caller has given up', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { batcher, sent, batch } = batcherUnderTest({ answerMs: SOON_MS })
  const first = assert.rejects(batcher.submit('a'), StoreUnavailable)
  const one = await batch(0)
  const second = assert.rejects(batcher.submit('b'), StoreUnavailable)
  t.mock.timers.tick(SOON_MS)
  await Promise.all([first, second])
  one.answer()
  await batcher.close()
  assert.equal(sent.length, 1)
})

test('a closing batcher answers pending commands and refuses new ones', async () => {
  const { batcher, batch } = batcherUnderTest()
  const submitted = batcher.submit('a')
  const closed = batcher.close()
  await assert.rejects(batcher.submit('b'), StoreGone)
  ;(await batch(0)).answer()
  assert.equal(await submitted, 'A')
  await closed
})
