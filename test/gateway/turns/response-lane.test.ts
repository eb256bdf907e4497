import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ResponseLane, type Sent } from '../../../src/gateway/turns/response-lane.ts'

/** A turn with the members that a lane looks at. */
function turn(
  name: string,
  lengthBytes: number,
  isSteer = false,
  context = false,
): Sent & { readonly name: string } {
  const plan = { bill: { unseen: () => ({ context, tools: false, media: false }) } }
  const planned = { request: { lengthBytes }, plan }
  const sent = { name, lane: '', isSteer, turn: { responseId: null }, planned }
  return sent as unknown as Sent & { readonly name: string }
}

function laneOf(...turns: Sent[]): ResponseLane {
  const lane = new ResponseLane()
  lane.waiting.push(...turns)
  return lane
}

test('responses begin in the order of their messages', () => {
  const [first, second] = [turn('first', 10), turn('second', 20)]
  const lane = laneOf(first, second)
  assert.equal(lane.begin('resp_1'), first)
  assert.equal(lane.find('resp_1'), first)
  assert.equal(lane.begin('resp_2'), second)
  assert.equal(lane.begin('resp_3'), null)
})

test('an error frees no turn while it is in doubt which one it answers', () => {
  const [large, decoy] = [turn('large', 400_000), turn('decoy', 100)]
  const lane = laneOf(large, decoy)
  assert.deepEqual(lane.fail(), [])
  assert.equal(lane.waiting.length, 2)
  assert.equal(lane.begin('resp_1'), large)
  assert.deepEqual(lane.rejected(), [decoy])
  assert.equal(lane.waiting.length, 0)
})

test('the largest request is the one that runs, in whatever order they were sent', () => {
  const [decoy, large] = [turn('decoy', 100), turn('large', 400_000)]
  const lane = laneOf(decoy, large)
  lane.fail()
  assert.equal(lane.begin('resp_1'), large)
})

test('what a request refers to counts for more than its length', () => {
  const [decoy, refers] = [turn('decoy', 1_000), turn('refers', 500, false, true)]
  const lane = laneOf(decoy, refers)
  lane.fail()
  assert.equal(lane.begin('resp_1'), refers)
})

test('as many errors as turns that wait are the end of all of them', () => {
  const turns = [turn('one', 1), turn('two', 2)]
  const lane = laneOf(...turns)
  assert.deepEqual(lane.fail(), [])
  assert.deepEqual(lane.fail(), turns)
  assert.ok(lane.isEmpty)
  // An error of these turns does not count for later ones.
  const later = turn('later', 1)
  lane.waiting.push(later, turn('last', 5))
  assert.equal(lane.begin('resp_1'), later)
})

test('the successor of a steered response takes the turn of the steer, and the queued request keeps its own', () => {
  const [queued, steer] = [turn('queued', 400_000), turn('steer', 100, true)]
  const lane = laneOf(queued, steer)
  lane.steerAccepted()
  assert.equal(lane.begin('resp_2'), steer)
  assert.equal(lane.begin('resp_3'), queued)
})

test('a steer that upstream has not taken does not take the turn of a request', () => {
  const [steer, queued] = [turn('steer', 100, true), turn('queued', 10)]
  const lane = laneOf(steer, queued)
  assert.equal(lane.begin('resp_2'), queued)
  assert.equal(lane.steerFailed(), steer)
  assert.equal(lane.steerFailed(), null)
  assert.equal(lane.begin('resp_3'), null)
})
