import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreRefused, StoreUnavailable } from '../../src/kernel/errors.ts'
import type { CallClosing, CallOpening, Settled } from '../../src/ledger/call.ts'
import { CLOSINGS_SENT_AT_ONCE, Outbox, SETTLE_WAIT_MS } from '../../src/ledger/outbox.ts'
import type { SettlementSpool } from '../../src/ledger/settlement-spool.ts'
import { createLogLines } from '../support/log-lines.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { closingOf } from './closings.ts'

const SETTLED: Settled = { balanceNanos: 5n, applied: true }
const away = () => new StoreUnavailable('the database is away')

interface Bench {
  readonly outbox: Outbox
  readonly story: string[]
  readonly lines: string[]
  readonly spool: { isDurable: boolean }
}

function bench(
  answer: (closing: CallClosing) => Error | null,
  { withSpool = true, waitMs = SETTLE_WAIT_MS }: { withSpool?: boolean; waitMs?: number } = {},
): Bench {
  const story: string[] = []
  const { log, lines } = createLogLines()
  const store = {
    async settle(closing: CallClosing): Promise<Settled> {
      const error = answer(closing)
      story.push(`${closing.requestId} ${error?.name ?? closing.state}`)
      if (error !== null) throw error
      return SETTLED
    },
  }
  const kept = new Set<string>()
  const spool = {
    isDurable: true,
    async append({ requestId }: CallClosing) {
      // The write takes longer than the shortest wait for an answer.
      await sleep(5)
      kept.add(requestId)
      story.push(`${requestId} spooled`)
    },
    remove(requestId: string) {
      if (kept.delete(requestId)) story.push(`${requestId} removed`)
    },
    async refuse({ requestId }: CallClosing, reason: string) {
      story.push(`${requestId} put aside: ${reason}`)
    },
  }
  const outbox = new Outbox({
    store,
    spool: withSpool ? (spool as unknown as SettlementSpool) : null,
    log,
    waitMs,
  })
  return { outbox, story, lines, spool }
}

function failing(times: number, error: () => Error = away): () => Error | null {
  let left = times
  return () => (left-- > 0 ? error() : null)
}

test('a settlement that the database accepts never uses the spool', async () => {
  const { outbox, story } = bench(failing(0))
  assert.deepEqual(await outbox.settle(closingOf('a'), () => {}), SETTLED)
  assert.deepEqual(story, ['a settled'])
  assert.equal(outbox.waiting, 0)
})

test('a settlement that the store could not take is spooled before its retry, and marked once taken', async () => {
  const { outbox, story } = bench(failing(2))
  let reports = 0
  const settled = await outbox.settle(closingOf('a'), () => {
    reports += 1
  })
  assert.deepEqual(settled, SETTLED)
  assert.equal(reports, 1)
  assert.deepEqual(story, ['a StoreUnavailable', 'a spooled', 'a StoreUnavailable', 'a settled', 'a removed'])
})

test('a process that found nothing to replay sends later settlements again', async () => {
  const { outbox, story } = bench(failing(1), { withSpool: false })
  await outbox.replay([], () => {})
  assert.deepEqual(await outbox.settle(closingOf('a')), SETTLED)
  assert.deepEqual(story, ['a StoreUnavailable', 'a settled'])
})

test('after its wait a reply leaves without figures, but not before its settlement is spooled', async () => {
  let error: Error | null = away()
  const { outbox, story } = bench(() => error, { waitMs: 0 })
  assert.equal(await outbox.settle(closingOf('a'), () => {}), null)
  assert.deepEqual(story, ['a StoreUnavailable', 'a spooled'])
  assert.equal(outbox.waiting, 1)
  error = null
  await until('the store has the settlement', async () => outbox.waiting === 0)
  assert.deepEqual(story.slice(-2), ['a settled', 'a removed'])
})

test('a settlement that the database refuses is set aside and logged, and the caller is notified', async () => {
  const { outbox, story, lines } = bench(() => new StoreRefused('there is no call'))
  await assert.rejects(
    outbox.settle(closingOf('a'), () => {}),
    StoreRefused,
  )
  assert.deepEqual(story, ['a StoreRefused', 'a put aside: there is no call', 'a StoreRefused'])
  assert.deepEqual(lines, ['error: the database refused a settlement'])
  assert.equal(outbox.waiting, 0)
})

test("a refused settlement does not leave its call's hold open", async () => {
  for (const before of [[], [away()]]) {
    const { outbox, story } = bench(({ state }) =>
      state === 'settled' ? (before.shift() ?? new StoreRefused('no such model')) : null,
    )
    await assert.rejects(
      outbox.settle(closingOf('a'), () => {}),
      StoreRefused,
    )
    assert.deepEqual(story.slice(-2), ['a put aside: no such model', 'a interrupted'])
  }
})

test('a release does not overtake a pending settlement of the same call', async () => {
  const { outbox, story } = bench(failing(1))
  const bill = outbox.settle(closingOf('a'), () => {})
  const release = outbox.settle(closingOf('a', { state: 'released' }), () => {})
  assert.deepEqual(await Promise.all([bill, release]), [SETTLED, SETTLED])
  assert.deepEqual(story, ['a StoreUnavailable', 'a spooled', 'a settled', 'a removed'])
})

test('settlements of an earlier process are sent once each, a few at a time, and count as pending', async () => {
  let sent = 0
  let most = 0
  const asked = new Map<string, number>()
  const open = Promise.withResolvers<void>()
  const outbox = new Outbox({
    store: {
      async settle({ requestId }) {
        asked.set(requestId, (asked.get(requestId) ?? 0) + 1)
        sent += 1
        most = Math.max(most, sent)
        await open.promise
        sent -= 1
        return { ...SETTLED, applied: false }
      },
    },
    spool: null,
    log: createLogLines().log,
  })
  const closings = Array.from({ length: 1_000 }, (_, i) => closingOf(`req_${i}`))
  const applied: CallClosing[] = []
  const replayed = outbox.replay(closings, (closing) => applied.push(closing))
  assert.equal(outbox.waiting, 1_000)
  open.resolve()
  await replayed
  assert.equal(outbox.waiting, 0)
  assert.equal(most, CLOSINGS_SENT_AT_ONCE)
  assert.equal(asked.size, 1_000)
  assert.equal(applied.length, 0, 'they were in the ledger before')
  assert.deepEqual([...new Set(asked.values())], [1])
})

test('a replayed settlement whose first answer was lost is counted, because that attempt may have applied it', async () => {
  let attempts = 0
  const outbox = new Outbox({
    store: {
      async settle() {
        attempts += 1
        if (attempts === 1) throw new StoreUnavailable('the answer was lost')
        return { ...SETTLED, applied: false }
      },
    },
    spool: null,
    log: createLogLines().log,
  })
  const applied: CallClosing[] = []
  await outbox.replay([closingOf('req_1')], (closing) => applied.push(closing))
  assert.equal(attempts, 2)
  assert.equal(applied.length, 1)
})

test('an admission whose answer was lost is released after the epoch was raised, and an outage is logged once', async () => {
  const story: string[] = []
  const { log, lines } = createLogLines()
  const left = [away(), away()]
  const outbox = new Outbox({
    store: {
      async settle({ requestId, state }) {
        story.push(`${requestId} ${state}`)
        if (requestId === 'never') throw new StoreRefused('there is no such call')
        return SETTLED
      },
    },
    async raiseEpoch() {
      const error = left.pop()
      story.push(error === undefined ? 'raised' : 'not raised')
      if (error !== undefined) throw error
    },
    log,
  })
  outbox.release(['a', 'never'].map((requestId) => ({ requestId, atMs: 0 }) as CallOpening))
  outbox.release([{ requestId: 'a', atMs: 0 } as CallOpening])
  await until('they are released', async () => outbox.waiting === 0)
  assert.deepEqual(story, ['not raised', 'not raised', 'raised', 'a released', 'never released'])
  assert.deepEqual(lines, ['warn: admissions whose outcome is unknown wait for the database'])
})

test('a closing outbox tries once more, so that no hold remains', async () => {
  const { story, outbox } = bench(failing(1), { withSpool: false, waitMs: 0 })
  assert.equal(await outbox.settle(closingOf('a')), null)
  await outbox.close()
  assert.deepEqual(story, ['a StoreUnavailable', 'a settled'])
})
