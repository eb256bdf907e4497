import assert from 'node:assert/strict'
import { limits } from '../../src/kernel/limits.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { createSecretSealer } from '../../src/keys/sealed-secret.ts'
import {
  createWebhookDispatcher,
  type DispatcherParts,
  type RenderPayload,
} from '../../src/webhooks/dispatcher.ts'
import type {
  EventPayload,
  OutboxEvent,
  WebhookRecord,
  WebhookStore,
} from '../../src/webhooks/webhook-store.ts'
import { withDeadline } from '../support/deadline.ts'
import { createLogLines } from '../support/log-lines.ts'
import { test } from '../support/suite.ts'

const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() }
const sealer = createSecretSealer(new Secret('a pepper of some length'), 'test')
const endpoint = { id: 'wh_1' } as WebhookRecord

type Asked = keyof WebhookStore

/** A store that answers as told, and remembers its commands. */
function storeOf(
  answers: Partial<{ [Name in Asked]: (...asked: Parameters<WebhookStore[Name]>) => Promise<unknown> }>,
) {
  const asked: Asked[] = []
  let wake = () => {}
  const store = new Proxy({} as WebhookStore, {
    get:
      (_, name: Asked) =>
      async (...about: never) => {
        asked.push(name)
        wake()
        const answer = answers[name] as ((...about: never) => Promise<unknown>) | undefined
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

function dispatcherOn(
  store: WebhookStore,
  render: RenderPayload = () => '{}',
  more: Partial<DispatcherParts> = {},
) {
  const { log, lines } = createLogLines()
  const rules = { allowPrivate: true, resolveHost: async () => [] }
  const settings = { dashboardUrl: null, loadRender: async () => render }
  const dispatcher = createWebhookDispatcher({ store, clock, log, sealer, rules, ...settings, ...more })
  return { dispatcher, lines }
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

test('deliveries that are due go out though the outbox cannot be read', async () => {
  const { store, untilAsked } = storeOf({
    listWebhooks: page([endpoint]),
    async readOutbox() {
      throw new Error('a row of the outbox lacks what its event is made of')
    },
    claimWebhooks: async () => [endpoint.id],
  })
  const { dispatcher, lines } = dispatcherOn(store)
  dispatcher.start()
  await untilAsked('claimDeliveries')
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

const untold: readonly (readonly [what: string, render: RenderPayload, line: string])[] = [
  [
    'is too large',
    () => 'x'.repeat(limits.webhookPayloadBytesMax + 1),
    'error: an event is too large for webhooks, and is not told',
  ],
  [
    'cannot be put into words',
    () => {
      throw new Error('a member is missing')
    },
    'error: an event cannot be put into words, and is not told',
  ],
]
for (const [what, render, line] of untold) {
  test(`an event that ${what} is given up, the log says so, and those behind it are not held up`, async () => {
    const event = { accountId: 'default', atMs: 0, type: 'call.unpriced', model: 'm', requestId: 'r' }
    let left = [1n, 2n].map((sequence) => ({ ...event, sequence }) as OutboxEvent)
    const kept: (readonly EventPayload[])[] = []
    const { store, untilAsked } = storeOf({
      listWebhooks: page([endpoint]),
      readOutbox: async () => left,
      async keepEvents(_holder, events) {
        left = []
        kept.push(events)
        return 'recorded'
      },
      claimWebhooks: async () => [],
    })
    const { dispatcher, lines } = dispatcherOn(store, (told) => (told.sequence === 1n ? render(told) : '{}'))
    dispatcher.start()
    await untilAsked('claimWebhooks')
    await dispatcher.stop()
    assert.deepEqual(kept[0], [
      { sequence: 1n, payload: null },
      { sequence: 2n, payload: '{}' },
    ])
    assert.deepEqual(lines, [line])
  })
}

test('an endpoint at which all that was claimed has failed is left alone for a while, and a stop does not wait for it', async () => {
  const deliveries = Array.from({ length: limits.webhookClaimMax }, (_, i) => ({
    ...{ id: `whd_${i}`, eventId: `evt_${i}`, eventType: 'webhook.test', payload: '{}', attempts: 0 },
  }))
  // A secret that cannot be opened is a failure like any other.
  const target = {
    id: 'wh_1',
    url: 'https://receiver.example/',
    format: 'standard',
    secret: Buffer.alloc(8),
    formerSecrets: [],
  }
  let failed = 0
  const { store, asked, untilAsked } = storeOf({
    listWebhooks: page([endpoint]),
    claimWebhooks: async () => ['wh_1'],
    claimDeliveries: async () => ({ target, deliveries }),
    async recordAttempts(_holder, _id, attempts) {
      failed += attempts.length
      return { kind: 'recorded', target }
    },
  })
  const { dispatcher } = dispatcherOn(store, undefined, { failingPauseMs: 600_000 })
  dispatcher.start()
  while (failed < deliveries.length)
    await untilAsked('recordAttempts', asked.filter((name) => name === 'recordAttempts').length + 1)
  for (let i = 2; i < 5; i++) {
    dispatcher.wake()
    await untilAsked('claimWebhooks', i)
  }
  await dispatcher.stop()
  assert.equal(asked.filter((name) => name === 'claimDeliveries').length, 1)
})
