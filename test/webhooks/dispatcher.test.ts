import assert from 'node:assert/strict'
import { Secret } from '../../src/kernel/secret.ts'
import { createSecretSealer } from '../../src/keys/secrets.ts'
import type { Store } from '../../src/store/store.ts'
import { createWebhookDispatcher, type DispatcherParts } from '../../src/webhooks/dispatcher.ts'
import { withDeadline } from '../support/deadline.ts'
import { createLogLines } from '../support/log-lines.ts'
import { test } from '../support/suite.ts'

const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() }
const sealer = createSecretSealer(new Secret('a pepper of some length'), 'test')

type Asked = Exclude<keyof Store, 'load'>

/** A store that answers as scripted, and remembers its commands. */
function storeOf(
  answers: Partial<{ [Name in Asked]: (...asked: Parameters<Store[Name]>) => Promise<unknown> }>,
) {
  const asked: Asked[] = []
  let wake = () => {}
  const defaults = {
    sweepEvents: async () => false,
    pruneEvents: async () => 0,
    claimDeliveries: async () => [],
  }
  const store = new Proxy({} as Store, {
    get:
      (_, name: Asked) =>
      async (...about: never) => {
        asked.push(name)
        wake()
        const all: Partial<Record<Asked, unknown>> = { ...defaults, ...answers }
        const answer = all[name] as ((...about: never) => Promise<unknown>) | undefined
        return await (answer?.(...about) ?? null)
      },
  })
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise<void>((resolve) => (wake = resolve))
  }
  const untilAsked = (name: Asked, times = 1) =>
    withDeadline(
      until(() => asked.filter((each) => each === name).length >= times),
      () => `${name} was not asked ${times} times: ${asked.join(', ')}`,
    )
  return { store, asked, untilAsked }
}

function dispatcherOn(store: Store, more: Partial<DispatcherParts> = {}) {
  const { log, lines } = createLogLines()
  const rules = { allowPrivate: true, resolveHost: async () => [] }
  const dispatcher = createWebhookDispatcher({
    store,
    clock,
    log,
    sealer,
    rules,
    dashboardUrl: null,
    ...more,
  })
  return { dispatcher, lines }
}

const WAITS = 'warn: webhooks wait: the store did not answer'

test('a store that fails is asked again, and the log says so once', async () => {
  let claims = 0
  const { store, untilAsked } = storeOf({
    async claimDeliveries() {
      claims += 1
      if (claims < 4) throw new Error('the database is away')
      return []
    },
  })
  const { dispatcher, lines } = dispatcherOn(store)
  dispatcher.start()
  for (let i = 1; i <= 4; i++) {
    await untilAsked('claimDeliveries', i)
    dispatcher.wake()
  }
  await dispatcher.stop()
  assert.deepEqual(lines, [WAITS])
})

test('deliveries that are due go out though the sweep fails', async () => {
  const { store, untilAsked } = storeOf({ sweepEvents: () => Promise.reject(new Error('no')) })
  const { dispatcher, lines } = dispatcherOn(store)
  dispatcher.start()
  await untilAsked('claimDeliveries')
  await dispatcher.stop()
  assert.deepEqual(lines, [WAITS])
})
