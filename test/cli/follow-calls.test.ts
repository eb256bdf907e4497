import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CallFollower, type ListCalls } from '../../src/cli/follow-calls.ts'
import type { LoggedCall } from '../../src/cli/logged-call.ts'

/** The life of a call, in milliseconds: when it is admitted, how long until it is in the log, how long it runs. */
interface Fate {
  readonly startMs: number
  readonly loggedAfterMs: number
  readonly runsMs: number
  readonly cost: number
  /** Whether the call is deferred from the middle of its time on. */
  readonly isDeferred?: boolean
}

const MINUTE = 60_000
const EPOCH = Date.parse('2026-11-15T00:00:00Z')

const fate = fc.record({
  startMs: fc.oneof(fc.integer({ min: 0, max: MINUTE }), fc.integer({ min: 0, max: 10 * MINUTE })),
  loggedAfterMs: fc.integer({ min: 0, max: 5_000 }),
  runsMs: fc.oneof(
    fc.integer({ min: 0, max: 3_000 }),
    fc.integer({ min: 0, max: 30_000 }),
    fc.integer({ min: 0, max: 20 * MINUTE }),
  ),
  cost: fc.constantFrom(0, 1),
  isDeferred: fc.boolean(),
})

/** The error of a broken connection. */
class Broken extends Error {}

function broken(error: unknown): readonly LoggedCall[] {
  assert.ok(error instanceof Broken)
  return []
}

/** A log that changes while it is read. */
function createWorld(fates: readonly Fate[], delays: readonly number[], breaks: () => boolean = () => false) {
  const calls = fates.map((each, at) => ({
    ...each,
    id: `req_${String(at).padStart(4, '0')}`,
    loggedMs: each.startMs + each.loggedAfterMs,
    endMs: each.startMs + each.loggedAfterMs + each.runsMs,
  }))
  let nowMs = 0
  const stateOf = ({ loggedMs, endMs, isDeferred }: (typeof calls)[number]) => {
    if (endMs <= nowMs) return 'settled'
    return isDeferred === true && nowMs > (loggedMs + endMs) / 2 ? 'deferred' : 'in_flight'
  }
  let delayed = 0
  let isSound = true
  const goOn = () => {
    if (!isSound && breaks()) throw new Broken()
    nowMs += delays[delayed++ % delays.length] ?? 0
  }

  const list: ListCalls = async function* ({ start, end, status, min_cost_usd, limit }) {
    goOn()
    let left = limit === undefined ? Infinity : Number(limit)
    let after: { readonly startMs: number; readonly id: string } = { startMs: Infinity, id: '' }
    while (left > 0) {
      // A page has one call, from the log as it is by now.
      const [next] = calls
        .filter(({ loggedMs }) => loggedMs <= nowMs)
        .filter(({ startMs }) => start === undefined || EPOCH + startMs >= Date.parse(start))
        .filter(({ startMs }) => end === undefined || EPOCH + startMs < Date.parse(end))
        .filter((call) => status === undefined || status === stateOf(call))
        .filter(
          (call) => min_cost_usd === undefined || (call.endMs <= nowMs && call.cost >= Number(min_cost_usd)),
        )
        .filter(
          (call) => call.startMs < after.startMs || (call.startMs === after.startMs && call.id < after.id),
        )
        .sort((a, b) => b.startMs - a.startMs || (a.id < b.id ? 1 : -1))
      if (next === undefined) return
      after = next
      left -= 1
      const isOpen = next.endMs > nowMs
      yield {
        id: next.id,
        state: stateOf(next),
        started_at: new Date(EPOCH + next.startMs).toISOString(),
        ended_at: isOpen ? null : new Date(EPOCH + next.endMs).toISOString(),
      } as LoggedCall
      goOn()
    }
  }
  return {
    list,
    calls,
    now: () => nowMs,
    breakAtTimes() {
      isSound = false
    },
    mend() {
      isSound = true
    },
    wait(ms: number) {
      nowMs += ms
    },
  }
}

test('each call that ends is found once and in its final state, in whatever order calls end', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fate, { minLength: 10, maxLength: 40, size: 'max' }),
      fc.array(fc.constantFrom(0, 10, 200, 1_500), { minLength: 1, maxLength: 20 }),
      fc.array(fc.constantFrom(0, 1_000, 1_000, 1_000, 20_000, 5 * MINUTE), { maxLength: 40, size: 'max' }),
      fc.integer({ min: 0, max: MINUTE }),
      fc.boolean(),
      fc.infiniteStream(fc.nat(30)),
      async (fates, delays, pauses, beginMs, onlyDear, chances) => {
        const world = createWorld(fates, delays, () => chances.next().value === 0)
        world.wait(beginMs)
        let openKnownMs: number | null = null
        const list: ListCalls = async function* (query) {
          yield* world.list(query)
          if (query['status'] === 'deferred') openKnownMs ??= world.now()
        }
        const follower = new CallFollower(list, onlyDear ? { min_cost_usd: '1' } : {})
        const beganMs = world.now()
        const printed: LoggedCall[] = [...(await follower.begin(3))]
        const doneMs = world.now()
        world.breakAtTimes()
        for (const ms of pauses) {
          world.wait(ms)
          printed.push(...(await follower.look().catch(broken)))
        }
        world.mend()
        world.wait(60 * MINUTE)
        for (let again = 0; again < 3; again++) printed.push(...(await follower.look()))

        const ids = printed.map(({ id }) => id)
        assert.equal(new Set(ids).size, ids.length, 'a call was shown twice')
        assert.ok(printed.every(({ state, ended_at }) => state === 'settled' && ended_at !== null))
        for (const call of world.calls) {
          const matches = !onlyDear || call.cost === 1
          if (!matches) assert.ok(!ids.includes(call.id), `${call.id} does not match`)
          // A call that was logged while the follower began may count as an earlier call, and so may a call that ended
          // before the follower knew that it was in flight.
          else if (call.loggedMs <= beganMs ? call.endMs > (openKnownMs ?? 0) : call.loggedMs > doneMs)
            assert.ok(ids.includes(call.id), `${call.id} was lost`)
        }
      },
    ),
    { numRuns: 200 },
  )
})

test('what is there already is shown up to the limit, oldest first, and is not shown again', async () => {
  const fates = [1, 2, 3, 4].map((at) => ({ startMs: at * 1_000, loggedAfterMs: 0, runsMs: 10, cost: 1 }))
  const world = createWorld(fates, [0])
  world.wait(MINUTE)
  const follower = new CallFollower(world.list, {})
  const shown = await follower.begin(2)
  assert.deepEqual(
    shown.map(({ id }) => id),
    ['req_0002', 'req_0003'],
  )
  assert.deepEqual(await follower.look(), [])
})

test('calls in flight do not take the places of the earlier calls that are shown', async () => {
  const fates = [1, 2, 3, 4].map((at) => ({
    ...{ startMs: at * 1_000, loggedAfterMs: 0, cost: 1 },
    runsMs: at < 3 ? 10 : 60 * MINUTE,
  }))
  const world = createWorld(fates, [0])
  world.wait(MINUTE)
  const shown = await new CallFollower(world.list, {}).begin(2)
  assert.deepEqual(
    shown.map(({ id }) => id),
    ['req_0000', 'req_0001'],
  )
})

test('calls are shown in the order in which they end', async () => {
  const world = createWorld(
    [
      { startMs: 1_000, loggedAfterMs: 0, runsMs: 9_000, cost: 1 },
      { startMs: 2_000, loggedAfterMs: 0, runsMs: 5_000, cost: 1 },
      { startMs: 3_000, loggedAfterMs: 0, runsMs: 1_000, cost: 1 },
    ],
    [0],
  )
  const follower = new CallFollower(world.list, {})
  assert.deepEqual(await follower.begin(10), [])
  world.wait(20_000)
  assert.deepEqual(
    (await follower.look()).map(({ id }) => id),
    ['req_0002', 'req_0001', 'req_0000'],
  )
})
