import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AdmissionQueues, type QueueEntry } from '../../src/gateway/admission-queue.ts'
import { limits } from '../../src/kernel/limits.ts'
import { type HeldBy, NOBODY_AHEAD } from '../../src/ledger/call.ts'

/** A timeout that no test reaches by accident. */
const LONG_MS = 600_000

const BUDGET: HeldBy = {
  limit: 'budget',
  budget: { spentNanos: 0n, heldNanos: 1n, capNanos: 1n, resetsAtMs: 0 },
}
const CREDIT: HeldBy = { limit: 'credit' }

/** Whether a promise is resolved, once all due work has run. */
async function isKept(promise: Promise<unknown>): Promise<boolean> {
  let kept = false
  promise.then(() => {
    kept = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  return kept
}

const waitForCap = (entry: QueueEntry) => entry.turn(BUDGET, 'default')

/** Begins a queue like a call that was just told that the cap is held. The wait is in an object, or it would be awaited. */
async function beginQueue(entry: QueueEntry): Promise<{ readonly turn: Promise<string> }> {
  assert.equal(await waitForCap(entry), 'ask', 'whoever begins a line asks once more')
  return { turn: waitForCap(entry) }
}

test('nobody is ahead of a call while nobody waits', () => {
  assert.equal(new AdmissionQueues(LONG_MS).enter('k').ahead(), NOBODY_AHEAD)
})

test('the first in line asks when a call of its key was settled, the second when the first is gone', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [queues.enter('k'), queues.enter('k')]
  const { turn: firstTurn } = await beginQueue(first)
  assert.deepEqual(second.ahead(), { key: true, accounts: [] })
  const secondTurn = waitForCap(second)
  assert.equal(queues.waiting, 2)

  queues.settled('k', 'default')
  assert.equal(await firstTurn, 'ask')
  assert.equal(await isKept(secondTurn), false)
  first.done(true)
  assert.equal(await secondTurn, 'ask')
  second.done(true)
  assert.equal(queues.waiting, 0)
})

test('calls with the same digest of a key stand in one line', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const digest = () => Buffer.from([0, 255, 128])
  const [first, second] = [queues.enter(digest()), queues.enter(digest())]
  const { turn } = await beginQueue(first)
  assert.deepEqual(second.ahead(), { key: true, accounts: [] })
  assert.deepEqual(queues.enter(Buffer.from([0, 255, 129])).ahead(), { key: false, accounts: [] })
  queues.settled(digest(), 'default')
  assert.equal(await turn, 'ask')
  first.done(true)
})

test('a settlement of another key wakes nobody', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entry = queues.enter('k')
  const { turn } = await beginQueue(entry)
  queues.settled('other', 'default')
  assert.equal(await isKept(turn), false)
  queues.signalAll()
  assert.equal(await turn, 'ask')
  entry.done(true)
})

test('what happens while the first asks is not missed', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entry = queues.enter('k')
  await waitForCap(entry)
  // The call is asking the store now.
  queues.settled('k', 'default')
  assert.equal(await waitForCap(entry), 'ask')
  assert.equal(await isKept(waitForCap(entry)), false)
  entry.done(false)
})

test('whoever joins a line does not make the others ask', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [queues.enter('k'), queues.enter('k')]
  const { turn } = await beginQueue(first)
  const secondTurn = waitForCap(second)
  assert.equal(await isKept(turn), false)
  assert.equal(await isKept(secondTurn), false)
  first.done(false)
  second.done(false)
})

test('who came first is first, even if it joins its line last', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [queues.enter('k'), queues.enter('k')]
  const { turn: secondTurn } = await beginQueue(second)
  assert.deepEqual(first.ahead(), { key: false, accounts: [] })
  const firstTurn = waitForCap(first)
  queues.settled('k', 'default')
  assert.equal(await firstTurn, 'ask')
  assert.equal(await isKept(secondTurn), false)
  first.done(false)
  second.done(false)
})

test('calls of different keys that wait for the credit of one account stand in one line', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second, third] = [queues.enter('k'), queues.enter('l'), queues.enter('m')]
  assert.equal(await first.turn(CREDIT, 'default'), 'ask')
  const firstTurn = first.turn(CREDIT, 'default')
  assert.deepEqual(second.ahead(), { key: false, accounts: ['default'] })
  const secondTurn = second.turn(CREDIT, 'default')
  assert.deepEqual(first.ahead().accounts, [])
  assert.deepEqual(third.ahead(), { key: false, accounts: ['default'] })
  queues.settled('z', 'default')
  assert.equal(await firstTurn, 'ask')
  first.done(true)
  assert.equal(await secondTurn, 'ask')
  second.done(true)
  third.done(true)
})

test('a call that has room under its cap and none in the credit changes queues', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [queues.enter('k'), queues.enter('k')]
  await waitForCap(first)
  const secondTurn = waitForCap(second)
  const moved = first.turn(CREDIT, 'default')
  assert.equal(await secondTurn, 'ask', 'the next of the key takes its entry')
  assert.equal(await moved, 'ask')
  assert.equal(queues.waiting, 2)
  first.done(false)
  second.done(false)
  assert.equal(queues.waiting, 0)
})

test('a client that leaves ends its wait and makes way', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [queues.enter('k'), queues.enter('k')]
  const { turn: firstTurn } = await beginQueue(first)
  const secondTurn = waitForCap(second)
  first.leave()
  assert.equal(await firstTurn, 'left')
  first.done(false)
  assert.equal(await secondTurn, 'ask')
  second.leave()
  assert.equal(await waitForCap(second), 'left')
  second.done(false)
})

test('a wait ends when its time is over, wherever in line', async () => {
  const queues = new AdmissionQueues(0)
  const [first, second] = [queues.enter('k'), queues.enter('k')]
  const { turn: firstTurn } = await beginQueue(first)
  const secondTurn = waitForCap(second)
  assert.equal(await firstTurn, 'timed_out')
  assert.equal(await secondTurn, 'timed_out')
  first.done(false)
  second.done(false)
})

test('when the service stops, every wait is over, and none begins', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const [first, second] = [queues.enter('k'), queues.enter('l')]
  const { turn } = await beginQueue(first)
  queues.close()
  assert.equal(await turn, 'timed_out')
  assert.equal(await waitForCap(second), 'timed_out')
  first.done(false)
  second.done(false)
})

/** Fills queues, each up to its limit, until so many calls wait. */
function fill(queues: AdmissionQueues, names: string, count: number): QueueEntry[] {
  return Array.from({ length: count }, (_, i) => {
    const entry = queues.enter(`${names}${Math.floor(i / limits.callsQueuedPerLimitMax)}`)
    waitForCap(entry)
    return entry
  })
}

test('when too many wait for one cap, the next has no entry, and other keys have', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entries = fill(queues, 'k', limits.callsQueuedPerLimitMax)
  const [same, other] = [queues.enter('k0'), queues.enter('other')]
  assert.equal(await waitForCap(same), 'full')
  assert.equal(await waitForCap(other), 'ask')
  for (const entry of [...entries, same, other]) entry.done(false)
  assert.equal(queues.waiting, 0)
})

test('when too many wait in all, nobody has a entry', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entries = fill(queues, 'k', limits.callsWaitingMax)
  const next = queues.enter('other')
  assert.equal(await waitForCap(next), 'full')
  for (const entry of [...entries, next]) entry.done(false)
  assert.equal(queues.waiting, 0)
})

test('a line whose cause is gone dissolves in steps that double, in order', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entries = Array.from({ length: 100 }, () => queues.enter('k'))
  const asked: number[] = []
  const [first] = entries
  if (first === undefined) throw new Error('there are a hundred')
  const turns = [(await beginQueue(first)).turn, ...entries.slice(1).map(waitForCap)]
  for (const [i, turn] of turns.entries()) turn.then(() => asked.push(i))

  const rounds: number[] = []
  queues.settled('k', 'default')
  while (asked.length < entries.length) {
    const before = asked.length
    await new Promise((resolve) => setImmediate(resolve))
    const together = asked.slice(before)
    rounds.push(together.length)
    for (const i of together) assert.deepEqual(entries[i]?.ahead(), { key: false, accounts: [] })
    // All calls are admitted together, as by a batch of the store.
    for (const i of together) entries[i]?.done(true)
  }
  assert.deepEqual(
    asked,
    entries.map((_, i) => i),
  )
  assert.ok(rounds.length < 10, `it took the rounds ${rounds}`)
})

test('when there is no more room, the line goes back to asking one by one', async () => {
  const queues = new AdmissionQueues(LONG_MS)
  const entries = Array.from({ length: 8 }, () => queues.enter('k'))
  const [first, second, third] = entries
  if (first === undefined || second === undefined || third === undefined) throw new Error('there are eight')
  const { turn } = await beginQueue(first)
  const turns = entries.slice(1).map(waitForCap)
  queues.settled('k', 'default')
  await turn
  first.done(true)
  await Promise.all(turns.slice(0, 2))
  // Both calls are held back again.
  const again = [waitForCap(second), waitForCap(third)]
  assert.equal(await again[0], 'ask', 'the first was admitted meanwhile: one look more')
  assert.equal(await isKept(waitForCap(second)), false)
  assert.equal(await isKept(again[1] ?? Promise.resolve()), false)
  for (const entry of entries.slice(1)) entry.done(false)
  assert.equal(queues.waiting, 0)
})
