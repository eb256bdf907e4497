import assert from 'node:assert/strict'
import { AdmissionQueues } from '../../src/calls/admission-queue.ts'
import { admit } from '../../src/calls/admit.ts'
import type { Ask } from '../../src/calls/ask.ts'
import type { Core } from '../../src/calls/core.ts'
import { Listeners } from '../../src/http/outgoing-reply.ts'
import { limits } from '../../src/kernel/limits.ts'
import { NO_MODELS } from '../../src/kernel/model-names.ts'
import type { Admission, CallOpening } from '../../src/ledger/call.ts'
import { WaitingCalls } from '../../src/ledger/unsent-calls.ts'
import { NO_DISCOUNT } from '../../src/pricing/amounts.ts'
import { test } from '../support/suite.ts'

/** An ask with only the members that admission reads. */
function askOf(presence: ReturnType<typeof client>): Ask {
  const caller = {
    digest: Buffer.from('d'),
    clientIp: '127.0.0.1',
    userAgent: null,
    sessionId: null,
    presence,
  }
  const profile = {
    ...{ model: null, models: NO_MODELS, hold: { kind: 'unbounded' }, version: { id: '' } },
    ...{ context: { discount: NO_DISCOUNT }, unratable: null, unpricedModel: null },
  }
  return {
    ...{ requestId: 'req_1', surface: 'messages', method: 'POST', path: '/v1/messages', endpoint: null },
    ...{ socketId: 'req_0', ambiguity: null, profile },
    caller: { ...caller, redact: (text: string) => text },
  } as unknown as Ask
}

interface AskedCore extends Core {
  readonly asked: number
  readonly openings: readonly CallOpening[]
}

function gatewayWith(answers: Admission[]): AskedCore {
  const openings: CallOpening[] = []
  const gateway = {
    asked: 0,
    openings,
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
    inFlight: { count: 0, preflights: 0 },
    outbox: { waiting: 0, isDurable: true },
    queues: new AdmissionQueues(60_000),
    waitingCalls: new WaitingCalls(),
    budgetMode: 'exact',
    store: {
      async admit(opening: CallOpening) {
        gateway.asked += 1
        openings.push(opening)
        const answer = answers.shift()
        if (answer === undefined) throw new Error('nobody was to ask')
        return answer
      },
      lookUpKey: async () => ({ kind: 'api_key', keyId: 'key_1', accountId: 'default', funds: {} }),
    },
  }
  return gateway as unknown as AskedCore
}

class CountedListeners extends Listeners {
  readonly #all = new Set<() => void>()

  get count(): number {
    return this.#all.size
  }

  override add(listener: () => void): void {
    this.#all.add(listener)
    super.add(listener)
  }

  override remove(listener: () => void): void {
    this.#all.delete(listener)
    super.remove(listener)
  }
}

const client = (isOver: boolean) => ({ isOver, whenClosed: new CountedListeners() })
const blocked: Extract<Admission, { kind: 'blocked' }> = {
  ...{ kind: 'blocked', by: { limit: 'credit' }, keyId: 'key_1', budgetId: 'bud_1', accountId: 'default' },
  personId: null,
  balanceNanos: 1n,
}

test('a call whose client left while its body was read is not admitted', async () => {
  const gateway = gatewayWith([])
  assert.deepEqual(await admit(askOf(client(true)), gateway), { kind: 'client_left' })
  assert.equal(gateway.asked, 0)
})

const unusable = (reason: 'expired_key' | 'revoked_key'): Admission => ({
  ...{ kind: 'refused', refusal: { reason }, balanceNanos: null },
})
for (const [what, end, outcome] of [
  ['whose key expires', unusable('expired_key'), 'invalid_api_key'],
  ['whose key is revoked', unusable('revoked_key'), 'invalid_api_key'],
  ['during which the store fails', null, 'Error: nobody was to ask'],
  ['whose client leaves', 'leaves', 'client_left'],
] as const) {
  test(`a waiting call ${what} leaves the queue`, async () => {
    const gateway = gatewayWith([blocked, blocked, ...(end === null || end === 'leaves' ? [] : [end])])
    const res = client(false)
    const admitted = admit(askOf(res), gateway).then(
      (answer) => (answer.kind === 'refused' ? answer.refusal.code : answer.kind),
      String,
    )
    while (gateway.asked < 2) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(gateway.queues.waiting, 1)
    if (end === 'leaves') res.whenClosed.fire()
    else gateway.queues.signalAll()
    assert.equal(await admitted, outcome)
    assert.deepEqual([gateway.queues.waiting, res.whenClosed.count], [0, 0])
  })
}

test('while a call waits, a call of another key is decided by one admission, without a lookup of its key', async () => {
  const gateway = gatewayWith([blocked, blocked, unusable('revoked_key'), blocked])
  let lookups = 0
  const { lookUpKey } = gateway.store
  gateway.store.lookUpKey = (...key) => {
    lookups += 1
    return lookUpKey(...key)
  }
  const waiting = admit(askOf(client(false)), gateway)
  while (gateway.asked < 2) await new Promise((resolve) => setImmediate(resolve))
  const ask = askOf(client(false))
  const other = await admit({ ...ask, caller: { ...ask.caller, digest: Buffer.from('other') } }, gateway)
  assert.deepEqual([other.kind, gateway.asked, lookups], ['refused', 3, 0])
  gateway.queues.close()
  assert.equal((await waiting).kind, 'refused')
})

test('a call that finds the queue full does not overtake queued calls', async () => {
  const gateway = gatewayWith([blocked])
  const entries = Array.from({ length: limits.callsWaitingMax }, (_, i) => {
    const name = `acct_${Math.floor(i / limits.callsQueuedPerLimitMax)}`
    const entry = gateway.queues.enter(Buffer.from(name))
    void entry.wait({ ...blocked, accountId: name })
    return entry
  })
  const answer = await admit(askOf(client(false)), gateway)
  assert.equal(answer.kind === 'refused' && answer.refusal.code, 'credit_held')
  assert.equal(gateway.asked, 1)
  for (const entry of entries) entry.done(false)
})

for (const [what, part, state, code] of [
  ['pending settlements are not safe on disk', 'outbox', { isDurable: false }, 'store_unavailable'],
  ['too many settlements are pending', 'outbox', { waiting: 20_000 }, 'store_unavailable'],
  ['the maximum of calls is in flight', 'inFlight', { count: limits.callsInFlightMax }, 'no_memory'],
] as const) {
  test(`no call is admitted while ${what}`, async () => {
    const gateway = gatewayWith([])
    Object.assign(gateway[part], state)
    const answer = await admit(askOf(client(false)), gateway)
    assert.equal(answer.kind === 'refused' && answer.refusal.code, code)
    assert.equal(gateway.asked, 0)
  })
}
