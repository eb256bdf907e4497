import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { Idempotency } from '../../../src/kernel/idempotency.ts'
import { limits } from '../../../src/kernel/limits.ts'
import type { Store } from '../../../src/store/store.ts'
import { addWebhook, attempt, BEFORE, emitted, newWebhook, prune } from './event-fixtures.ts'
import { addKey, digestOf, NOON, type OpenStoreUnderTest } from './fixtures.ts'
import { promisesOf } from './promise.ts'

const SOON = NOON + 1_000

export function webhookDeliveryConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)
  const deliveriesOf = async (store: Store, name: string) => {
    const query = { accountId: 'default', webhookId: `wh_${name}`, status: null, after: null, limit: 100 }
    return (await store.listDeliveries(query)).rows
  }
  const claim = async (store: Store, atMs = SOON) => await store.claimDeliveries([], atMs)

  test('an endpoint is created, read, listed, updated and deleted', async ({ store }) => {
    const once: Idempotency = { accountId: 'default', name: 'n', fingerprint: digestOf('f'), atMs: NOON }
    const made = await store.createWebhook(newWebhook('a', { events: ['key.created'] }), once, SYSTEM)
    assert.ok(made.kind === 'done')
    assert.deepEqual(made.value, {
      ...{ id: 'wh_a', accountId: 'default', url: 'https://a.example/hook', events: ['key.created'] },
      ...{ description: '', format: 'standard', enabled: true, disabledReason: null, createdAtMs: BEFORE },
      ...{ lastDeliveryAtMs: null, lastStatus: null },
    })
    assert.deepEqual(await store.createWebhook(newWebhook('b'), once, SYSTEM), {
      kind: 'repeated',
      value: made.value,
    })
    const changes = { url: 'https://c.example', description: 'x', format: 'slack', events: ['*'] } as const
    const changed = await store.updateWebhook('default', 'wh_a', { ...changes, enabled: false }, NOON, SYSTEM)
    const expected = { ...made.value, ...changes, enabled: false, disabledReason: 'manual' }
    assert.deepEqual(changed, expected)
    assert.deepEqual(await store.getWebhook('default', 'wh_a'), expected)
    assert.equal(await store.getWebhook('other', 'wh_a'), null)
    const enabled = await store.updateWebhook('default', 'wh_a', { enabled: true }, NOON, SYSTEM)
    assert.deepEqual(enabled, { ...expected, enabled: true, disabledReason: null })

    for (let i = 1; i < limits.webhooksMax; i += 1) await addWebhook(store, `b${String(i).padStart(3, '0')}`)
    assert.deepEqual(await store.createWebhook(newWebhook('z'), null, SYSTEM), { kind: 'too_many' })
    const page = await store.listWebhooks({ accountId: 'default', after: 'wh_b003', limit: 2 })
    assert.deepEqual([page.rows.map(({ id }) => id), page.more], [['wh_b002', 'wh_b001'], true])
    assert.equal(await store.deleteWebhook('default', 'wh_a', NOON, SYSTEM), true)
    assert.equal(await store.deleteWebhook('default', 'wh_a', NOON, SYSTEM), false)
    await addWebhook(store, 'z')
  })

  test('an event is delivered to the enabled endpoints that subscribe to it', async ({ store }) => {
    await addWebhook(store, 'all')
    await addWebhook(store, 'created', { events: ['key.created', 'key.revoked'] })
    await addWebhook(store, 'other', { events: ['key.rotated'] })
    await addWebhook(store, 'off', { events: ['key.created'] })
    await store.updateWebhook('default', 'wh_off', { enabled: false }, BEFORE, SYSTEM)
    await addKey(store, 'a', { createdAtMs: NOON })
    await store.updateWebhook('default', 'wh_off', { enabled: true }, NOON, SYSTEM)
    const of = async (name: string) =>
      (await deliveriesOf(store, name)).filter(({ eventType }) => eventType === 'key.created')
    const counts = await Promise.all(['all', 'created', 'other', 'off'].map(of))
    assert.deepEqual(
      counts.map(({ length }) => length),
      [1, 1, 0, 0],
    )
    const [[all], [created]] = counts as [(typeof counts)[0], (typeof counts)[0]]
    assert.equal(all?.eventId, created?.eventId, 'the event is the same')
    assert.match(all?.id ?? '', /^whd_[0-9A-Z]{26}$/)
    assert.match(all?.eventId ?? '', /^evt_[0-9A-Z]{26}$/)
    const { id: _id, eventId: _event, ...figures } = all ?? { id: '', eventId: '' }
    assert.deepEqual(figures, {
      ...{ webhookId: 'wh_all', eventType: 'key.created', status: 'pending', attempts: 0 },
      ...{
        responseStatus: null,
        responseBody: null,
        error: null,
        lastAttemptAtMs: null,
        nextAttemptAtMs: NOON,
        createdAtMs: NOON,
      },
    })
  })

  test('an endpoint does not receive the event of its own creation or deletion', async ({ store }) => {
    await addWebhook(store, 'a')
    await addWebhook(store, 'b')
    await store.deleteWebhook('default', 'wh_b', NOON, SYSTEM)
    const types = (await deliveriesOf(store, 'a')).map(({ eventType }) => eventType)
    assert.deepEqual(types, ['webhook.deleted', 'webhook.created'])
  })

  test('a delivery is retried until it succeeds, and the endpoint shows the last response', async ({
    store,
  }) => {
    await addWebhook(store, 'a')
    await addKey(store, 'a', { createdAtMs: NOON })
    assert.deepEqual(await claim(store, NOON - 1), [])
    const [due, ...more] = await claim(store)
    assert.ok(due !== undefined && more.length === 0)
    assert.equal(Buffer.from(due.webhook.secret).toString(), 'sealed a')
    assert.deepEqual([due.event.type, due.attempts], ['key.created', 0])
    await store.recordAttempt(attempt(due, { kind: 'retry', inMs: 5_000 }, 500), SOON)
    assert.equal((await store.getWebhook('default', 'wh_a'))?.lastStatus, 500)
    assert.equal((await deliveriesOf(store, 'a'))[0]?.error, 'it answered 500')
    assert.deepEqual(await claim(store, SOON + 4_999), [])
    const [again] = await claim(store, SOON + 5_000)
    assert.ok(again?.attempts === 1 && again.id === due.id)
    await store.recordAttempt(attempt(again, { kind: 'succeeded' }, 204), SOON + 5_000)
    assert.deepEqual(await claim(store, SOON + 86_400_000), [])
    const [shown] = await deliveriesOf(store, 'a')
    const { status, attempts, responseStatus, responseBody, error, nextAttemptAtMs } = shown ?? assert.fail()
    assert.deepEqual(
      [status, attempts, responseStatus, responseBody, error, nextAttemptAtMs],
      [...['succeeded', 2, 204, 'answer 204', null, null]],
    )
    const webhook = await store.getWebhook('default', 'wh_a')
    assert.deepEqual([webhook?.lastStatus, webhook?.lastDeliveryAtMs], [204, SOON + 5_000])
  })

  test('a claim expires, and then the first recorded attempt counts', async ({ store }) => {
    await addWebhook(store, 'a')
    await addKey(store, 'a', { createdAtMs: NOON })
    const [silent] = await claim(store)
    assert.deepEqual(await claim(store, SOON + limits.webhookClaimMs - 1), [])
    const over = SOON + limits.webhookClaimMs
    const [other] = await claim(store, over)
    assert.ok(silent !== undefined && other?.id === silent.id)
    await store.recordAttempt(attempt(other, { kind: 'retry', inMs: 5_000 }, 503), over)
    await store.recordAttempt(attempt(silent, { kind: 'succeeded' }), over)
    const [shown] = await deliveriesOf(store, 'a')
    assert.deepEqual([shown?.status, shown?.attempts, shown?.responseStatus], ['pending', 1, 503])
    // A node that stops releases its claims.
    const [given] = await claim(store, over + 5_000)
    await store.releaseDelivery(given?.id ?? '', over + 5_000)
    assert.equal((await claim(store, over + 5_000)).length, 1)
    assert.equal(await store.countWaiting(), 1)
  })

  test('an endpoint with many deliveries gets a few claims, and none while it is disabled', async ({
    store,
    exec,
  }) => {
    await addWebhook(store, 'many')
    for (let i = 0; i < 20; i += 1) await addKey(store, `k${i}`, { createdAtMs: NOON })
    await addWebhook(store, 'few')
    await addKey(store, 'last', { createdAtMs: NOON })
    const names = async (underWay: readonly [string, number][]) =>
      (await store.claimDeliveries(underWay, SOON)).map(({ webhook }) => webhook.id).toSorted()
    assert.deepEqual(await names([['wh_many', 2]]), ['wh_few', 'wh_many', 'wh_many'])
    assert.deepEqual(await names([['wh_many', 4]]), [])
    assert.deepEqual(await names([]), ['wh_many', 'wh_many', 'wh_many', 'wh_many'])
    // An update of the endpoint would fail up to a thousand deliveries at once.
    await exec('UPDATE webhook SET enabled = false')
    assert.deepEqual(await names([]), [])
  })

  test('failures at a former URL do not count, and the delivery is retried at the new URL', async ({
    store,
  }) => {
    await addWebhook(store, 'a', { events: ['key.created'] })
    for (const name of ['a', 'b']) await addKey(store, name, { createdAtMs: NOON })
    const [before, due] = await claim(store)
    await store.recordAttempt(attempt(before ?? assert.fail(), { kind: 'failed' }, 500), SOON)
    await store.updateWebhook(
      'default',
      'wh_a',
      { url: 'https://moved.example/', format: 'slack' },
      SOON,
      SYSTEM,
    )
    await store.recordAttempt(attempt(due ?? assert.fail(), { kind: 'gone' }, 410), SOON)
    assert.equal((await store.getWebhook('default', 'wh_a'))?.enabled, true)
    const [moved] = await claim(store)
    assert.deepEqual(
      [moved?.attempts, moved?.webhook.url, moved?.webhook.format],
      [...[0, 'https://moved.example/', 'slack']],
    )
    const fiveDays = SOON + limits.webhookFailingMs
    await store.recordAttempt(attempt(moved ?? assert.fail(), { kind: 'failed' }, 500), fiveDays)
    assert.equal((await store.getWebhook('default', 'wh_a'))?.enabled, true)
  })

  test('an endpoint that answers 410 or fails for five days is disabled, and other endpoints are notified', async ({
    store,
  }) => {
    for (const name of ['a', 'b', 'c']) await addWebhook(store, name, { events: ['key.created'] })
    await addWebhook(store, 'watch', { events: ['webhook.disabled'] })
    for (const name of ['a', 'b', 'c']) await addKey(store, name, { createdAtMs: NOON })
    await emitted(store)
    const due = (await claim(store)).toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const of = (name: string) => due.filter(({ webhook }) => webhook.id === `wh_${name}`)
    const [[gone], [b1, b2, b3], [c1, c2, c3]] = ['a', 'b', 'c'].map(of) as [
      typeof due,
      typeof due,
      typeof due,
    ]
    assert.ok(gone && b1 && b2 && b3 && c1 && c2 && c3)
    await store.recordAttempt(attempt(gone, { kind: 'gone' }, 410), SOON)
    const disabled = await store.getWebhook('default', 'wh_a')
    assert.deepEqual([disabled?.enabled, disabled?.disabledReason], [false, 'gone'])
    const [event, ...more] = await emitted(store)
    assert.deepEqual([event?.type, event?.actor.kind, more], ['webhook.disabled', 'system', []])
    assert.equal((event?.data['webhook'] as { id: string } | undefined)?.id, 'wh_a')
    assert.equal((await deliveriesOf(store, 'watch')).length, 1)
    await addKey(store, 'd', { createdAtMs: NOON })
    assert.equal((await deliveriesOf(store, 'a')).length, 3, 'nothing more is queued for it')

    // Failures with a success in between are not five days of failure.
    const fifth = SOON + limits.webhookFailingMs
    const fail = (delivery: typeof gone, atMs: number) =>
      store.recordAttempt(attempt(delivery, { kind: 'failed' }, null), atMs)
    await fail(b1, SOON)
    await fail(c1, SOON)
    await store.recordAttempt(attempt(b2, { kind: 'succeeded' }), SOON + 1)
    await fail(c2, fifth - 1)
    assert.equal((await store.getWebhook('default', 'wh_c'))?.enabled, true)
    await fail(b3, fifth)
    await fail(c3, fifth)
    assert.equal((await store.getWebhook('default', 'wh_b'))?.enabled, true)
    assert.equal((await store.getWebhook('default', 'wh_c'))?.disabledReason, 'failing')

    // Queued deliveries fail, and can be redelivered once the endpoint is enabled.
    const givenUp = await deliveriesOf(store, 'a')
    assert.deepEqual([...new Set(givenUp.map(({ status }) => status))], ['failed'])
    assert.deepEqual([...new Set(givenUp.map(({ error }) => error))].toSorted(), [
      ...['it answered 410', 'the webhook was disabled before it was sent'],
    ])
    assert.deepEqual(await store.redeliver('default', 'wh_a', gone.id, fifth), { kind: 'disabled' })
    await store.updateWebhook('default', 'wh_a', { enabled: true }, fifth, SYSTEM)
    const again = await store.redeliver('default', 'wh_a', gone.id, fifth)
    assert.ok(again.kind === 'done' && again.value.id === gone.id)
    const { status, attempts, nextAttemptAtMs } = again.value
    assert.deepEqual([status, attempts, nextAttemptAtMs], ['pending', 0, fifth])
    assert.deepEqual(await store.redeliver('default', 'wh_a', 'whd_none', fifth), { kind: 'none' })
    assert.deepEqual(await store.redeliver('default', 'wh_b', gone.id, fifth), { kind: 'none' })
    assert.deepEqual(await store.redeliver('other', 'wh_a', gone.id, fifth), { kind: 'none' })
  })

  test('a test event goes to one endpoint, whatever its subscriptions', async ({ store }) => {
    await addWebhook(store, 'a', { events: ['key.created'] })
    await addWebhook(store, 'b')
    const queued = await store.queueTest('default', 'wh_a', SOON, SYSTEM)
    assert.ok(queued.kind === 'done' && queued.value.eventType === 'webhook.test')
    assert.deepEqual(await deliveriesOf(store, 'b'), [])
    await store.deleteWebhook('default', 'wh_a', SOON, SYSTEM)
    assert.deepEqual(await store.queueTest('default', 'wh_a', SOON, SYSTEM), { kind: 'none' })
    assert.deepEqual(
      (await claim(store)).map(({ event }) => event.type),
      ['webhook.deleted'],
    )
  })

  test('the previous secret signs until its expiry, or until the next rotation', async ({ store }) => {
    await addWebhook(store, 'a', { events: ['key.created'] })
    const { webhookOldSecretMs: signsMs } = limits
    const rotate = async (secret: string, atMs: number) =>
      await store.rotateWebhookSecret('default', 'wh_a', Buffer.from(secret), atMs, SYSTEM)
    const secrets = async (atMs: number) => {
      await store.queueTest('default', 'wh_a', atMs, SYSTEM)
      const { secret, formerSecret } = (await claim(store, atMs))[0]?.webhook ?? assert.fail()
      return [secret, formerSecret].map((each) => each && Buffer.from(each).toString())
    }
    assert.equal((await rotate('second', SOON))?.id, 'wh_a')
    assert.deepEqual(await secrets(SOON + 1), ['second', 'sealed a'])
    await rotate('third', SOON + 5)
    assert.deepEqual(await secrets(SOON + 6), ['third', 'second'])
    assert.deepEqual(await secrets(SOON + 4 + signsMs), ['third', 'second'])
    assert.deepEqual(await secrets(SOON + 5 + signsMs), ['third', null])
  })

  test('an endpoint has a maximum of pending deliveries, and those due last fail', async (subject) => {
    const { store } = subject
    await addWebhook(store, 'a')
    const beyond = limits.webhookPendingMax + 3
    await subject.exec(`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${beyond})
      INSERT INTO webhook_delivery (id, webhook_id, event_id, status, next_attempt_at_ms, created_at_ms)
      SELECT 'whd_z' || i, 'wh_a', 'evt_' || i, 'pending', ${SOON} + i, ${NOON} FROM n`)
    assert.equal(await prune(store, NOON), 3)
    assert.equal(await store.countWaiting(), limits.webhookPendingMax)
    const failed = (await subject.rows('webhook_delivery')).filter(({ status }) => status === 'failed')
    assert.deepEqual(
      failed.map(({ id }) => id).sort(),
      [0, 1, 2].map((n) => `whd_z${beyond - 2 + n}`),
    )
    assert.equal(failed[0]?.['error'], 'more than 10000 deliveries were pending')
    // If the endpoint is disabled, all of them fail, in steps.
    await store.updateWebhook('default', 'wh_a', { enabled: false }, NOON, SYSTEM)
    let steps = 0
    while ((await prune(store, NOON)) > 0) steps += 1
    assert.deepEqual([steps, await store.countWaiting()], [10, 0])
  })
}
