import assert from 'node:assert/strict'
import { limits } from '../../../src/kernel/limits.ts'
import { WEBHOOK_SWEPT_MAX } from '../../../src/store/operations/webhook-sweep.ts'
import { addCredit, addKey, NOON, newKey, type OpenStoreUnderTest } from './fixtures.ts'
import { promisesOf } from './promise.ts'
import { addWebhook, BEFORE, inShort, outbox, relay, spend } from './webhook-fixtures.ts'

const DAY_MS = 86_400_000
const SOON = NOON + 1_000

/** The promises of every store about events that time alone causes, a low balance, and the deletion of old rows. */
export function webhookSweepConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const promise = promisesOf(storeName, openStore)

  promise(
    'keys that expire are told once each, however often it is looked and if nothing ran meanwhile',
    async ({ store }) => {
      await addWebhook(store, 'a', { createdAtMs: NOON })
      const at = NOON + 10 * DAY_MS
      const end = (name: string, expiresAtMs: number, createdAtMs = NOON) =>
        addKey(store, name, { expiresAtMs, createdAtMs })
      await end('early', NOON + 1)
      await end('end', at)
      await end('revoked', at)
      await end('moved', at)
      await store.revokeKey('default', 'key_revoked', NOON)
      await relay(store)
      const swept = async (atMs: number) => {
        await store.readOutbox('relay', atMs)
        while (await store.sweepEvents('relay', atMs)) {}
        return (await relay(store, atMs)).map((event) =>
          'key' in event
            ? `${event.type}${event.type === 'key.expiring' ? event.days : ''} ${event.key.record.id}`
            : '',
        )
      }
      assert.deepEqual(await swept(NOON + 1), ['key.expired key_early'])
      assert.deepEqual(await swept(NOON + 2), [])
      assert.deepEqual(await swept(at - 7 * DAY_MS - 1), [])
      const expiring = await swept(at - 7 * DAY_MS)
      assert.deepEqual(expiring.toSorted(), ['key.expiring7 key_end', 'key.expiring7 key_moved'])
      // The expiry moves to another instant, and that instant is told then.
      await store.updateKey('default', 'key_moved', { expiresAtMs: at + DAY_MS }, at - 7 * DAY_MS)
      await relay(store, at - 7 * DAY_MS)
      assert.deepEqual(await swept(at - 6 * DAY_MS), ['key.expiring7 key_moved'])
      // This key was made less than a day before its end.
      await end('brief', at, at - 10_000)
      await relay(store, at)
      // No sweep ran when a day was left, nor when the key ended.
      assert.deepEqual((await swept(at + 60_000)).toSorted(), [
        ...['key.expired key_brief', 'key.expired key_end', 'key.expiring1 key_moved'],
      ])
      assert.deepEqual(await swept(at + 60_000), [])
      // The key ended too long ago to be told.
      assert.deepEqual(await swept(at + DAY_MS + limits.webhookKeptMs), [])
      assert.equal(await store.sweepEvents('another', at), false)
    },
  )

  promise('many keys that expire at once are told in several looks', async ({ store }) => {
    const keys = WEBHOOK_SWEPT_MAX + 20
    for (let i = 0; i < keys; i += 1)
      await store.createKey(newKey(`k${i}`, { expiresAtMs: NOON + 5, createdAtMs: BEFORE - 1 }), null)
    await addWebhook(store, 'a')
    await outbox(store)
    assert.equal(await store.sweepEvents('relay', SOON), true)
    assert.equal(await store.sweepEvents('relay', SOON), false)
    const told = await relay(store)
    assert.equal(new Set(told.map((event) => ('key' in event ? event.key.record.id : ''))).size, keys)
    assert.equal(told.length, keys)
  })

  promise('a low balance is told once until it is enough again', async ({ store }) => {
    await addWebhook(store, 'a')
    await addKey(store, 'a', { createdAtMs: BEFORE - 1 })
    await relay(store)
    await store.setBalanceLow(100n)
    const swept = async () => {
      await outbox(store)
      await store.sweepEvents('relay', SOON)
      return (await relay(store)).map((event) =>
        'balance' in event ? event.balance.creditedNanos - event.balance.chargedNanos : event.type,
      )
    }
    await spend(store, 'a', 5n)
    assert.deepEqual(await swept(), [], 'credit does not count yet')
    await addCredit(store, 105n)
    assert.deepEqual(await swept(), [])
    await spend(store, 'a', 1n)
    assert.deepEqual(await swept(), [99n])
    assert.deepEqual(await swept(), [])
    await addCredit(store, 1n)
    assert.deepEqual(await swept(), [])
    await spend(store, 'a', 10n)
    assert.deepEqual(await swept(), [90n])
    await store.setBalanceLow(null)
    await addCredit(store, 1_000n)
    await spend(store, 'a', 995n)
    assert.deepEqual(await swept(), [], 'it is not to be told any more')
    // A balance that no call has made low is found by the sweep.
    await store.setBalanceLow(200n)
    assert.deepEqual(await swept(), [], 'it was marked already')
    await addCredit(store, 105n)
    assert.deepEqual(await swept(), [])
    await store.setBalanceLow(300n)
    assert.deepEqual(await swept(), [200n])
  })

  promise(
    'a low balance is told with the call that makes it low, before one that is used up, and never after',
    async ({ store }) => {
      await addWebhook(store, 'a')
      await addKey(store, 'a', { createdAtMs: BEFORE - 1 })
      await addCredit(store, 1_000n)
      await relay(store)
      await store.setBalanceLow(100n)
      const told = async (sweeps = true) => {
        if (sweeps) {
          await outbox(store)
          await store.sweepEvents('relay', SOON)
        }
        return (await relay(store)).map(inShort)
      }
      await spend(store, 'a', 900n)
      assert.deepEqual(await told(false), [])
      await spend(store, 'a', 1n)
      assert.deepEqual(await told(false), ['balance.low'])
      assert.deepEqual(await told(), [])
      await spend(store, 'a', 99n)
      assert.deepEqual(await told(), ['balance.exhausted'])
      // The balance is filled up and used up again before a sweep: low and exhausted are each told once more.
      await addCredit(store, 500n)
      await spend(store, 'a', 600n)
      assert.deepEqual(await told(false), ['balance.low', 'balance.exhausted'])
      assert.deepEqual(await told(), [])
      // The balance is low before a threshold is set, and used up before a sweep.
      await store.setBalanceLow(null)
      await addCredit(store, 190n)
      assert.deepEqual(await told(), [])
      await store.setBalanceLow(50n)
      assert.deepEqual(await told(), [])
      await store.setBalanceLow(100n)
      await spend(store, 'a', 90n)
      assert.deepEqual(await told(), ['balance.exhausted'])
    },
  )

  promise('what is old is deleted, and what is not stays', async ({ store, rows }) => {
    await addWebhook(store, 'a')
    await addKey(store, 'a', { createdAtMs: NOON, monthlyBudgetNanos: 10n })
    await spend(store, 'a', 10n)
    await relay(store)
    await addKey(store, 'b', { createdAtMs: NOON })
    const counts = async () =>
      await Promise.all(
        ['outbox', 'event', 'delivery', 'mark'].map(async (name) => (await rows(`webhook_${name}`)).length),
      )
    const before = await counts()
    assert.deepEqual(before, [1, 5, 5, 1])
    const prune = async (atMs: number) => {
      await outbox(store, atMs)
      let pruned = 0
      for (;;) {
        const some = await store.pruneWebhooks('relay', atMs)
        if (some === 0) return pruned
        pruned += some
      }
    }
    assert.equal(await prune(NOON + limits.webhookKeptMs), 0)
    assert.deepEqual(await counts(), before)
    assert.equal(await prune(SOON + limits.webhookKeptMs + 1), 6)
    assert.deepEqual(await counts(), [0, 5, 0, 1])
    await prune(NOON + 45 * DAY_MS)
    assert.deepEqual(await counts(), [0, 0, 0, 0])
  })
}
