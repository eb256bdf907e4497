import assert from 'node:assert/strict'
import type { Idempotency } from '../../../src/kernel/idempotency.ts'
import { limits } from '../../../src/kernel/limits.ts'
import type { Store } from '../../../src/store/store.ts'
import { addKey, digestOf, NOON, type OpenStoreUnderTest } from './fixtures.ts'
import { promisesOf } from './promise.ts'
import { addWebhook, attempt, BEFORE, inShort, newWebhook, outbox, relay } from './webhook-fixtures.ts'

const DAY_MS = 86_400_000
const SOON = NOON + 1_000

/** The promises of every store about endpoints, deliveries and leases. */
export function webhookDeliveryConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const promise = promisesOf(storeName, openStore)
  const deliveriesOf = async (store: Store, name: string) => {
    const query = { accountId: 'default', webhookId: `wh_${name}`, status: null, after: null, limit: 100 }
    return (await store.listDeliveries(query)).rows
  }
  const claimed = async (store: Store, name: string, atMs = SOON, holder = 'n1') =>
    (await store.claimDeliveries(holder, `wh_${name}`, atMs))?.deliveries ?? null

  promise('an endpoint is made, shown, listed, changed and deleted', async ({ store }) => {
    const once: Idempotency = { accountId: 'default', name: 'n', fingerprint: digestOf('f'), atMs: NOON }
    const made = await store.createWebhook(newWebhook('a', { events: ['key.created'] }), once)
    assert.ok(made.kind === 'done')
    assert.deepEqual(made.value, {
      ...{ id: 'wh_a', accountId: 'default', url: 'https://a.example/hook', events: ['key.created'] },
      ...{ description: '', format: 'standard', enabled: true, disabledReason: null, createdAtMs: BEFORE },
      ...{ lastDeliveryAtMs: null, lastStatus: null },
    })
    assert.deepEqual(await store.createWebhook(newWebhook('b'), once), {
      kind: 'repeated',
      value: made.value,
    })
    const changes = { url: 'https://c.example', description: 'x', format: 'slack', events: ['*'] } as const
    const changed = await store.updateWebhook('default', 'wh_a', { ...changes, enabled: false }, NOON)
    const expected = { ...made.value, ...changes, enabled: false, disabledReason: 'manual' }
    assert.deepEqual(changed, expected)
    assert.deepEqual(await store.getWebhook('default', 'wh_a'), expected)
    assert.equal(await store.getWebhook('other', 'wh_a'), null)
    const enabled = await store.updateWebhook('default', 'wh_a', { enabled: true }, NOON)
    assert.deepEqual(enabled, { ...expected, enabled: true, disabledReason: null })

    for (let i = 1; i < limits.webhooksMax; i += 1) await addWebhook(store, `b${String(i).padStart(3, '0')}`)
    assert.deepEqual(await store.createWebhook(newWebhook('z'), null), { kind: 'too_many' })
    const page = await store.listWebhooks({ accountId: 'default', after: 'wh_b003', limit: 2 })
    assert.deepEqual([page.rows.map(({ id }) => id), page.more], [['wh_b002', 'wh_b001'], true])
    assert.equal(await store.deleteWebhook('default', 'wh_a'), true)
    assert.equal(await store.deleteWebhook('default', 'wh_a'), false)
    await addWebhook(store, 'z')
  })

  promise(
    'an event goes to the endpoints that want it and were there when it happened',
    async ({ store }) => {
      await addWebhook(store, 'all')
      await addWebhook(store, 'created', { events: ['key.created', 'key.revoked'] })
      await addWebhook(store, 'other', { events: ['key.rotated'] })
      await addWebhook(store, 'late', { createdAtMs: NOON + 1 })
      const off = await addWebhook(store, 'off')
      await store.updateWebhook('default', off.id, { enabled: false }, NOON - 1)
      await addKey(store, 'a', { createdAtMs: NOON })
      // The webhook is enabled again before the relay runs: events of the time between are not for it.
      await store.updateWebhook('default', off.id, { enabled: true }, NOON + 1)
      await relay(store)
      const count = async (name: string) => (await deliveriesOf(store, name)).length
      assert.deepEqual(
        await Promise.all(['all', 'created', 'other', 'late', 'off'].map(count)),
        [1, 1, 0, 0, 0],
      )
      const [all] = await deliveriesOf(store, 'all')
      const [created] = await deliveriesOf(store, 'created')
      assert.equal(all?.eventId, created?.eventId, 'the event is the same')
      assert.match(all?.id ?? '', /^whd_[0-9A-Z]{26}$/)
      assert.match(all?.eventId ?? '', /^evt_[0-9A-Z]{26}$/)
      const { id: _id, eventId: _event, ...figures } = all ?? { id: '', eventId: '' }
      assert.deepEqual(figures, {
        ...{
          webhookId: 'wh_all',
          eventType: 'key.created',
          status: 'pending',
          attempts: 0,
          responseStatus: null,
          error: null,
        },
        ...{ lastAttemptAtMs: null, nextAttemptAtMs: SOON, createdAtMs: SOON },
      })
    },
  )

  promise('one node relays at a time, and one that lost its lease keeps nothing', async ({ store, rows }) => {
    await addWebhook(store, 'a')
    await addKey(store, 'a', { createdAtMs: NOON })
    const events = await store.readOutbox('n1', SOON)
    assert.equal(events?.length, 1)
    assert.equal(await store.readOutbox('n2', SOON + limits.webhookLeaseMs - 1), null)
    const over = SOON + limits.webhookLeaseMs
    const payloads = (events ?? []).map(({ sequence }) => ({ sequence, payload: '{}' }))
    assert.equal(await store.keepEvents('n1', payloads, over), 'lost')
    assert.equal((await store.readOutbox('n2', over))?.length, 1)
    assert.equal(await store.keepEvents('n1', payloads, over), 'lost')
    assert.equal(await store.keepEvents('n2', payloads, over), 'recorded')
    // Events that are kept twice are recorded once.
    assert.equal(await store.keepEvents('n2', payloads, over), 'recorded')
    assert.equal((await rows('webhook_event')).length, 1)
    await store.releaseLeases('n2')
    assert.deepEqual(await store.readOutbox('n1', over), [])
    assert.deepEqual(await store.countWaiting(), { outbox: 0, deliveries: 1 })
    // Deliveries of a disabled webhook do not count as waiting.
    await store.updateWebhook('default', 'wh_a', { enabled: false }, over)
    assert.deepEqual(await store.countWaiting(), { outbox: 0, deliveries: 0 })
    await store.updateWebhook('default', 'wh_a', { enabled: true }, over)
    assert.deepEqual(await store.countWaiting(), { outbox: 0, deliveries: 1 })
    await store.deleteWebhook('default', 'wh_a')
    assert.deepEqual(await store.countWaiting(), { outbox: 0, deliveries: 0 })
  })

  promise(
    'a delivery is tried again until it succeeds, and the endpoint shows the last answer',
    async ({ store }) => {
      await addWebhook(store, 'a')
      await addKey(store, 'a', { createdAtMs: NOON })
      await relay(store)
      assert.deepEqual(await store.claimWebhooks('n1', 10, SOON - 1), [])
      assert.deepEqual(await store.claimWebhooks('n1', 10, SOON), ['wh_a'])
      const claim = await store.claimDeliveries('n1', 'wh_a', SOON)
      assert.equal(Buffer.from(claim?.target.secret ?? []).toString(), 'sealed a')
      const [due] = claim?.deliveries ?? []
      assert.deepEqual(due && [due.payload, due.eventType, due.attempts], [
        '{"type":"key.created"}',
        'key.created',
        0,
      ])
      const id = due?.id ?? ''
      const retry = attempt(id, { kind: 'retry', inMs: 5_000 }, 500)
      assert.equal((await store.recordAttempts('n1', 'wh_a', [retry], true, SOON)).kind, 'recorded')
      assert.deepEqual(await store.claimWebhooks('n1', 10, SOON + 4_999), [])
      assert.deepEqual(await store.claimWebhooks('n2', 10, SOON + 5_000), ['wh_a'])
      assert.deepEqual(
        (await claimed(store, 'a', SOON + 5_000, 'n2'))?.map(({ attempts }) => attempts),
        [1],
      )
      assert.equal((await store.getWebhook('default', 'wh_a'))?.lastStatus, 500)
      assert.equal((await deliveriesOf(store, 'a'))[0]?.error, 'it answered 500')
      await store.recordAttempts('n2', 'wh_a', [attempt(id, { kind: 'succeeded' }, 204)], false, SOON + 5_000)
      assert.deepEqual(await claimed(store, 'a', DAY_MS + SOON, 'n2'), [])
      const [shown] = await deliveriesOf(store, 'a')
      assert.deepEqual(shown && [shown.status, shown.attempts, shown.responseStatus, shown.error], [
        ...['succeeded', 2, 204, null],
      ])
      assert.equal(shown?.nextAttemptAtMs, null)
      const webhook = await store.getWebhook('default', 'wh_a')
      assert.deepEqual([webhook?.lastStatus, webhook?.lastDeliveryAtMs], [204, SOON + 5_000])
    },
  )

  promise(
    'one node at a time delivers to an endpoint, and another takes over when it falls silent',
    async ({ store }) => {
      await addWebhook(store, 'a')
      await addWebhook(store, 'b')
      await addKey(store, 'a', { createdAtMs: NOON })
      await relay(store)
      assert.deepEqual(await store.claimWebhooks('n1', 1, SOON), ['wh_a'])
      assert.deepEqual(await store.claimWebhooks('n2', 10, SOON), ['wh_b'])
      assert.equal(await claimed(store, 'a', SOON, 'n2'), null)
      // The lease is prolonged while an attempt is under way.
      const later = SOON + limits.webhookLeaseMs - 1
      assert.equal(await store.keepWebhookLease('n1', 'wh_a', later), true)
      assert.equal(await claimed(store, 'a', SOON + limits.webhookLeaseMs, 'n2'), null)
      const over = later + limits.webhookLeaseMs
      const [due] = (await claimed(store, 'a', over, 'n2')) ?? []
      const done = [attempt(due?.id ?? '', { kind: 'succeeded' })]
      assert.equal((await store.recordAttempts('n1', 'wh_a', done, true, over)).kind, 'lost')
      assert.equal(await store.keepWebhookLease('n1', 'wh_a', over), false)
      assert.equal((await deliveriesOf(store, 'a'))[0]?.attempts, 0)
      assert.equal((await store.recordAttempts('n2', 'wh_a', done, true, over)).kind, 'recorded')
    },
  )

  promise('recording an attempt tells what has become of the endpoint meanwhile', async ({ store }) => {
    await addWebhook(store, 'a')
    await addKey(store, 'a', { createdAtMs: NOON })
    await relay(store)
    await claimed(store, 'a')
    const target = async () => {
      const recorded = await store.recordAttempts('n1', 'wh_a', [], false, SOON)
      return recorded.kind === 'lost' ? assert.fail() : recorded.target
    }
    await store.updateWebhook('default', 'wh_a', { url: 'https://moved.example/', format: 'slack' }, SOON)
    const moved = await target()
    assert.deepEqual([moved?.url, moved?.format], ['https://moved.example/', 'slack'])
    await store.updateWebhook('default', 'wh_a', { enabled: false }, SOON)
    assert.equal(await target(), null)
    await store.updateWebhook('default', 'wh_a', { enabled: true }, SOON)
    assert.notEqual(await target(), null)
    await store.deleteWebhook('default', 'wh_a')
    assert.equal(await target(), null)
  })

  promise(
    'an endpoint that is gone, or fails for five days, is disabled, and the others are told',
    async ({ store }) => {
      await addWebhook(store, 'a')
      await addWebhook(store, 'b')
      await addWebhook(store, 'c')
      for (const name of ['a', 'b', 'c']) await addKey(store, name, { createdAtMs: NOON })
      await relay(store)
      const ids = async (name: string, atMs = SOON) =>
        ((await claimed(store, name, atMs)) ?? []).map(({ id }) => id)
      const [first = ''] = await ids('a')
      await store.recordAttempts('n1', 'wh_a', [attempt(first, { kind: 'gone' }, 410)], true, SOON)
      const gone = await store.getWebhook('default', 'wh_a')
      assert.deepEqual([gone?.enabled, gone?.disabledReason], [false, 'gone'])
      assert.equal(await claimed(store, 'a'), null)
      const told = await relay(store)
      assert.deepEqual(
        told.map((event) => event.type === 'webhook.disabled' && event.webhook),
        [gone],
      )
      assert.equal((await deliveriesOf(store, 'a')).length, 3, 'nothing more is queued for it')

      // Failures with a success between them are not five days of failure.
      const fail = async (name: string, atMs: number) => {
        const [id = ''] = await ids(name, atMs)
        await store.recordAttempts('n1', `wh_${name}`, [attempt(id, { kind: 'failed' }, null)], true, atMs)
      }
      const [good = ''] = await ids('b')
      await fail('c', SOON)
      await store.recordAttempts('n1', 'wh_b', [attempt(good, { kind: 'retry', inMs: 0 })], true, SOON)
      await store.recordAttempts('n1', 'wh_b', [attempt(good, { kind: 'succeeded' })], true, SOON)
      const fifth = SOON + limits.webhookFailingMs
      await ids('b', SOON + 1)
      await store.recordAttempts('n1', 'wh_b', [attempt(good, { kind: 'succeeded' })], true, SOON + 1)
      await fail('c', fifth - 1)
      assert.equal((await store.getWebhook('default', 'wh_c'))?.enabled, true)
      await fail('b', fifth)
      await fail('c', fifth)
      assert.equal((await store.getWebhook('default', 'wh_b'))?.enabled, true)
      assert.equal((await store.getWebhook('default', 'wh_c'))?.disabledReason, 'failing')
      assert.deepEqual((await relay(store, fifth)).map(inShort), ['webhook.disabled'])

      // Queued deliveries are given up, and can be redelivered once the endpoint is enabled.
      assert.ok((await store.pruneWebhooks('relay', fifth)) > 0)
      const givenUp = await deliveriesOf(store, 'a')
      assert.deepEqual([...new Set(givenUp.map(({ status }) => status))], ['failed'])
      assert.deepEqual([...new Set(givenUp.map(({ error }) => error))].toSorted(), [
        ...['it answered 410', 'the webhook was disabled before it was sent'],
      ])
      assert.deepEqual(await store.redeliver('default', 'wh_a', first, fifth, null), { kind: 'disabled' })
      await store.updateWebhook('default', 'wh_a', { enabled: true }, fifth)
      const again = await store.redeliver('default', 'wh_a', first, fifth, null)
      assert.ok(again.kind === 'done' && again.value.id !== first && again.value.attempts === 0)
      const pulled = await store.redeliver('default', 'wh_a', again.value.id, fifth + 5, null)
      assert.ok(pulled.kind === 'done' && pulled.value.id === again.value.id)
      assert.equal(pulled.value.nextAttemptAtMs, fifth + 5)
      assert.deepEqual(await store.redeliver('default', 'wh_a', 'whd_none', fifth, null), { kind: 'none' })
      assert.deepEqual(await store.redeliver('other', 'wh_a', first, fifth, null), { kind: 'none' })
    },
  )

  promise('a test goes to one endpoint', async ({ store }) => {
    await addWebhook(store, 'a', { events: ['key.created'] })
    await addWebhook(store, 'b')
    const queued = await store.queueTest('default', 'wh_a', '{"type":"webhook.test"}', SOON, null)
    assert.ok(queued.kind === 'done' && queued.value.eventType === 'webhook.test')
    assert.deepEqual(await deliveriesOf(store, 'b'), [])
  })

  promise(
    'an event is kept as long as the last delivery of it, however late that was made',
    async ({ store }) => {
      await addWebhook(store, 'a')
      const queued = await store.queueTest('default', 'wh_a', '{"type":"webhook.test"}', SOON, null)
      assert.ok(queued.kind === 'done')
      const lateMs = SOON + limits.webhookKeptMs - 1
      await store.claimWebhooks('n1', 1, SOON)
      await store.recordAttempts(
        'n1',
        'wh_a',
        [attempt(queued.value.id, { kind: 'failed' }, 500)],
        true,
        SOON,
      )
      const late = await store.redeliver('default', 'wh_a', queued.value.id, lateMs, null)
      assert.ok(late.kind === 'done' && late.value.id !== queued.value.id)
      const laterMs = lateMs + 10 * 86_400_000
      await outbox(store, laterMs)
      while ((await store.pruneWebhooks('relay', laterMs)) > 0);
      const claimed = await store.claimDeliveries('n1', 'wh_a', laterMs)
      assert.deepEqual(
        claimed?.deliveries.map(({ id }) => id),
        [late.value.id],
      )
    },
  )

  promise(
    'each secret that was rotated away signs to the end of its own time, and a third is refused',
    async ({ store }) => {
      await addWebhook(store, 'a')
      const { webhookOldSecretMs: signsMs } = limits
      const rotate = async (secret: string, atMs: number) =>
        await store.rotateWebhookSecret('default', 'wh_a', Buffer.from(secret), atMs, null)
      const secrets = async (atMs: number) => {
        const target = (await store.claimDeliveries('n1', 'wh_a', atMs))?.target ?? assert.fail()
        return [target.secret, ...target.formerSecrets].map((secret) => Buffer.from(secret).toString())
      }
      assert.equal((await rotate('second', SOON)).kind, 'done')
      assert.deepEqual(await secrets(SOON + 1), ['second', 'sealed a'])
      assert.equal((await rotate('third', SOON + 5)).kind, 'done')
      assert.deepEqual(await secrets(SOON + signsMs - 1), ['third', 'second', 'sealed a'])
      const untilMs = SOON + signsMs
      assert.deepEqual(await rotate('fourth', untilMs - 1), { kind: 'too_soon', untilMs })
      assert.deepEqual(await secrets(untilMs), ['third', 'second'])
      assert.equal((await rotate('fourth', untilMs)).kind, 'done')
      assert.deepEqual(await secrets(untilMs + 1), ['fourth', 'third', 'second'])
      assert.deepEqual(await secrets(untilMs + 5), ['fourth', 'third'])
      assert.deepEqual(await secrets(untilMs + signsMs), ['fourth'])
    },
  )

  promise('what is asked of an endpoint twice under one name is done once', async ({ store, rows }) => {
    await addWebhook(store, 'a')
    const once = (name: string): Idempotency => {
      return { accountId: 'default', name, fingerprint: digestOf(name), atMs: SOON }
    }
    const rotate = async (secret: string) =>
      await store.rotateWebhookSecret('default', 'wh_a', Buffer.from(secret), SOON, once('rotate'))
    const kinds = (await Promise.all(['b', 'c', 'd'].map(rotate))).map(({ kind }) => kind)
    assert.deepEqual(kinds.toSorted(), ['done', 'repeated', 'repeated'])
    const target = (await store.claimDeliveries('n1', 'wh_a', SOON))?.target
    assert.equal(target?.formerSecrets.length, 1)

    const send = async () => await store.queueTest('default', 'wh_a', '{}', SOON, once('test'))
    const sent = await send()
    assert.ok(sent.kind === 'done')
    assert.deepEqual(await send(), { ...sent, kind: 'repeated' })
    await claimed(store, 'a')
    const done = [attempt(sent.value.id, { kind: 'succeeded' })]
    await store.recordAttempts('n1', 'wh_a', done, false, SOON)
    const again = async (name: string) =>
      await store.redeliver('default', 'wh_a', sent.value.id, SOON, once(name))
    const redelivered = await again('again')
    assert.ok(redelivered.kind === 'done' && redelivered.value.id !== sent.value.id)
    assert.deepEqual(await again('again'), { ...redelivered, kind: 'repeated' })
    assert.equal((await rows('webhook_delivery')).length, 2)

    // A repetition is found before the checks that would refuse the command now.
    await store.updateWebhook('default', 'wh_a', { enabled: false }, SOON)
    assert.equal((await send()).kind, 'repeated')
    await store.rotateWebhookSecret('default', 'wh_a', Buffer.from('e'), SOON, null)
    assert.equal(
      (await store.rotateWebhookSecret('default', 'wh_a', Buffer.from('f'), SOON, null)).kind,
      'too_soon',
    )
    assert.equal((await rotate('g')).kind, 'repeated')
  })
}
