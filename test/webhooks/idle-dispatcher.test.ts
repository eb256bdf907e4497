import assert from 'node:assert/strict'
import { createLog } from '../../src/kernel/log.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { createSecretSealer } from '../../src/keys/secrets.ts'
import { type DispatcherParts, WebhookDispatcher } from '../../src/webhooks/dispatcher.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'

test('an idle node claims no deliveries until it records an event, is woken, or 15 seconds have passed', async () => {
  let ms = 0
  const clock = { nowMs: () => ms, monotonicMs: () => ms }
  const seen = { ticks: 0, claims: 0, events: 0 }
  const store = {
    get load() {
      seen.ticks += 1
      return { events: new Map([['key.created', seen.events]]) }
    },
    async claimDeliveries() {
      seen.claims += 1
      return []
    },
    ...{ pruneEvents: async () => 0, listOverfull: async () => [] },
    sweepEvents: async () => null,
  } as unknown as DispatcherParts['store']
  const dispatcher = new WebhookDispatcher({
    ...{ store, clock, log: createLog('silent'), tickMs: 1, dashboardUrl: null },
    sealer: createSecretSealer(new Secret('a pepper of the test'), 'webhook secrets'),
    rules: { allowPrivate: true, resolveHost: async () => [] },
  })
  /** The number of claims after the dispatcher has had many chances to make more. */
  const claims = async () => {
    const ticks = seen.ticks + 20
    await until('the dispatcher has polled again', async () => seen.ticks > ticks)
    return seen.claims
  }
  dispatcher.start()
  try {
    const atStart = await claims()
    assert.equal(await claims(), atStart)
    seen.events += 1
    const afterEvent = await claims()
    assert.ok(afterEvent > atStart)
    assert.equal(await claims(), afterEvent)
    dispatcher.wake()
    const afterWake = await claims()
    assert.ok(afterWake > afterEvent)
    ms += 14_000
    assert.equal(await claims(), afterWake)
    ms += 2_000
    assert.equal(await claims(), afterWake + 1)
  } finally {
    await dispatcher.stop()
  }
})
