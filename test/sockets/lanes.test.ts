import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  type LaneStep,
  Lanes,
  NO_LANE,
  OTHER_EVENT,
  type ServerEvent,
  SILENT_LANE_MS,
  STEER,
} from '../../src/sockets/lanes.ts'
import { test } from '../support/suite.ts'

const event = (kind: ServerEvent['kind'], more: Partial<ServerEvent> = {}): ServerEvent => ({
  ...OTHER_EVENT,
  kind,
  ...more,
})
const began = (responseId: string | null, lane = NO_LANE) => event('began', { responseId, lane })
const ended = (responseId: string | null, lane = NO_LANE) => event('ended', { responseId, lane })
const part = (lane = NO_LANE) => event('part', { lane })
const failed = (lane = NO_LANE, tag: string | null = null) => event('failed', { lane, tag, status: 429 })

/** What became of the turns, in words: `a begin`, `a part`, `a end`, `a reject`, `adopt`. */
const told = (steps: readonly LaneStep<string>[]) =>
  steps.map((step) => (step.kind === 'adopt' ? 'adopt' : `${step.open.turn} ${step.kind}`))

/** Turns that were sent in this order, as `name`, `name@lane` or `name#tag`. */
function lanesOf(...turns: readonly string[]) {
  const lanes = new Lanes<string>()
  for (const each of turns) {
    const [, name = '', lane = NO_LANE, tag = null] = /^(\w+)(?:@(\w+))?(?:#([\w.]+))?$/.exec(each) ?? []
    lanes.add(name, lane, tag, 0)
  }
  return { lanes, hear: (...events: ServerEvent[]) => events.flatMap((each) => told(lanes.hear(each, 1))) }
}

const CASES: Record<string, [sent: string[], heard: ServerEvent[], steps: string[]]> = {
  'responses of a lane belong to its turns in order': [
    ['a', 'b'],
    [began('1'), part(), ended('1'), began('2'), ended('2')],
    ['a begin', 'a part', 'a part', 'a end', 'b begin', 'b part', 'b end'],
  ],
  'lanes are apart': [
    ['a@x', 'b@y'],
    [began('2', 'y'), began('1', 'x'), part('y'), ended('1', 'x')],
    ['b begin', 'b part', 'a begin', 'a part', 'b part', 'a end'],
  ],
  'a response that ends without having begun': [['a'], [ended('1')], ['a begin', 'a end']],
  'a response that ends twice ends one turn': [
    ['a', 'b'],
    [began('1'), ended('1'), ended('1'), began('1')],
    ['a begin', 'a part', 'a end'],
  ],
  'an end without an id belongs to the response that runs': [
    ['a', 'b'],
    [began('1'), ended(null)],
    ['a begin', 'a part', 'a end'],
  ],
  'a part without a lane belongs to the only response': [
    ['a@x'],
    [began('1', 'x'), part()],
    ['a begin', 'a part', 'a part'],
  ],
  'a part before any response belongs to none': [['a'], [part()], []],
  'a response that nobody asked for': [[], [began('1')], ['adopt']],
  'an error that names no turn ends none': [
    ['a', 'b'],
    [failed(), began('1'), failed(), part(), ended('1')],
    ['a begin', 'a part', 'a part', 'a end'],
  ],
  'after an error, a later turn begins first': [
    ['a'],
    [failed(), began('1'), ended('1')],
    ['a begin', 'a part', 'a end'],
  ],
  'an error that names a turn ends it': [['a#x', 'b#y'], [failed(NO_LANE, 'y')], ['b reject']],
  'an error that names no turn of ours ends none': [['a#x'], [failed(NO_LANE, 'z')], []],
  'an error that names a turn that has begun ends none': [
    ['a#x'],
    [began('1'), failed(NO_LANE, 'x')],
    ['a begin', 'a part'],
  ],
  'all waiting steers become one response': [
    ['a', `b#${STEER}`, `c#${STEER}`],
    [began('1'), ended('1'), began('2'), ended('2')],
    ['a begin', 'a part', 'a end', 'c reject', 'b begin', 'b part', 'b end'],
  ],
}

for (const [name, [sent, heard, steps]] of Object.entries(CASES)) {
  test(name, () => assert.deepEqual(lanesOf(...sent).hear(...heard), steps))
}

test('a turn that was sent after an error begins before the one that the error may have ended', () => {
  const { lanes, hear } = lanesOf('a')
  hear(failed())
  lanes.add('b', NO_LANE, null, 1)
  assert.deepEqual(hear(began('1')), ['b begin', 'b part'])
})

test('a turn in doubt ends once its lane was silent for a minute, and others stay', () => {
  const { lanes, hear } = lanesOf('a@x', 'b@y', 'c@z')
  hear(began('1', 'x'), began('2', 'y'), failed('x'), failed('z'))
  assert.deepEqual(told(lanes.endSilent(SILENT_LANE_MS)), [])
  assert.deepEqual(told(lanes.endSilent(SILENT_LANE_MS + 1)), ['a end', 'c reject'])
  assert.deepEqual(told(lanes.endSilent(10 * SILENT_LANE_MS)), [])
})

test('an event of its lane keeps a turn open, and one of its response removes the doubt', () => {
  const { lanes } = lanesOf('a', 'b')
  lanes.hear(began('1'), 1)
  lanes.hear(failed(), 1)
  lanes.hear(event('other'), SILENT_LANE_MS)
  assert.deepEqual(told(lanes.endSilent(2 * SILENT_LANE_MS - 1)), [])
  lanes.resume(2 * SILENT_LANE_MS)
  assert.deepEqual(told(lanes.endSilent(2 * SILENT_LANE_MS + 1)), [])
  lanes.hear(part(), 2 * SILENT_LANE_MS)
  assert.deepEqual(told(lanes.endSilent(9 * SILENT_LANE_MS)), [], 'b waits while a runs')
})

test('when a socket ends, upstream can have worked on one turn of each lane', () => {
  const { lanes, hear } = lanesOf('a@x', 'b@x', 'c@y', 'd@y', 'e@z', 'f@z')
  hear(began('1', 'x'), failed('z'))
  assert.deepEqual(told(lanes.endAll()), ['a end', 'b reject', 'c end', 'd reject', 'e reject', 'f reject'])
})

test('a response that ended without a cost is adopted if upstream ends it after all', () => {
  const { lanes, hear } = lanesOf('a')
  hear(began('1'), failed())
  lanes.endSilent(2 * SILENT_LANE_MS)
  lanes.endedFree('1')
  assert.deepEqual(hear(ended('1')), ['adopt'])
})

const LANE = fc.constantFrom(NO_LANE, 'x', 'y')
const ID = fc.constantFrom(null, '1', '2', '3', '4', '5')
const TAG = fc.constantFrom(null, STEER, 't')

const ACTION = fc.oneof(
  fc.record({ send: fc.record({ lane: LANE, tag: TAG }) }),
  fc.record({
    hear: fc.record({
      kind: fc.constantFrom('began', 'part', 'ended', 'failed', 'other'),
      lane: LANE,
      responseId: ID,
      tag: TAG,
    }),
  }),
  fc.record({ passMs: fc.integer({ min: 1, max: SILENT_LANE_MS }) }),
)

test('whatever is sent and heard, each turn begins at most once and ends once, and each response is one turn’s', () => {
  fc.assert(
    fc.property(fc.array(ACTION, { maxLength: 60 }), (actions) => {
      const lanes = new Lanes<number>()
      const [begun, ended, answered] = [new Set<number>(), new Set<number>(), new Map<string, number>()]
      let [turns, nowMs] = [0, 0]
      const add = (lane: string, tag: string | null) => lanes.add(turns++, lane, tag, nowMs)
      const apply = (steps: readonly LaneStep<number>[], heard?: ServerEvent) => {
        for (const step of steps) {
          if (step.kind === 'adopt') {
            assert.ok(heard !== undefined, 'only an event adopts')
            add(heard.lane, null)
            const again = lanes.hear(heard, nowMs)
            assert.equal(again[0]?.kind, 'begin', 'the adopted turn begins')
            apply(again)
            continue
          }
          const { turn, responseId } = step.open
          assert.ok(!ended.has(turn), 'nothing happens to a turn that has ended')
          if (step.kind === 'begin') {
            assert.ok(!begun.has(turn), 'a turn begins once')
            begun.add(turn)
            if (responseId !== null) {
              assert.ok(!answered.has(responseId), 'a response is one turn’s')
              answered.set(responseId, turn)
            }
          }
          if (step.kind === 'part') assert.ok(begun.has(turn))
          if (step.kind === 'reject') assert.ok(!begun.has(turn), 'a response that began is not rejected')
          if (step.kind === 'end' || step.kind === 'reject') ended.add(turn)
        }
      }
      for (const action of actions) {
        if ('send' in action) add(action.send.lane, action.send.tag)
        else if ('passMs' in action) {
          nowMs += action.passMs
          apply(lanes.endSilent(nowMs))
        } else {
          const heard = event(action.hear.kind, action.hear)
          apply(lanes.hear(heard, nowMs), heard)
          const { responseId, kind } = heard
          if (responseId !== null && (kind === 'began' || kind === 'ended'))
            assert.ok(answered.has(responseId), 'a response that begins or ends has a turn')
        }
        const running = lanes.open.filter(({ hasBegun, doubt }) => hasBegun && doubt === null)
        assert.equal(new Set(running.map(({ lane }) => lane)).size, running.length, 'one runs in a lane')
      }
      apply(lanes.endAll())
      assert.equal(ended.size, turns, 'every turn has ended')
      assert.equal(lanes.open.length, 0)
    }),
    { numRuns: 2_000 },
  )
})
