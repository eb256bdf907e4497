import assert from 'node:assert/strict'
import type { Ask } from '../../src/calls/ask.ts'
import { NOTHING_BILLED } from '../../src/calls/bill.ts'
import { planRequest } from '../../src/calls/call-plan.ts'
import type { Core } from '../../src/calls/core.ts'
import { type Evidence, NOTHING_TRANSFERRED } from '../../src/calls/evidence.ts'
import { Hold } from '../../src/calls/hold.ts'
import { StoreRefused } from '../../src/kernel/errors.ts'
import type { Admission, CallClosing } from '../../src/ledger/call.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { prices } from '../pricing/worked-example.ts'
import { factsOf } from '../providers/request-facts-of.ts'
import { createLogLines } from '../support/log-lines.ts'
import { test } from '../support/suite.ts'

const ADMITTED: Extract<Admission, { kind: 'admitted' }> = {
  ...{ kind: 'admitted', keyId: 'key_1', budgetId: 'bud_1', accountId: 'default', logRequests: false },
  ...{ balanceNanos: 0n, hasOthers: false, terms: null },
}
const TIMES = { silentMs: 0, generatedMs: null, stalledMs: 0, elapsedMs: 0 }
const EVIDENCE: Evidence = {
  ...{ end: 'broken', metered: null, delivered: 0, times: TIMES },
  answer: { status: 500, contentType: '', upstreamRequestId: 'up_1' },
}

const endpoint = findEndpoint('chat', 'POST', '/v1/chat/completions')
const PLAN = planRequest(
  {
    ...{ surface: 'chat', method: 'POST', path: '/v1/chat/completions', endpoint, bodyBytes: 400, atMs: 0 },
    facts: await factsOf(endpoint, { model: 'gpt-5', max_completion_tokens: 7 }),
  },
  prices(),
)
/** 7 output tokens at $10 per million. */
const OUTPUT_NANOS = 70_000n

/** A hold, and the closings that reach the database. */
function bench(settle: () => Promise<{ balanceNanos: bigint; applied: boolean }> = async () => SETTLED) {
  const closed: CallClosing[] = []
  const caller = { redact: (text: string) => text }
  const ask = { requestId: 'req_1', socketId: null, surface: 'chat', caller, profile: PLAN } as unknown as Ask
  const { log, lines } = createLogLines()
  const core = {
    clock: { nowMs: () => 0 },
    log,
    queues: { settled() {} },
    counts: { countSettlement() {} },
    store: { deferCall: async () => 'deferred' },
    outbox: {
      settle(closing: CallClosing) {
        closed.push(closing)
        return settle()
      },
    },
  } as unknown as Core
  return { hold: new Hold(ask, ADMITTED, core), closed, lines }
}

const SETTLED = { balanceNanos: 0n, applied: true }
const soFar = () => ({ evidence: EVIDENCE, transfer: { ...NOTHING_TRANSFERRED, bytesIn: 3 } })
const figuresOf = ({ state, costNanos, estimated, bytesIn }: CallClosing) => ({
  ...{ state, costNanos, estimated, bytesIn },
})

/** A fault while the call is at this point. */
async function failAt(hold: Hold, reach: (hold: Hold) => unknown): Promise<void> {
  await assert.rejects(async () => {
    await using held = hold
    await reach(held)
    throw new Error('a defect')
  }, /a defect/)
}

test('a fault before anything was sent releases the hold', async () => {
  const { hold, closed } = bench()
  await failAt(hold, () => {})
  assert.deepEqual(closed.map(figuresOf), [
    { state: 'released', costNanos: 0n, estimated: false, bytesIn: 0 },
  ])
})

test('a fault after the send bills what was seen', async () => {
  const { hold, closed } = bench()
  await failAt(hold, (held) => held.sending(soFar))
  assert.deepEqual(closed.map(figuresOf), [{ state: 'settled', costNanos: 0n, estimated: false, bytesIn: 3 }])
  assert.equal(closed[0]?.status, 500)
})

test('if that cannot be read either, the output side of the hold is billed as an estimate', async () => {
  const { hold, closed } = bench()
  await failAt(hold, (held) =>
    held.sending(() => {
      throw new Error('another defect')
    }),
  )
  assert.deepEqual(closed.map(figuresOf), [
    { state: 'settled', costNanos: OUTPUT_NANOS, estimated: true, bytesIn: 0 },
  ])
})

test('a hold that is settled, or belongs to an object, is not closed again', async () => {
  for (const end of [
    (hold: Hold) => hold.settle(NOTHING_BILLED, NOTHING_TRANSFERRED),
    (hold: Hold) => hold.release(),
    (hold: Hold) => hold.defer(),
    (hold: Hold) =>
      hold.record(
        { kind: 'response', objectId: 'resp_1', status: 200, upstreamRequestId: null },
        NOTHING_TRANSFERRED,
        0,
      ),
  ]) {
    const { hold, closed } = bench()
    hold.sending(soFar)
    await end(hold)
    const before = closed.length
    await failAt(hold, () => {})
    assert.equal(closed.length, before)
  }
})

test('a fault of the store while a hold closes hides no other fault, and is logged', async () => {
  const { hold, lines } = bench(async () => {
    throw new StoreRefused('there is no call')
  })
  await failAt(hold, () => {})
  assert.deepEqual(lines, ['error: the reservation of a call could not be closed'])
})
