import assert from 'node:assert/strict'
import { pauseAfterMs } from '../../src/webhooks/deliver.ts'
import { clockAt } from '../limits/clock-at.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import type { Reply } from '../support/webhook-receiver.ts'
import { dataOf, idOf, type Subscription, WebhookGateway } from './webhook-gateway.ts'

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000]

// It stands still: five seconds may pass before a test has read the first attempt.
const clock = clockAt(new Date().toISOString())
const resolveHost: () => Promise<never> = () => Promise.reject(new Error('there is no such host'))
const hooked = await WebhookGateway.start({ clock, resolveHost: () => resolveHost() })
closeAfter(hooked)

const record = async ({ path }: Subscription) => await hooked.gateway.manage('GET', path)

async function tried(subscription: Subscription, attempts: number) {
  await subscription.receiver.until((messages) => messages.length >= attempts)
  await until(
    'the try is recorded',
    async () => (await hooked.deliveries(subscription))[0]?.attempts === attempts,
  )
  const [delivery] = await hooked.deliveries(subscription)
  return delivery ?? assert.fail()
}

test('a failing delivery is retried on schedule with the same id, and then fails', async () => {
  const subscription = await hooked.subscribe()
  const { receiver } = subscription
  receiver.reply = () => 500
  await hooked.gateway.manage('POST', `${subscription.path}/test`)
  const pauses = [5_000, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 10 * HOUR_MS]
  for (const [i, pause] of pauses.entries()) {
    const delivery = await tried(subscription, i + 1)
    assert.deepEqual([delivery.status, delivery.response_status], ['pending', 500])
    const pauseMs = Date.parse(delivery.next_attempt_at ?? '') - Date.parse(delivery.last_attempt_at)
    assert.ok(pauseMs >= pause && pauseMs <= pause * 1.1, `${pauseMs} after try ${i + 1}`)
    clock.advance(pauseMs)
    await hooked.look(subscription)
  }
  const { status, attempts, next_attempt_at } = await tried(subscription, 8)
  assert.deepEqual(
    { status, attempts, next_attempt_at },
    { status: 'failed', attempts: 8, next_attempt_at: null },
  )
  assert.equal(new Set(receiver.messages.map(idOf)).size, 1)
  const { last_status } = await record(subscription)
  assert.equal(last_status, 500)
  await hooked.unsubscribe(subscription)
})

const troubles: readonly (readonly [what: string, reply: () => Reply, error: RegExp])[] = [
  ['a response other than 2xx', () => 404, /^it answered 404$/],
  ['a redirect', () => 302, /^it answered 302, and redirects are not followed$/],
  ['a connection that ends', () => (response) => response.destroy(), /^socket hang up$/],
]
for (const [what, reply, error] of troubles) {
  test(`a delivery reports ${what} as its error until an attempt succeeds`, async () => {
    const subscription = await hooked.subscribe()
    subscription.receiver.reply = reply
    await hooked.gateway.manage('POST', `${subscription.path}/test`)
    const failed = await tried(subscription, 1)
    assert.match(failed.error ?? '', error)
    assert.equal(failed.response_body, failed.response_status === null ? null : '')
    subscription.receiver.reply = () => 204
    await hooked.gateway.manage('POST', `${subscription.path}/deliveries/${failed.id}/redeliver`)
    assert.equal((await tried(subscription, 2)).error, null)
    await hooked.unsubscribe(subscription)
  })
}

test('an endpoint that answers 410 is disabled at once and gets nothing more, and the others are notified', async () => {
  const gone = await hooked.subscribe(['key.created'])
  const well = await hooked.subscribe(['webhook.disabled'])
  gone.receiver.reply = () => 410
  await hooked.gateway.manage('POST', `${gone.path}/test`)
  const [message] = await well.receiver.untilTypes('webhook.disabled')
  const { webhook } = dataOf(message ?? assert.fail()) as { webhook: Record<string, unknown> }
  assert.deepEqual([webhook['id'], webhook['enabled'], webhook['disabled_reason']], [gone.id, false, 'gone'])
  const { enabled, disabled_reason, last_status } = await record(gone)
  assert.deepEqual(
    { enabled, disabled_reason, last_status },
    { enabled: false, disabled_reason: 'gone', last_status: 410 },
  )
  await hooked.gateway.createKey('not delivered there')
  await assert.rejects(hooked.gateway.manage('POST', `${gone.path}/test`), /409 .*disabled/)
  assert.equal((await hooked.deliveries(gone)).length, 1)
  await hooked.unsubscribe(gone)
  await hooked.unsubscribe(well)
})

test('a delivery is retried after 5 s, 5 m, 30 m, 2 h, 5 h, 10 h and 10 h, and then fails', () => {
  const minutes = [1, 2, 3, 4, 5, 6, 7].map((tries) => (pauseAfterMs(tries, 0) ?? 0) / 60_000)
  assert.deepEqual(minutes, [5 / 60, 5, 30, 120, 300, 600, 600])
  assert.equal(pauseAfterMs(8, 0), null)
})

test('each pause gets up to 10 % of random delay', () => {
  assert.equal(pauseAfterMs(2, 1), 330_000)
  assert.equal(pauseAfterMs(2, 0.5), 315_000)
})
