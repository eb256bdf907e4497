import type { CallFlag } from '../../../src/kernel/vocabulary.ts'
import type { CallRecord } from '../../../src/ledger/call.ts'
import type { CallFilter } from '../../../src/ledger/request-log.ts'
import { addKey, closing, creditBackOf, idAt, NOON, opening, type StoreUnderTest } from './fixtures.ts'

const COUNT = 120
export const SOCKET = 'req_socket'

/** Calls in every state and with every flag, several at each instant, newest first. */
export async function addMixedCalls(subject: StoreUnderTest): Promise<CallRecord[]> {
  const { store } = subject
  await subject.addAccount('other')
  await addKey(store, 'a')
  await addKey(store, 'b')
  await addKey(store, 'c', { accountId: 'other' })
  const timeOf = (i: number) => NOON + ((i * 7) % 11)
  const id = (i: number) => idAt(timeOf(i), String(i))
  const every = (n: number, i: number) => i % n === 0
  for (let i = 0; i < COUNT; i += 1) {
    // A crash interrupts the calls that are open here; the later ones stay open.
    if (i === COUNT - 20) await store.interruptOpenCalls(NOON + 1_000)
    const keyName = ['a', 'a', 'b', 'c'][i % 4] ?? 'a'
    const modelAsked = every(3, i) ? 'm-asked' : every(5, i) ? null : 'm-other'
    // Calls do not start in the order of their arrival.
    const atMs = timeOf(i) + (i % 3)
    // Every fifth call is a turn of the socket, with any key.
    const socketId = every(5, i + 3) ? SOCKET : null
    const sessionId = every(4, i) ? 'session' : null
    await store.admit(opening(id(i), keyName, { atMs, modelAsked, socketId, sessionId }))
    if (every(9, i)) continue
    const released = every(10, i)
    await store.settle(
      closing(id(i), {
        state: released ? 'released' : 'settled',
        status: every(4, i + 1) ? 429 : every(13, i) ? null : 200,
        modelServed: every(7, i) ? 'm-served' : every(2, i) ? 'm-other' : null,
        streamed: every(2, i + 1),
        estimated: every(3, i + 1),
        unpriced: every(5, i + 1),
        pricedAsRequested: every(6, i + 1),
        costNanos: released ? 0n : (BigInt(i % 4) * 1_001n) / 2n,
      }),
    )
  }
  await store.creditBack(creditBackOf(Array.from({ length: 12 }, (_, i) => id(i * 2 + 1))), null)

  const calls = await Promise.all(Array.from({ length: COUNT }, (_, i) => store.getCall(id(i))))
  return calls
    .filter((call) => call !== null)
    .sort((one, other) => (other.requestId < one.requestId ? -1 : 1))
}

const HAS_FLAG: Readonly<Record<CallFlag, (call: CallRecord) => boolean>> = {
  streamed: (call) => call.streamed,
  estimated: (call) => call.estimated,
  unpriced: (call) => call.unpriced,
  overrun: (call) => call.overrun,
  priced_as_requested: (call) => call.pricedAsRequested,
  credited: (call) => call.credited,
}

/** Whether a call matches a filter, as the store's port specifies it. */
export function matches(call: CallRecord, filter: CallFilter): boolean {
  const { keyId, fromMs, toMs, model, status, state, minCostNanos, flag } = filter
  const { socketId = null, sessionId = null } = filter
  return (
    call.accountId === filter.accountId &&
    (keyId === null || call.keyId === keyId) &&
    (fromMs === null || call.startedAtMs >= fromMs) &&
    (toMs === null || call.startedAtMs < toMs) &&
    (model === null || call.modelAsked === model || call.modelServed === model) &&
    (status === null || call.status === status) &&
    (state === null || call.state === state) &&
    (minCostNanos === null || (call.costNanos !== null && call.costNanos >= minCostNanos)) &&
    (socketId === null || call.socketId === socketId) &&
    (sessionId === null || call.sessionId === sessionId) &&
    (flag === null || HAS_FLAG[flag](call))
  )
}
