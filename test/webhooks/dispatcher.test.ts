import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { createSecretSealer } from '../../src/keys/sealed-secret.ts'
import { createWebhookDispatcher } from '../../src/webhooks/dispatcher.ts'
import type { OutboxEvent, WebhookRecord, WebhookStore } from '../../src/webhooks/webhook-store.ts'
import { withDeadline } from '../support/deadline.ts'
import { createLogLines } from '../support/log-lines.ts'

const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() }
const sealer = createSecretSealer(new Secret('a pepper of some length'), 'test')
const endpoint = { id: 'wh_1' } as WebhookRecord

type Asked = keyof WebhookStore

/** A store that answers as told, and remembers what it was asked. */
function storeOf(answers: Partial<{ [Name in Asked]: () => Promise<unknown> }>) {
  const asked: Asked[] = []
  let wake = () => {}
  const store = new Proxy({} as WebhookStore, {
    get: (_, name: Asked) => async () => {
      asked.push(name)
      wake()
      return await (answers[name]?.() ?? null)
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

function dispatcherOn(store: WebhookStore, payload = '{}') {
  const { log, lines } = createLogLines()
  const rules = { allowPrivate: true, resolveHost: async () => [] }
  const settings = { dashboardUrl: null, balanceLowNanos: null, loadRender: async () => () => payload }
  return { dispatcher: createWebhookDispatcher({ store, clock, log, sealer, rules, ...settings }), lines }
}

const page = (rows: readonly WebhookRecord[]) => async () => ({ rows, more: false })

test('a store that fails is asked again, and the log says so once', async () => {
  let failures = 0
  const { store, untilAsked } = storeOf({
    async listWebhooks() {
      failures += 1
      if (failures < 4) throw new Error('the database is away')
      return { rows: [endpoint], more: false }
    },
    claimWebhooks: async () => [],
  })
  const { dispatcher, lines } = dispatcherOn(store)
  dispatcher.start()
  for (let i = 1; i < 4; i++) {
    await untilAsked('listWebhooks', i)
    dispatcher.wake()
  }
  await untilAsked('claimWebhooks')
  await dispatcher.stop()
  assert.deepEqual(lines, ['warn: webhooks wait: the store could not be asked for them'])
})

test('while there is no endpoint nothing is asked but whether there is one, after what is old was deleted', async () => {
  const { store, asked, untilAsked } = storeOf({
    listWebhooks: page([]),
    readOutbox: async () => [],
    sweepEvents: async () => false,
    pruneWebhooks: async () => 0,
    claimWebhooks: async () => [],
  })
  const { dispatcher } = dispatcherOn(store)
  dispatcher.start()
  await untilAsked('claimWebhooks')
  const before = asked.length
  for (let i = 0; i < 3; i++) {
    dispatcher.wake()
    await untilAsked('listWebhooks', i + 2)
  }
  await dispatcher.stop()
  assert.deepEqual(new Set(asked.slice(before)), new Set(['listWebhooks', 'releaseLeases']))
})

test('an event that is too large is handed to the store all the same, which gives it up, and the log says so', async () => {
  const event = {
    sequence: 1n,
    accountId: 'default',
    atMs: 0,
    type: 'call.unpriced',
    model: 'm',
    requestId: 'r',
  }
  let left: OutboxEvent[] = [event as OutboxEvent]
  const { store, untilAsked } = storeOf({
    listWebhooks: page([endpoint]),
    readOutbox: async () => left,
    async keepEvents() {
      left = []
      return 'recorded'
    },
    claimWebhooks: async () => [],
  })
  const { dispatcher, lines } = dispatcherOn(store, 'x'.repeat(limits.webhookPayloadBytesMax + 1))
  dispatcher.start()
  await untilAsked('claimWebhooks')
  await dispatcher.stop()
  assert.deepEqual(lines, ['error: an event is too large for webhooks, and is not told'])
})
