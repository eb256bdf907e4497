import assert from 'node:assert/strict'
import type { Log } from '../../src/kernel/log.ts'
import type { RefusedCall } from '../../src/ledger/request-log.ts'
import {
  createRefusedCalls,
  REFUSED_CALLS_AT_ONCE,
  REFUSED_CALLS_WAITING_MAX,
  type RefusedCalls,
} from '../../src/ledger/unsent-calls.ts'
import { test } from '../support/suite.ts'

const call = (n: number): RefusedCall => ({ requestId: `req_${n}` }) as RefusedCall
const add = (calls: RefusedCalls, count: number) => {
  for (let n = 0; n < count; n += 1) calls.add(call(n))
}

/** A store that takes a batch when the test says so. */
function heldStore() {
  const batches: (readonly RefusedCall[])[] = []
  const trims: (readonly number[])[] = []
  let open = Promise.withResolvers<void>()
  return {
    batches,
    trims,
    storeRefused(batch: readonly RefusedCall[]) {
      batches.push(batch)
      return open.promise
    },
    async deleteRefused(...asked: number[]) {
      trims.push(asked)
      return 0
    },
    take() {
      open.resolve()
    },
    fail(message: string) {
      open.reject(new Error(message))
      open = Promise.withResolvers()
      open.resolve()
    },
  }
}

function fakeLog() {
  const lines: [Record<string, unknown>, string][] = []
  return { lines, warn: (about: Record<string, unknown>, text: string) => void lines.push([about, text]) }
}

const create = (store: ReturnType<typeof heldStore>, log = fakeLog(), callsMax?: number) =>
  createRefusedCalls(store, log as unknown as Log, callsMax)

test('refused calls are stored in order in bounded batches, one at a time', async () => {
  const store = heldStore()
  const calls = create(store, fakeLog(), 7)
  add(calls, REFUSED_CALLS_AT_ONCE)
  await Promise.resolve()
  assert.equal(store.batches.length, 1, 'a full batch does not wait for the timer')
  add(calls, REFUSED_CALLS_AT_ONCE + 5)
  assert.equal(store.batches.length, 1)
  store.take()
  await calls.written()
  assert.deepEqual(
    store.batches.map((batch) => batch.length),
    [200, 200, 5],
  )
  assert.deepEqual(store.trims, [
    [0, 7, 400],
    [0, 7, 400],
    [0, 7, 10],
  ])
  await calls.written()
  assert.equal(store.batches.length, 3)
})

test('when the queue is full, refused calls are dropped, and the log counts them', async () => {
  const store = heldStore()
  const log = fakeLog()
  const calls = create(store, log)
  // One batch is being written and no longer queued.
  add(calls, REFUSED_CALLS_AT_ONCE)
  await Promise.resolve()
  add(calls, REFUSED_CALLS_WAITING_MAX + 3)
  store.take()
  await calls.written()
  assert.equal(store.batches.flat().length, REFUSED_CALLS_AT_ONCE + REFUSED_CALLS_WAITING_MAX)
  assert.deepEqual(log.lines, [[{ calls: 3 }, 'too many calls were refused at once to record all of them']])
})

test('a batch that the store rejects is lost and logged, and the next one is sent', async () => {
  const store = heldStore()
  const log = fakeLog()
  const calls = create(store, log)
  add(calls, 2)
  const first = calls.written()
  await Promise.resolve()
  store.fail('no disk')
  await first
  assert.deepEqual(log.lines, [[{ calls: 2, cause: 'no disk' }, 'refused calls could not be recorded']])
  add(calls, 1)
  await calls.written()
  assert.equal(store.batches.at(-1)?.length, 1)
  assert.equal(log.lines.length, 1)
})
