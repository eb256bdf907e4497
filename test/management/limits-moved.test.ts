import assert from 'node:assert/strict'
import { SYSTEM } from '../../src/kernel/vocabulary.ts'
import { type KeyRecord, NO_LIMITS } from '../../src/keys/key-store.ts'
import type { CreditEntry } from '../../src/ledger/account.ts'
import { WaitingCalls } from '../../src/ledger/unsent-calls.ts'
import { addCredit } from '../../src/management/credits.ts'
import { createKey, deleteKey, revokeKey, rotateKey, updateKey } from '../../src/management/keys.ts'
import type { Management, OwnExchange, Route } from '../../src/management/route.ts'
import { test } from '../support/suite.ts'

/** Routes tell calls that wait for room about moved limits, which the calls would find out only a second later. */

const key: KeyRecord = {
  id: 'key_1',
  accountId: 'default',
  budgetId: 'bud_1',
  name: 'k',
  prefix: '',
  last4: '',
  createdAtMs: 0,
  revokedAtMs: null,
  lastUsedAtMs: null,
  rotatedFrom: null,
  month: { spentNanos: 0n, heldNanos: 0n, lostNanos: 0n, daySpentNanos: 0n },
  ...NO_LIMITS,
}
const credited: CreditEntry = {
  ...{
    id: 'crd_1',
    accountId: 'default',
    kind: 'top_up',
    amountNanos: 1n,
    reason: 'r',
    actor: SYSTEM,
    atMs: 0,
  },
  balanceAfterNanos: 1n,
}
const balance = { creditedNanos: 1n, chargedNanos: 0n, heldNanos: 0n, enforced: true }

/** How often the route reported that limits moved, when the store gives `answer` to all but the balance. */
async function countMoves(route: Route, body: unknown, answer: unknown): Promise<number> {
  let times = 0
  const store = new Proxy({}, { get: (_, name) => async () => (name === 'getBalance' ? balance : answer) })
  const management: Management = {
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
    nextUlid: () => '0',
    digestKey: () => Buffer.alloc(32),
    servicePrefix: 'svc',
    store: store as Management['store'],
    settlements: { settled() {}, wait: () => ({ done: Promise.resolve(), stop() {} }) },
    waitingCalls: new WaitingCalls(),
    upstreamKeys: {} as Management['upstreamKeys'],
    refusedCalls: { written: async () => {} },
    node: {} as Management['node'],
    scrapeMetrics: () => Promise.reject(new Error('not here')),
    limitsMoved() {
      times++
    },
    webhooks: {} as Management['webhooks'],
  }
  const caller = { kind: 'admin_key', keyId: 'adm_1', name: '', role: 'operator', accountId: null } as const
  const actor = { kind: 'admin_key', id: 'adm_1', name: '' } as const
  const scope = { role: 'operator', actor, accountId: 'default', listedAccountId: 'default' } as const
  const asked = { session: null, params: ['key_1'], query: {}, body, idempotency: null }
  await route.handle({ exchange: {} as OwnExchange, caller, ...scope, ...asked }, management)
  return times
}

const cases: readonly [what: string, route: Route, body: unknown, answer: unknown, times: number][] = [
  ['an edit', updateKey, {}, { kind: 'changed', key }, 1],
  ['an edit of a final key', updateKey, {}, { kind: 'final', key }, 0],
  ['an edit of no key', updateKey, {}, { kind: 'none' }, 0],
  ['a revocation', revokeKey, {}, key, 1],
  ['a revocation of no key', revokeKey, {}, null, 0],
  ['a deletion', deleteKey, null, key, 1],
  ['a rotation', rotateKey, {}, { kind: 'done', value: key }, 1],
  ['a repeated rotation', rotateKey, {}, { kind: 'repeated', value: key }, 1],
  ['a rotation of a final key', rotateKey, {}, { kind: 'final', key }, 0],
  ['a rotation of no key', rotateKey, {}, { kind: 'none' }, 0],
  ['a rotation under a name of something else', rotateKey, {}, { kind: 'conflict' }, 0],
  ['a credit', addCredit, { amount_usd: 1n, reason: 'r' }, { kind: 'done', value: credited }, 1],
  ['a repeated credit', addCredit, { amount_usd: 1n, reason: 'r' }, { kind: 'repeated', value: credited }, 1],
  ['a credit under a name of something else', addCredit, { amount_usd: 1n }, { kind: 'conflict' }, 0],
  ['a new key', createKey, { name: 'k' }, { kind: 'done', value: key }, 0],
]
for (const [what, route, body, answer, times] of cases) {
  test(`calls that wait are ${times === 0 ? 'left alone by' : 'decided again after'} ${what}`, async () => {
    assert.equal(await countMoves(route, body, answer), times)
  })
}
