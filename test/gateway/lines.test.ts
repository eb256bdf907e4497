import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLines, type Lines, type Place } from '../../src/gateway/lines.ts'
import { limits } from '../../src/kernel/limits.ts'
import { type HeldBy, NOBODY_AHEAD } from '../../src/ledger/call.ts'

/** Long enough for no test to reach it by accident. */
const LONG_MS = 600_000

const BUDGET: HeldBy = {
  limit: 'budget',
  budget: { spentNanos: 0n, heldNanos: 1n, capNanos: 1n, resetsAtMs: 0 },
}
const CREDIT: HeldBy = { limit: 'credit' }

/** Whether a promise has been kept, once everything that is due has run. */
async function isKept(promise: Promise<unknown>): Promise<boolean> {
  let kept = false
  promise.then(() => {
    kept = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  return kept
}

const waitForCap = (place: Place) => place.turn(BUDGET, 'default')

/** Begins a line as somebody who was just told that the cap is held. Its wait is kept in an object, or it would be awaited. */
async function beginLine(place: Place): Promise<{ readonly turn: Promise<string> }> {
  assert.equal(await waitForCap(place), 'ask', 'whoever begins a line asks once more')
  return { turn: waitForCap(place) }
}

test('nobody is ahead of a call while nobody waits', () => {
  assert.equal(createLines(LONG_MS).enter('k').ahead(), NOBODY_AHEAD)
})

test('the first in line asks when a call of its key was settled, the second when the first is gone', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  const { turn: firstTurn } = await beginLine(first)
  assert.deepEqual(second.ahead(), { key: true, accounts: [] })
  const secondTurn = waitForCap(second)
  assert.equal(lines.waiting, 2)

  lines.settled('k', 'default')
  assert.equal(await firstTurn, 'ask')
  assert.equal(await isKept(secondTurn), false)
  first.done(true)
  assert.equal(await secondTurn, 'ask')
  second.done(true)
  assert.equal(lines.waiting, 0)
})

test('calls with the same digest of a key stand in one line', async () => {
  const lines = createLines(LONG_MS)
  const digest = () => Buffer.from([0, 255, 128])
  const [first, second] = [lines.enter(digest()), lines.enter(digest())]
  const { turn } = await beginLine(first)
  assert.deepEqual(second.ahead(), { key: true, accounts: [] })
  assert.deepEqual(lines.enter(Buffer.from([0, 255, 129])).ahead(), { key: false, accounts: [] })
  lines.settled(digest(), 'default')
  assert.equal(await turn, 'ask')
  first.done(true)
})

test('a settlement of another key wakes nobody', async () => {
  const lines = createLines(LONG_MS)
  const place = lines.enter('k')
  const { turn } = await beginLine(place)
  lines.settled('other', 'default')
  assert.equal(await isKept(turn), false)
  lines.stirAll()
  assert.equal(await turn, 'ask')
  place.done(true)
})

test('what happens while the first asks is not missed', async () => {
  const lines = createLines(LONG_MS)
  const place = lines.enter('k')
  await waitForCap(place)
  // It is asking the store now.
  lines.settled('k', 'default')
  assert.equal(await waitForCap(place), 'ask')
  assert.equal(await isKept(waitForCap(place)), false)
  place.done(false)
})

test('whoever joins a line does not make the others ask', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  const { turn } = await beginLine(first)
  const secondTurn = waitForCap(second)
  assert.equal(await isKept(turn), false)
  assert.equal(await isKept(secondTurn), false)
  first.done(false)
  second.done(false)
})

test('who came first is first, even if it joins its line last', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  const { turn: secondTurn } = await beginLine(second)
  assert.deepEqual(first.ahead(), { key: false, accounts: [] })
  const firstTurn = waitForCap(first)
  lines.settled('k', 'default')
  assert.equal(await firstTurn, 'ask')
  assert.equal(await isKept(secondTurn), false)
  first.done(false)
  second.done(false)
})

test('calls of different keys that wait for the credit of one account stand in one line', async () => {
  const lines = createLines(LONG_MS)
  const [first, second, third] = [lines.enter('k'), lines.enter('l'), lines.enter('m')]
  assert.equal(await first.turn(CREDIT, 'default'), 'ask')
  const firstTurn = first.turn(CREDIT, 'default')
  assert.deepEqual(second.ahead(), { key: false, accounts: ['default'] })
  const secondTurn = second.turn(CREDIT, 'default')
  assert.deepEqual(first.ahead().accounts, [])
  assert.deepEqual(third.ahead(), { key: false, accounts: ['default'] })
  lines.settled('z', 'default')
  assert.equal(await firstTurn, 'ask')
  first.done(true)
  assert.equal(await secondTurn, 'ask')
  second.done(true)
  third.done(true)
})

test('a call that has room under its cap and none in the credit changes lines', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  await waitForCap(first)
  const secondTurn = waitForCap(second)
  const moved = first.turn(CREDIT, 'default')
  assert.equal(await secondTurn, 'ask', 'the next of the key takes its place')
  assert.equal(await moved, 'ask')
  assert.equal(lines.waiting, 2)
  first.done(false)
  second.done(false)
  assert.equal(lines.waiting, 0)
})

test('a client that leaves ends its wait and makes way', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  const { turn: firstTurn } = await beginLine(first)
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
  const lines = createLines(0)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  const { turn: firstTurn } = await beginLine(first)
  const secondTurn = waitForCap(second)
  assert.equal(await firstTurn, 'late')
  assert.equal(await secondTurn, 'late')
  first.done(false)
  second.done(false)
})

test('when the service stops, every wait is over, and none begins', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('l')]
  const { turn } = await beginLine(first)
  lines.close()
  assert.equal(await turn, 'late')
  assert.equal(await waitForCap(second), 'late')
  first.done(false)
  second.done(false)
})

/** Fills lines, each with as many as may stand in it, until so many wait. */
function fill(lines: Lines, names: string, count: number): Place[] {
  return Array.from({ length: count }, (_, i) => {
    const place = lines.enter(`${names}${Math.floor(i / limits.callsWaitingInLineMax)}`)
    waitForCap(place)
    return place
  })
}

test('when too many wait for one cap, the next has no place, and other keys have', async () => {
  const lines = createLines(LONG_MS)
  const places = fill(lines, 'k', limits.callsWaitingInLineMax)
  const [same, other] = [lines.enter('k0'), lines.enter('other')]
  assert.equal(await waitForCap(same), 'late')
  assert.equal(await waitForCap(other), 'ask')
  for (const place of [...places, same, other]) place.done(false)
  assert.equal(lines.waiting, 0)
})

test('when too many wait in all, nobody has a place', async () => {
  const lines = createLines(LONG_MS)
  const places = fill(lines, 'k', limits.callsWaitingMax)
  const next = lines.enter('other')
  assert.equal(await waitForCap(next), 'late')
  for (const place of [...places, next]) place.done(false)
  assert.equal(lines.waiting, 0)
})

test('a line whose cause is gone dissolves in steps that double, in order', async () => {
  const lines = createLines(LONG_MS)
  const places = Array.from({ length: 100 }, () => lines.enter('k'))
  const asked: number[] = []
  const [first] = places
  if (first === undefined) throw new Error('there are a hundred')
  const turns = [(await beginLine(first)).turn, ...places.slice(1).map(waitForCap)]
  for (const [i, turn] of turns.entries()) turn.then(() => asked.push(i))

  const rounds: number[] = []
  lines.settled('k', 'default')
  while (asked.length < places.length) {
    const before = asked.length
    await new Promise((resolve) => setImmediate(resolve))
    const together = asked.slice(before)
    rounds.push(together.length)
    for (const i of together) assert.deepEqual(places[i]?.ahead(), { key: false, accounts: [] })
    // All of them are admitted, as the store's batch does it.
    for (const i of together) places[i]?.done(true)
  }
  assert.deepEqual(
    asked,
    places.map((_, i) => i),
  )
  assert.ok(rounds.length < 10, `it took the rounds ${rounds}`)
})

test('when there is no more room, the line goes back to asking one by one', async () => {
  const lines = createLines(LONG_MS)
  const places = Array.from({ length: 8 }, () => lines.enter('k'))
  const [first, second, third] = places
  if (first === undefined || second === undefined || third === undefined) throw new Error('there are eight')
  const { turn } = await beginLine(first)
  const turns = places.slice(1).map(waitForCap)
  lines.settled('k', 'default')
  await turn
  first.done(true)
  await Promise.all(turns.slice(0, 2))
  // Both are held back again.
  const again = [waitForCap(second), waitForCap(third)]
  assert.equal(await again[0], 'ask', 'the first was admitted meanwhile: one look more')
  assert.equal(await isKept(waitForCap(second)), false)
  assert.equal(await isKept(again[1] ?? Promise.resolve()), false)
  for (const place of places.slice(1)) place.done(false)
  assert.equal(lines.waiting, 0)
})
