import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLines, type Place } from '../../src/gateway/lines.ts'
import { limits } from '../../src/kernel/limits.ts'
import { NOBODY_AHEAD } from '../../src/ledger/call.ts'

/** Long enough for no test to reach it by accident. */
const LONG_MS = 600_000

/** Whether a promise has been kept, once everything that is due has run. */
async function isKept(promise: Promise<unknown>): Promise<boolean> {
  let kept = false
  promise.then(() => {
    kept = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  return kept
}

/** Joins the line of the key as somebody who was just told that the cap is held. */
async function waitFirst(place: Place): Promise<Promise<string>> {
  assert.equal(await place.turn('budget', ''), 'ask', 'whoever joins first asks once more')
  return place.turn('budget', '')
}

test('nobody is ahead of a call while nobody waits', () => {
  const place = createLines(LONG_MS).enter('k')
  assert.equal(place.isBehind, false)
  assert.equal(place.ahead(), NOBODY_AHEAD)
})

test('the first in line asks when a call of its key was settled, the second when the first is gone', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  const firstTurn = waitFirst(first)
  await isKept(firstTurn)
  assert.equal(second.isBehind, true)
  const secondTurn = second.turn('budget', '')
  assert.equal(lines.waiting, 2)

  lines.settled('k', 'default')
  assert.equal(await firstTurn, 'ask')
  assert.equal(await isKept(secondTurn), false)
  first.done()
  assert.equal(await secondTurn, 'ask')
  second.done()
  assert.equal(lines.waiting, 0)
})

test('a settlement of another key wakes nobody', async () => {
  const lines = createLines(LONG_MS)
  const place = lines.enter('k')
  const turn = waitFirst(place)
  lines.settled('other', 'default')
  assert.equal(await isKept(turn), false)
  lines.stirAll()
  assert.equal(await turn, 'ask')
  place.done()
})

test('what happens while the first asks is not missed', async () => {
  const lines = createLines(LONG_MS)
  const place = lines.enter('k')
  await place.turn('budget', '')
  // It is asking the store now.
  lines.settled('k', 'default')
  assert.equal(await place.turn('budget', ''), 'ask')
  assert.equal(await isKept(place.turn('budget', '')), false)
  place.done()
})

test('who came first is first, even if it joins its line last', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  const secondTurn = waitFirst(second)
  assert.equal(first.isBehind, false)
  assert.deepEqual(first.ahead(), { key: false, accounts: [] })
  const firstTurn = waitFirst(first)
  await isKept(secondTurn)
  lines.settled('k', 'default')
  assert.equal(await firstTurn, 'ask')
  assert.equal(await isKept(secondTurn), false)
  first.done()
  second.done()
})

test('calls of different keys that wait for the credit of one account stand in one line', async () => {
  const lines = createLines(LONG_MS)
  const [first, second, third] = [lines.enter('k'), lines.enter('l'), lines.enter('m')]
  assert.equal(await first.turn('credit', 'default'), 'ask')
  const firstTurn = first.turn('credit', 'default')
  assert.deepEqual(second.ahead(), { key: false, accounts: ['default'] })
  const secondTurn = second.turn('credit', 'default')
  assert.deepEqual(first.ahead().accounts, [])
  assert.equal(third.isBehind, false)
  lines.settled('z', 'default')
  assert.equal(await firstTurn, 'ask')
  first.done()
  assert.equal(await secondTurn, 'ask')
  second.done()
  third.done()
})

test('a call that has room under its cap and none in the credit changes lines', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  await first.turn('budget', '')
  const secondTurn = second.turn('budget', '')
  const moved = first.turn('credit', 'default')
  assert.equal(await secondTurn, 'ask', 'the next of the key takes its place')
  assert.equal(await moved, 'ask')
  assert.equal(lines.waiting, 2)
  first.done()
  second.done()
  assert.equal(lines.waiting, 0)
})

test('a client that leaves ends its wait and makes way', async () => {
  const lines = createLines(LONG_MS)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  const firstTurn = waitFirst(first)
  await isKept(firstTurn)
  const secondTurn = second.turn('budget', '')
  first.leave()
  assert.equal(await firstTurn, 'left')
  first.done()
  assert.equal(await secondTurn, 'ask')
  second.leave()
  assert.equal(await second.turn('budget', ''), 'left')
  second.done()
})

test('a wait ends when its time is over, wherever in line', async () => {
  const lines = createLines(0)
  const [first, second] = [lines.enter('k'), lines.enter('k')]
  const firstTurn = waitFirst(first)
  await isKept(firstTurn)
  const secondTurn = second.turn('budget', '')
  assert.equal(await firstTurn, 'late')
  assert.equal(await secondTurn, 'late')
  assert.deepEqual(second.ahead(), { key: true, accounts: [] })
  first.done()
  second.done()
})

test('when too many wait, the next is told so at once', async () => {
  const lines = createLines(LONG_MS)
  const places = Array.from({ length: limits.callsWaitingMax }, () => lines.enter('k'))
  for (const place of places) place.turn('budget', '')
  const next = lines.enter('other')
  assert.equal(await next.turn('budget', ''), 'crowded')
  for (const place of places) place.done()
  next.done()
  assert.equal(lines.waiting, 0)
})
