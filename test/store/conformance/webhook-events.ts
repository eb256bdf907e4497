import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Idempotency } from '../../../src/kernel/idempotency.ts'
import type { Store } from '../../../src/store/store.ts'
import type { OutboxEvent } from '../../../src/webhooks/webhook-store.ts'
import {
  addCredit,
  addKey,
  closing,
  digestOf,
  NOON,
  newKey,
  type OpenStoreUnderTest,
  opening,
} from './fixtures.ts'
import { promisesOf } from './promise.ts'
import { addWebhook, inShort, outbox, relay, spend } from './webhook-fixtures.ts'

const DAY_MS = 86_400_000

/** The promises of every store about which events are told, and how often. */
export function webhookEventConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const promise = promisesOf(storeName, openStore)
  const capped = (store: Store, name: string, monthlyBudgetNanos: bigint | null) =>
    addKey(store, name, { monthlyBudgetNanos })
  const cap = (store: Store, name: string, monthlyBudgetNanos: bigint | null, atMs = NOON) =>
    store.updateKey('default', `key_${name}`, { monthlyBudgetNanos }, atMs)
  /** Relays all events, and resolves with those of budgets in short. */
  const crossings = async (store: Store, atMs?: number) =>
    (await relay(store, atMs)).filter((event) => 'budget' in event).map(inShort)

  promise('without an endpoint that is enabled nothing is written to be told', async ({ store }) => {
    const webhook = await addWebhook(store, 'a')
    await store.updateWebhook('default', webhook.id, { enabled: false }, NOON)
    await capped(store, 'a', 100n)
    await spend(store, 'a', 100n)
    await store.revokeKey('default', 'key_a', NOON)
    assert.deepEqual(await outbox(store), [])
  })

  promise('each threshold is told once, with the figures and the call that crossed it', async ({ store }) => {
    await capped(store, 'a', 1_000n)
    await addWebhook(store, 'a')
    await spend(store, 'a', 499n)
    assert.deepEqual(await outbox(store), [])
    const half = await spend(store, 'a', 1n)
    await spend(store, 'a', 299n)
    const [event, ...more] = await relay(store)
    assert.deepEqual(more, [])
    assert.ok(event?.type === 'key.budget.threshold')
    assert.deepEqual(event.budget, {
      ...{ percent: 50, spentNanos: 500n, heldNanos: 0n, capNanos: 1_000n, month: '2026-11' },
      ...{ resetsAtMs: Date.UTC(2026, 11, 1), requestId: half },
    })
    assert.equal(event.key.record.id, 'key_a')
    assert.equal(event.key.record.month.spentNanos, 799n)
    // One call that crosses several thresholds tells each of them, the cap last.
    const last = await spend(store, 'a', 5_000n)
    const told = await relay(store)
    assert.deepEqual(told.map(inShort), [`80% ${last}`, `90% ${last}`, `100% ${last}`])
    assert.deepEqual(
      told.map(({ type }) => type),
      ['key.budget.threshold', 'key.budget.threshold', 'key.budget.exceeded'],
    )
  })

  promise('calls of one batch cross each for itself, in their order', async ({ store }) => {
    await capped(store, 'a', 1_000n)
    await addWebhook(store, 'a')
    const ids = Array.from({ length: 12 }, (_, i) => `req_batch_${String(i).padStart(2, '0')}`)
    await Promise.all(ids.map((id) => store.admit(opening(id, 'a', { hold: { kind: 'none' } }))))
    await Promise.all(ids.map((id) => store.settle(closing(id, { costNanos: 100n, listNanos: 100n }))))
    assert.deepEqual(await crossings(store), [
      ...['50% req_batch_04', '80% req_batch_07', '90% req_batch_08', '100% req_batch_09'],
    ])
  })

  promise('a late settlement of an earlier month crosses no threshold of this one', async ({ store }) => {
    await capped(store, 'a', 100n)
    await addWebhook(store, 'a', { createdAtMs: NOON - 40 * DAY_MS })
    await store.admit(opening('req_late', 'a', { atMs: NOON - 30 * DAY_MS }))
    const now = await spend(store, 'a', 60n)
    await store.settle(closing('req_late', { costNanos: 85n, listNanos: 85n, atMs: NOON + 5 }))
    const told = (await relay(store)).flatMap((event) => ('budget' in event ? [event] : []))
    assert.deepEqual(told.map(inShort), [`50% ${now}`])
  })

  promise(
    'the thresholds are those that were set, and a cap of any size is compared exactly',
    async ({ store }) => {
      const most = 1_000_000_000n * 1_000_000_000n
      await capped(store, 'a', most)
      await addWebhook(store, 'a')
      await store.setBudgetThresholds([99, 25])
      await spend(store, 'a', most / 4n - 1n)
      assert.deepEqual(await crossings(store), [])
      const first = await spend(store, 'a', 1n)
      const last = await spend(store, 'a', most - most / 4n)
      assert.deepEqual(await crossings(store), [`25% ${first}`, `99% ${last}`, `100% ${last}`])
    },
  )

  promise(
    'after an edit of the cap, its thresholds above what is spent are told when they are crossed',
    async ({ store }) => {
      await capped(store, 'a', 100n)
      await addWebhook(store, 'a')
      await spend(store, 'a', 55n)
      assert.equal((await crossings(store)).length, 1)
      // The cap is raised: 50 % of it are ahead again.
      await cap(store, 'a', 200n)
      const again = await spend(store, 'a', 45n)
      assert.deepEqual(await crossings(store), [`50% ${again}`])
      // The cap is lowered: 80 % of it are behind.
      await cap(store, 'a', 120n)
      const last = await spend(store, 'a', 8n)
      assert.deepEqual(await crossings(store), [`90% ${last}`])
      // The cap is removed and brought back: a threshold that was crossed stays crossed.
      await cap(store, 'a', null)
      await spend(store, 'a', 1n)
      await cap(store, 'a', 120n)
      assert.deepEqual(await crossings(store), [])
      const over = await spend(store, 'a', 11n)
      assert.deepEqual(await crossings(store), [`100% ${over}`])
    },
  )

  promise(
    'an edit that puts the cap at or below what is spent tells that it is reached, once per cap',
    async ({ store }) => {
      await capped(store, 'a', 100n)
      await addWebhook(store, 'a')
      await spend(store, 'a', 40n)
      await cap(store, 'a', 40n)
      const [updated, exceeded, ...more] = await relay(store)
      assert.deepEqual(more, [])
      assert.equal(updated?.type, 'key.updated')
      assert.ok(exceeded?.type === 'key.budget.exceeded')
      assert.deepEqual(exceeded.budget, {
        ...{ percent: 100, spentNanos: 40n, heldNanos: 0n, capNanos: 40n, month: '2026-11' },
        ...{ resetsAtMs: Date.UTC(2026, 11, 1), requestId: null },
      })
      for (const capNanos of [30n, 50n, 40n, null, 30n]) await cap(store, 'a', capNanos)
      assert.deepEqual(await crossings(store), ['100% null'])
      // The cap is reached by a call, and then once more by an edit.
      await cap(store, 'a', 50n)
      const over = await spend(store, 'a', 10n)
      await cap(store, 'a', 60n)
      await cap(store, 'a', 50n)
      assert.deepEqual(await crossings(store), [`90% ${over}`, `100% ${over}`])
      // In the next month nothing is spent yet, which reaches only a cap of zero.
      const december = Date.UTC(2026, 11, 2)
      await cap(store, 'a', 40n, december)
      assert.deepEqual(await crossings(store, december), [])
      await cap(store, 'a', 0n, december)
      assert.deepEqual(await crossings(store, december), ['100% null'])
    },
  )

  promise(
    'crossings are those of a simple model, whatever is spent, edited and turned off',
    async ({ store }) => {
      await addWebhook(store, 'a')
      let keys = 0
      const step = fc.oneof(
        {
          weight: 4,
          arbitrary: fc.record({ spend: fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 5 }) }),
        },
        { weight: 2, arbitrary: fc.record({ cap: fc.option(fc.integer({ min: 0, max: 300 })) }) },
      )
      const scenario = fc.array(step, { maxLength: 12 })
      const property = fc.asyncProperty(scenario, async (steps) => {
        keys += 1
        const name = `p${keys}`
        await capped(store, name, 100n)
        let spent = 0
        let capNow: number | null = 100
        const expected: string[] = []
        const reached = new Set<number>()
        let n = 0
        for (const each of steps) {
          if ('cap' in each) {
            await cap(store, name, each.cap === null ? null : BigInt(each.cap))
            if (each.cap !== null && each.cap !== capNow && spent >= each.cap && !reached.has(each.cap)) {
              expected.push('100% null')
              reached.add(each.cap)
            }
            capNow = each.cap
            continue
          }
          const ids = each.spend.map(() => `req_${name}_${(n++).toString().padStart(3, '0')}`)
          const free = { hold: { kind: 'none' } as const }
          await Promise.all(ids.map((id) => store.admit(opening(id, name, free))))
          await Promise.all(
            ids.map((id, i) => {
              const costNanos = BigInt(each.spend[i] ?? 0)
              return store.settle(closing(id, { costNanos, listNanos: costNanos }))
            }),
          )
          for (const [i, id] of ids.entries()) {
            const before = spent
            spent += each.spend[i] ?? 0
            if (capNow === null) continue
            for (const percent of [50, 80, 90, 100]) {
              const threshold = capNow * percent
              if (before * 100 >= threshold || threshold > spent * 100) continue
              expected.push(`${percent}% ${id}`)
              if (percent === 100) reached.add(capNow)
            }
          }
        }
        assert.deepEqual(await crossings(store), expected)
      })
      // A failure names its seed and the shortest scenario.
      await fc.assert(property, { numRuns: 30 })
    },
  )

  promise(
    'commands on keys are told with the record as it was then, and repetitions are not',
    async ({ store }) => {
      await addWebhook(store, 'a')
      const once: Idempotency = { accountId: 'default', name: 'n', fingerprint: digestOf('f'), atMs: NOON }
      const limits = { monthlyBudgetNanos: 7n, allowedModels: ['m\0'], expiresAtMs: NOON + DAY_MS }
      const made = newKey('a', { ...limits, createdAtMs: NOON })
      await store.createKey(made, once)
      await store.createKey({ ...made, id: 'key_again' }, once)
      await store.updateKey('default', 'key_a', { name: 'renamed' }, NOON)
      await store.updateKey('default', 'key_a', { name: 'renamed' }, NOON)
      await store.updateKey('default', 'key_a', {}, NOON)
      const { id, digest, prefix, last4, createdAtMs } = newKey('b', { createdAtMs: NOON })
      const successor = { id, digest, prefix, last4, createdAtMs, oldExpiresAtMs: NOON + 60_000 }
      await store.rotateKey('default', 'key_a', successor, { ...once, name: 'r' })
      await store.rotateKey('default', 'key_a', successor, { ...once, name: 'r' })
      await store.revokeKey('default', 'key_b', NOON + 5)
      await store.revokeKey('default', 'key_b', NOON + 6)
      await store.updateKey('default', 'key_b', { name: 'late' }, NOON + 7)
      await store.revokeKey('default', 'key_none', NOON)
      const told = await relay(store)
      assert.deepEqual(
        told.map((event) => [event.type, 'key' in event && [event.key.record.id, event.key.record.name]]),
        [
          ['key.created', ['key_a', 'a']],
          ['key.updated', ['key_a', 'renamed']],
          ['key.rotated', ['key_b', 'renamed']],
          ['key.revoked', ['key_b', 'renamed']],
        ],
      )
      const [created, , rotated, revoked] = told as [OutboxEvent, OutboxEvent, OutboxEvent, OutboxEvent]
      assert.ok('key' in created && 'key' in revoked && rotated.type === 'key.rotated')
      const { digest: _, ...shown } = made
      const month = { spentNanos: 0n, heldNanos: 0n, lostNanos: 0n }
      const nothing = { revokedAtMs: null, lastUsedAtMs: null, rotatedFrom: null }
      assert.deepEqual(created.key, { record: { ...shown, ...nothing, month }, atMs: NOON })
      assert.equal(rotated.oldKey.record.expiresAtMs, NOON + 60_000)
      assert.equal(rotated.key.record.expiresAtMs, NOON + DAY_MS)
      assert.equal(revoked.key.record.revokedAtMs, NOON + 5)
    },
  )

  promise('credit that is used up is told each time, where credit counts', async ({ store }) => {
    await addKey(store, 'a')
    await addWebhook(store, 'a')
    await spend(store, 'a', 10n)
    await addCredit(store, 110n)
    await spend(store, 'a', 99n)
    assert.deepEqual(await outbox(store), [])
    await spend(store, 'a', 1n)
    const [event, ...more] = await relay(store)
    assert.deepEqual(more, [])
    assert.ok(event?.type === 'balance.exhausted')
    assert.deepEqual(event.balance, {
      ...{ creditedNanos: 110n, chargedNanos: 110n, heldNanos: 0n, enforced: true },
    })
    await addCredit(store, 5n)
    await spend(store, 'a', 50n)
    assert.deepEqual((await relay(store)).map(inShort), ['balance.exhausted'])
  })

  promise('a model without a price is told once a day, and only so many of them', async ({ store }) => {
    await addKey(store, 'a')
    await addWebhook(store, 'a')
    const unpriced = async (requestId: string, modelServed: string | null, atMs = NOON) => {
      await store.admit(opening(requestId, 'a', { atMs, modelAsked: null }))
      const nothing = { costNanos: 0n, listNanos: 0n, unpriced: true }
      await store.settle(closing(requestId, { ...nothing, modelServed, atMs }))
    }
    await unpriced('req_u1', 'new')
    await unpriced('req_u2', 'new')
    await unpriced('req_u3', null)
    await unpriced('req_u4', 'new', NOON + DAY_MS)
    const told = (await relay(store)).map((event) =>
      event.type === 'call.unpriced' ? [event.model, event.requestId] : event.type,
    )
    assert.deepEqual(told, [
      ['new', 'req_u1'],
      [null, 'req_u3'],
      ['new', 'req_u4'],
    ])
    for (let i = 0; i < 110; i += 1) await unpriced(`req_v${i}`, `model-${i}`)
    assert.equal((await relay(store)).length, 98)
  })
}
