import assert from 'node:assert/strict'
import { AdmissionQueues, type Blocked, type QueueEntry } from '../../src/calls/admission-queue.ts'
import { limits } from '../../src/kernel/limits.ts'
import { test } from '../support/suite.ts'

/** A timeout that no test reaches by accident. */
const LONG_MS = 600_000

const blockedBy = (by: Blocked['by'], budgetId = 'bud_k'): Blocked => ({
  ...{
    kind: 'blocked',
    by,
    personId: null,
    keyId: 'key_k',
    budgetId,
    accountId: 'default',
    balanceNanos: 0n,
  },
})
const BUDGET: Blocked['by'] = {
  limit: 'budget',
  budget: { scope: 'key', period: 'month', spentNanos: 0n, heldNanos: 1n, capNanos: 1n, resetsAtMs: 0 },
}
const CREDIT = blockedBy({ limit: 'credit' })
const enter = (queues: AdmissionQueues, key: string) => queues.enter(Buffer.from(key))

/** Whether a promise has resolved after all pending work has run. */
async function isKept(promise: Promise<unknown>): Promise<boolean> {
  let kept = false
  promise.then(() => {
    kept = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  return kept
}

const waitForCap = (entry: QueueEntry, budgetId?: string) => entry.wait(blockedBy(BUDGET, budgetId))

/** The wait is wrapped in an object, because `await` would otherwise wait for it. */
async function beginQueue(entry: QueueEntry): Promise<{ readonly turn: Promise<string> }> {
  assert.equal(await waitForCap(entry), 'retry', 'a call that starts a queue tries again at once')
  return { turn: waitForCap(entry) }
}

test('a call waits only behind waiting calls of the same key', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const first = enter(queues, 'k')
  assert.equal(enter(queues, 'k').lastBlocked, null)
  const { turn } = await beginQueue(first)
  assert.deepEqual(enter(queues, 'k').lastBlocked, blockedBy(BUDGET))
  assert.equal(enter(queues, 'l').lastBlocked, null)
  first.end('left')
  await turn
  first.done(false)
  assert.equal(enter(queues, 'k').lastBlocked, null)
})

test('the first call asks when a call of its key settles, and the second when the first has left', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [enter(queues, 'k'), enter(queues, 'k')]
  const { turn: firstWait } = await beginQueue(first)
  const secondWait = waitForCap(second)
  assert.equal(queues.waiting, 2)

  queues.settled('bud_k', 'default')
  assert.equal(await firstWait, 'retry')
  assert.equal(await isKept(secondWait), false)
  first.done(true)
  assert.equal(await secondWait, 'retry')
  second.done(true)
  assert.equal(queues.waiting, 0)
})

test('calls of two keys that share a budget wait in one queue', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [enter(queues, 'old'), enter(queues, 'rotated')]
  const { turn } = await beginQueue(first)
  const secondWait = waitForCap(second)
  queues.settled('bud_k', 'default')
  assert.equal(await turn, 'retry')
  assert.equal(await isKept(secondWait), false)
  first.done(true)
  assert.equal(await secondWait, 'retry')
  second.done(true)
})

test('a settlement during the attempt of the first call is not missed', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entry = enter(queues, 'k')
  await waitForCap(entry)
  queues.settled('bud_k', 'default')
  assert.equal(await waitForCap(entry), 'retry')
  assert.equal(await isKept(waitForCap(entry)), false)
  entry.done(false)
})

test('calls keep their order of arrival, even if an earlier one joins its queue later', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [enter(queues, 'k'), enter(queues, 'k')]
  const { turn: secondWait } = await beginQueue(second)
  const firstWait = waitForCap(first)
  queues.settled('bud_k', 'default')
  assert.equal(await firstWait, 'retry')
  assert.equal(await isKept(secondWait), false)
  first.done(false)
  second.done(false)
})

test("calls of different keys that wait for an account's credit share one queue", async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [enter(queues, 'k'), enter(queues, 'l')]
  assert.equal(await first.wait(CREDIT), 'retry')
  const firstWait = first.wait(CREDIT)
  const secondWait = second.wait(CREDIT)
  queues.settled('bud_z', 'default')
  assert.equal(await firstWait, 'retry')
  first.done(true)
  assert.equal(await secondWait, 'retry')
  second.done(true)
})

test('a call with room under its cap but not in the credit changes queues', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [enter(queues, 'k'), enter(queues, 'k')]
  await waitForCap(first)
  const secondWait = waitForCap(second)
  const moved = first.wait(CREDIT)
  assert.equal(await secondWait, 'retry', 'the next call of the key uses the same entry')
  assert.equal(await moved, 'retry')
  assert.equal(queues.waiting, 2)
  first.done(false)
  second.done(false)
  assert.equal(queues.waiting, 0)
})

test('a wait ends at its timeout, at any position in the queue', async () => {
  const queues = new AdmissionQueues(0)
  const [first, second] = [enter(queues, 'k'), enter(queues, 'k')]
  const { turn: firstWait } = await beginQueue(first)
  const secondWait = waitForCap(second)
  assert.equal(await firstWait, 'timed_out')
  assert.equal(await secondWait, 'timed_out')
  first.done(false)
  second.done(false)
})

function fill(queues: AdmissionQueues, names: string, count: number): QueueEntry[] {
  return Array.from({ length: count }, (_, i) => {
    const name = `${names}${Math.floor(i / limits.callsQueuedPerLimitMax)}`
    const entry = enter(queues, name)
    waitForCap(entry, `bud_${name}`)
    return entry
  })
}

test('a full queue refuses further calls, without affecting other keys', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entries = fill(queues, 'k', limits.callsQueuedPerLimitMax)
  const [same, other] = [enter(queues, 'k0'), enter(queues, 'other')]
  assert.equal(await waitForCap(same, 'bud_k0'), 'full')
  assert.equal(await waitForCap(other, 'bud_other'), 'retry')
  for (const entry of [...entries, same, other]) entry.done(false)
  assert.equal(queues.waiting, 0)
})

test('after a settlement a queue empties in order, in steps that double', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entries = Array.from({ length: 100 }, () => enter(queues, 'k'))
  const asked: number[] = []
  const [first] = entries
  if (first === undefined) throw new Error('there are a hundred')
  const turns = [(await beginQueue(first)).turn, ...entries.slice(1).map((entry) => waitForCap(entry))]
  for (const [i, turn] of turns.entries()) turn.then(() => asked.push(i))

  const rounds: number[] = []
  queues.settled('bud_k', 'default')
  while (asked.length < entries.length) {
    const before = asked.length
    await new Promise((resolve) => setImmediate(resolve))
    const together = asked.slice(before)
    rounds.push(together.length)
    // All calls are admitted together, as by one batch of the store.
    for (const i of together) entries[i]?.done(true)
  }
  assert.deepEqual(
    asked,
    entries.map((_, i) => i),
  )
  assert.ok(rounds.length < 10, `rounds: ${rounds}`)
})

test('when the free part of the cap is used up, the queue retries one call at a time again', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entries = Array.from({ length: 8 }, () => enter(queues, 'k'))
  const [first, second, third, fourth] = entries
  if (first === undefined || second === undefined || third === undefined || fourth === undefined)
    throw new Error('there are eight')
  const { turn } = await beginQueue(first)
  const turns = entries.slice(1).map((entry) => waitForCap(entry))
  queues.settled('bud_k', 'default')
  await turn
  first.done(true)
  await turns[0]
  assert.equal(
    await isKept(turns[1] ?? Promise.resolve()),
    false,
    'one admitted call does not show that the cap has more room',
  )
  second.done(true)
  await Promise.all(turns.slice(1, 3))
  // Both calls have to wait again.
  const again = [waitForCap(third), waitForCap(fourth)]
  assert.equal(
    await again[0],
    'retry',
    'the second was admitted meanwhile, so the first call of the queue tries again',
  )
  assert.equal(await isKept(waitForCap(third)), false)
  assert.equal(await isKept(again[1] ?? Promise.resolve()), false)
  for (const entry of entries.slice(2)) entry.done(false)
  assert.equal(queues.waiting, 0)
})
