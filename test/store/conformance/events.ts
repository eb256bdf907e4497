import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { Idempotency } from '../../../src/kernel/idempotency.ts'
import { limits } from '../../../src/kernel/limits.ts'
import type { RefusedCall } from '../../../src/ledger/request-log.ts'
import type { Store } from '../../../src/store/store.ts'
import { runs } from '../../support/scale.ts'
import {
  addWebhook,
  attempt,
  BEFORE,
  emitted,
  inShort,
  prune,
  SWEPT_AT_ONCE,
  spend,
  sweep,
} from './event-fixtures.ts'
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

const DAY_MS = 86_400_000
const ACTOR = { kind: 'admin_key', id: 'adm_1', name: 'ops' } as const
const NO_FILTER = { accountId: null, type: null, actorId: null, fromMs: null, toMs: null, after: null }

export function eventConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)
  const capped = (store: Store, name: string, monthlyBudgetNanos: bigint | null) =>
    addKey(store, name, { monthlyBudgetNanos })
  const cap = (store: Store, name: string, monthlyBudgetNanos: bigint | null, atMs = NOON) =>
    store.updateKey('default', `key_${name}`, { monthlyBudgetNanos }, atMs, SYSTEM)
  /** The new budget events in short form. */
  const crossings = async (store: Store) =>
    (await emitted(store)).filter(({ data }) => 'threshold_percent' in data).map(inShort)
  const balances = async (store: Store) =>
    (await emitted(store)).map(inShort).filter((event) => event.startsWith('balance.'))

  test('each threshold is recorded once, with figures, call, and the key as actor', async ({ store }) => {
    await capped(store, 'a', 1_000n)
    await spend(store, 'a', 499n)
    assert.deepEqual(await crossings(store), [])
    const half = await spend(store, 'a', 1n)
    await spend(store, 'a', 299n)
    const [event, ...more] = await emitted(store)
    assert.deepEqual(more, [])
    assert.ok(event?.type === 'key.budget.threshold')
    const { key, ...figures } = event.data
    assert.deepEqual(figures, {
      ...{ period: 'month', threshold_percent: 50, spent_usd: 5e-7, cap_usd: 1e-6, held_usd: 0 },
      ...{ resets_at: '2026-12-01T00:00:00.000Z', request_id: half },
    })
    const { id, month_spend_usd } = key as Record<string, unknown>
    assert.deepEqual([id, month_spend_usd], ['key_a', 5e-7])
    assert.deepEqual(event.actor, { kind: 'api_key', id: 'key_a', name: 'a' })
    // One call that crosses several thresholds emits one event each, the cap last.
    const last = await spend(store, 'a', 5_000n)
    const crossed = await emitted(store)
    assert.deepEqual(crossed.map(inShort), [`80% ${last}`, `90% ${last}`, `100% ${last}`])
    assert.equal(crossed.at(-1)?.type, 'key.budget.exceeded')
  })

  test('each call of a batch crosses its own thresholds, in order', async ({ store }) => {
    await capped(store, 'a', 1_000n)
    const ids = Array.from({ length: 12 }, (_, i) => `req_batch_${String(i).padStart(2, '0')}`)
    await Promise.all(ids.map((id) => store.admit(opening(id, 'a', { hold: { kind: 'none' } }))))
    await Promise.all(ids.map((id) => store.settle(closing(id, { costNanos: 100n, listNanos: 100n }))))
    assert.deepEqual(await crossings(store), [
      ...['50% req_batch_04', '80% req_batch_07', '90% req_batch_08', '100% req_batch_09'],
    ])
  })

  test('a late settlement of an earlier month crosses no threshold of the current month', async ({
    store,
  }) => {
    await capped(store, 'a', 100n)
    await store.admit(opening('req_late', 'a', { atMs: NOON - 30 * DAY_MS }))
    const now = await spend(store, 'a', 60n)
    await store.settle(closing('req_late', { costNanos: 85n, listNanos: 85n, atMs: NOON + 5 }))
    assert.deepEqual(await crossings(store), [`50% ${now}`])
  })

  test('daily and account ceilings emit the same crossings as the monthly cap', async ({ store, exec }) => {
    await capped(store, 'a', null)
    await exec('UPDATE budget SET daily_budget_nanos = 100; UPDATE account SET monthly_budget_nanos = 1000')
    const first = await spend(store, 'a', 100n)
    const next = await spend(store, 'a', 80n, { atMs: NOON + DAY_MS })
    const all = await spend(store, 'a', 900n, { atMs: NOON + DAY_MS })
    assert.deepEqual(await crossings(store), [
      ...[`50% day ${first}`, `80% day ${first}`, `90% day ${first}`, `100% day ${first}`],
      ...[`50% day ${next}`, `80% day ${next}`, `90% day ${all}`, `100% day ${all}`],
      ...[`50% account ${all}`, `80% account ${all}`, `90% account ${all}`, `100% account ${all}`],
    ])
    const { rows } = await store.listEvents({ ...NO_FILTER, type: 'account.budget.exceeded', limit: 1 })
    const { account, resets_at } = JSON.parse(rows[0]?.dataJson ?? '{}') as Record<string, unknown>
    assert.deepEqual([(account as { id: string }).id, resets_at], ['default', '2026-12-01T00:00:00.000Z'])
    await emitted(store)
    await store.updateAccount('default', { monthlyBudgetNanos: 50n }, ACTOR, NOON + DAY_MS)
    assert.deepEqual(await crossings(store), ['100% account null'])
  })

  test('crossings use the configured thresholds and compare caps of any size exactly', async ({ store }) => {
    const most = 1_000_000_000n * 1_000_000_000n
    await capped(store, 'a', most)
    await store.setBudgetThresholds([99, 25])
    await spend(store, 'a', most / 4n - 1n)
    assert.deepEqual(await crossings(store), [])
    const first = await spend(store, 'a', 1n)
    const last = await spend(store, 'a', most - most / 4n)
    assert.deepEqual(await crossings(store), [`25% ${first}`, `99% ${last}`, `100% ${last}`])
  })

  test('lowering the cap to the spend or below emits one exceeded event per cap', async ({ store }) => {
    await capped(store, 'a', 100n)
    await spend(store, 'a', 40n)
    await emitted(store)
    await store.updateKey('default', 'key_a', { monthlyBudgetNanos: 40n }, NOON, ACTOR)
    const [updated, exceeded, ...more] = await emitted(store)
    assert.deepEqual(more, [])
    assert.equal(updated?.type, 'key.updated')
    assert.deepEqual(updated.data['changes'], { monthly_budget_usd: { old: 1e-7, new: 4e-8 } })
    assert.equal(exceeded?.type, 'key.budget.exceeded')
    assert.deepEqual(exceeded.actor, ACTOR)
    const { key: _, ...figures } = exceeded.data
    assert.deepEqual(figures, {
      ...{ period: 'month', threshold_percent: 100, spent_usd: 4e-8, cap_usd: 4e-8, held_usd: 0 },
      ...{ resets_at: '2026-12-01T00:00:00.000Z', request_id: null },
    })
    for (const capNanos of [30n, 50n, 40n, null, 30n]) await cap(store, 'a', capNanos)
    assert.deepEqual(await crossings(store), ['100% null'])
    // A call reaches the cap; later an edit does.
    await cap(store, 'a', 50n)
    const over = await spend(store, 'a', 10n)
    await cap(store, 'a', 60n)
    await cap(store, 'a', 50n)
    assert.deepEqual(await crossings(store), [`90% ${over}`, `100% ${over}`])
    // Nothing is spent in the new month, so only a cap of 0 is reached.
    const december = Date.UTC(2026, 11, 2)
    await cap(store, 'a', 40n, december)
    assert.deepEqual(await crossings(store), [])
    await cap(store, 'a', 0n, december)
    assert.deepEqual(await crossings(store), ['100% null'])
  })

  test('crossings match a simple model for any sequence of calls and edits', async ({ store }) => {
    let keys = 0
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ spend: fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 5 }) }),
      },
      { weight: 2, arbitrary: fc.record({ cap: fc.option(fc.integer({ min: 0, max: 300 })) }) },
    )
    const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
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
      assert.deepEqual((await crossings(store)).toSorted(), expected.toSorted())
    })
    // A failure prints its seed and the shortest scenario.
    await fc.assert(property, { numRuns: runs(30) })
  })

  test('each key command emits one event with record and actor, and a repetition emits none', async ({
    store,
  }) => {
    const once: Idempotency = { accountId: 'default', name: 'n', fingerprint: digestOf('f'), atMs: NOON }
    const limited = { monthlyBudgetNanos: 7n, allowedModels: ['m'], expiresAtMs: NOON + DAY_MS }
    const made = newKey('a', { ...limited, createdAtMs: NOON })
    await store.createKey(made, once, ACTOR)
    await store.createKey({ ...made, id: 'key_again' }, once, ACTOR)
    await store.updateKey('default', 'key_a', { name: 'renamed', logRequests: true }, NOON, ACTOR)
    await store.updateKey('default', 'key_a', { name: 'renamed' }, NOON, ACTOR)
    await store.updateKey('default', 'key_a', {}, NOON, ACTOR)
    const { id, digest, prefix, last4, createdAtMs } = newKey('b', { createdAtMs: NOON })
    const successor = { id, digest, prefix, last4, createdAtMs, oldExpiresAtMs: NOON + 60_000 }
    await store.rotateKey('default', 'key_a', successor, { ...once, name: 'r' }, ACTOR)
    await store.rotateKey('default', 'key_a', successor, { ...once, name: 'r' }, ACTOR)
    await store.revokeKey('default', 'key_b', NOON + 5, ACTOR)
    await store.revokeKey('default', 'key_b', NOON + 6, ACTOR)
    await store.updateKey('default', 'key_b', { name: 'late' }, NOON + 7, ACTOR)
    await store.revokeKey('default', 'key_none', NOON, ACTOR)
    const events = await emitted(store)
    assert.deepEqual(events.map(inShort), [
      ...['key.created key_a', 'key.updated key_a', 'key.rotated key_b', 'key.revoked key_b'],
    ])
    assert.ok(events.every(({ accountId, actor }) => accountId === 'default' && actor.id === ACTOR.id))
    const [created, updated, rotated, revoked] = events.map(({ data }) => data as Record<string, never>)
    const keyIn = (data: unknown, name = 'key') =>
      (data as Record<string, Record<string, unknown>>)[name] ?? assert.fail()
    assert.equal(keyIn(created)['monthly_budget_usd'], 7e-9)
    assert.ok(!('month_waiting' in keyIn(created)) && !('key' in keyIn(created)))
    assert.deepEqual(updated?.['changes'], {
      name: { old: 'a', new: 'renamed' },
      log_requests: { old: false, new: true },
    })
    assert.equal(keyIn(rotated, 'old_key')['expires_at'], new Date(NOON + 60_000).toISOString())
    assert.equal(keyIn(rotated)['expires_at'], new Date(NOON + DAY_MS).toISOString())
    assert.equal(keyIn(revoked)['status'], 'revoked')
  })

  test('webhook changes emit events without secrets', async ({ store }) => {
    await addWebhook(store, 'a')
    await store.updateWebhook('default', 'wh_a', { description: 'x', enabled: false }, NOON, ACTOR)
    await store.updateWebhook('default', 'wh_a', { description: 'x' }, NOON, ACTOR)
    await store.rotateWebhookSecret('default', 'wh_a', Buffer.from('sealed b'), NOON, ACTOR)
    await store.deleteWebhook('default', 'wh_a', NOON, ACTOR)
    const events = await emitted(store)
    assert.deepEqual(
      events.map(({ type, data }) => [type, data['changes']]),
      [
        ['webhook.created', undefined],
        [
          'webhook.updated',
          {
            description: { old: '', new: 'x' },
            enabled: { old: true, new: false },
            disabled_reason: { old: null, new: 'manual' },
          },
        ],
        ['webhook.updated', { secret: { old: null, new: null } }],
        ['webhook.deleted', undefined],
      ],
    )
    assert.ok(!JSON.stringify(events).includes('sealed'))
  })

  test('credit, a low balance and an exhausted balance emit events', async ({ store }) => {
    await addKey(store, 'a')
    await store.setBalanceLow(100n)
    await spend(store, 'a', 10n)
    assert.deepEqual(await balances(store), [], 'an account without credit has no balance events')
    await addCredit(store, 1_010n)
    const added = (await emitted(store)).find(({ type }) => type === 'credit.added')?.data
    assert.deepEqual(Object.keys(added ?? {}), ['credit', 'balance'])
    assert.equal((added?.['balance'] as { balance_usd: number } | undefined)?.balance_usd, 1e-6)
    await spend(store, 'a', 900n)
    assert.deepEqual(await balances(store), [])
    await spend(store, 'a', 1n)
    assert.deepEqual(await balances(store), ['balance.low'])
    await spend(store, 'a', 98n)
    assert.deepEqual(await balances(store), [])
    await spend(store, 'a', 1n)
    const [exhausted] = await emitted(store)
    assert.equal(exhausted?.type, 'balance.exhausted')
    assert.deepEqual(exhausted.data['balance'], {
      ...{ object: 'balance', balance_usd: 0, held_usd: 0, credited_usd: 1.01e-6, charged_usd: 1.01e-6 },
      enforced: true,
    })
    assert.equal(exhausted.actor.id, 'key_a')
    // One call takes the balance below both thresholds.
    await addCredit(store, 500n)
    await spend(store, 'a', 600n)
    assert.deepEqual(await balances(store), ['balance.low', 'balance.exhausted'])
    // A rising balance, or one without a threshold, emits no event.
    await addCredit(store, 150n)
    await store.setBalanceLow(null)
    await addCredit(store, 1_000n)
    await spend(store, 'a', 1_000n)
    assert.deepEqual(await balances(store), [])
  })

  test('a model without a price is reported once a day, up to a maximum number of models', async ({
    store,
  }) => {
    await addKey(store, 'a')
    await emitted(store)
    const unpriced = async (requestId: string, modelServed: string | null, atMs = NOON) => {
      await store.admit(opening(requestId, 'a', { atMs, modelAsked: null }))
      const nothing = { costNanos: 0n, listNanos: 0n, unpriced: true }
      await store.settle(closing(requestId, { ...nothing, modelServed, atMs }))
    }
    await unpriced('req_u1', 'new')
    await unpriced('req_u2', 'new')
    await unpriced('req_u3', null)
    await unpriced('req_u4', 'new', NOON + DAY_MS)
    const events = await emitted(store)
    assert.deepEqual(
      events.map(({ data }) => data),
      [
        { model: 'new', request_id: 'req_u1', refused: false },
        { model: null, request_id: 'req_u3', refused: false },
        { model: 'new', request_id: 'req_u4', refused: false },
      ],
    )
    const refused = (requestId: string, modelAsked: string, isUnpriced = true): RefusedCall => ({
      ...{ requestId, digest: digestOf('a'), startedAtMs: NOON, endedAtMs: NOON, method: 'POST' },
      ...{ path: '/v1/responses', surface: 'chat', modelAsked, status: 400, code: 'model_not_priced' },
      ...{ clientIp: '::1', userAgent: null, sessionId: null, socketId: null, isUnpriced },
    })
    await store.storeRefused([
      refused('req_u5', 'new'),
      refused('req_u6', 'newer'),
      refused('req_u7', 'newer'),
    ])
    await store.storeRefused([refused('req_u8', 'newer'), refused('req_u9', 'invented', false)])
    const [told, ...others] = await emitted(store)
    assert.deepEqual(
      [told?.type, told?.data, others],
      ['call.unpriced', { model: 'newer', request_id: 'req_u6', refused: true }, []],
    )
    const more = Array.from({ length: limits.unpricedModelsMax + 10 }, (_, i) => i)
    await Promise.all(more.map((i) => unpriced(`req_v${i}`, `model-${i}`)))
    assert.equal((await emitted(store)).length, limits.unpricedModelsMax - 3)
  })

  test('an expired key is reported once, whenever the sweep runs', async ({ store }) => {
    const at = NOON + 10 * DAY_MS
    const end = (name: string, expiresAtMs: number, createdAtMs = NOON) =>
      addKey(store, name, { expiresAtMs, createdAtMs })
    await sweep(store, NOON)
    await end('early', NOON + 1)
    for (const name of ['end', 'revoked', 'moved']) await end(name, at)
    await store.revokeKey('default', 'key_revoked', NOON, SYSTEM)
    await emitted(store)
    const swept = (atMs: number) =>
      sweep(store, atMs).then(async () => (await emitted(store)).map(inShort).toSorted())
    assert.deepEqual(await swept(NOON + 1), ['key.expired key_early'])
    assert.deepEqual(await swept(NOON + 2), [])
    assert.deepEqual(await swept(at - 7 * DAY_MS - 1), [])
    assert.deepEqual(await swept(at - 7 * DAY_MS), ['key.expiring key_end', 'key.expiring key_moved'])
    // A changed expiry is reported again.
    await store.updateKey('default', 'key_moved', { expiresAtMs: at + DAY_MS }, at - 7 * DAY_MS, SYSTEM)
    await emitted(store)
    assert.deepEqual(await swept(at - 6 * DAY_MS), ['key.expiring key_moved'])
    // This key was created less than a day before its end.
    await end('brief', at, at - 10_000)
    await emitted(store)
    // No sweep ran between the day before the expiry and the expiry.
    assert.deepEqual(await swept(at + 60_000), [
      ...['key.expired key_brief', 'key.expired key_end', 'key.expiring key_moved'],
    ])
    assert.deepEqual(await swept(at + 60_000), [])
  })

  test('a sweep of many expired keys takes several steps', async ({ store }) => {
    const keys = SWEPT_AT_ONCE + 2
    await sweep(store, BEFORE)
    const ending = { expiresAtMs: NOON + 5, createdAtMs: BEFORE - 1 }
    for (let i = 0; i < keys; i += 1) await store.createKey(newKey(`k${i}`, ending), null, SYSTEM)
    await emitted(store)
    assert.equal(await sweep(store, NOON + 10), 4)
    assert.equal(new Set((await emitted(store)).map(inShort)).size, keys)
    // A step reads few keys, even if all their events are recorded.
    assert.deepEqual([await sweep(store, NOON + 10), (await emitted(store)).length], [4, 0])
  })

  test('events are listed newest first, and filter by account, type, actor and time', async ({
    store,
    addAccount,
  }) => {
    await addAccount('acct_b')
    for (let i = 0; i < 5; i += 1)
      await store.createKey(newKey(`k${i}`, { createdAtMs: NOON + i * DAY_MS }), null, ACTOR)
    await store.createKey(newKey('b', { accountId: 'acct_b', createdAtMs: NOON }), null, ACTOR)
    await store.revokeKey('default', 'key_k0', NOON + 5 * DAY_MS, SYSTEM)
    const list = async (filter: object, limit = 100) => {
      const { rows, more } = await store.listEvents({ ...NO_FILTER, ...filter, limit })
      const keyOf = (json: string) => (JSON.parse(json) as { key: { id: string } }).key.id.slice(4)
      return `${rows.map(({ dataJson }) => keyOf(dataJson)).join(' ')}${more ? ' …' : ''}`
    }
    assert.equal(await list({ accountId: 'default' }), 'k0 k4 k3 k2 k1 k0')
    assert.equal(await list({ accountId: 'acct_b' }), 'b')
    assert.equal(await list({ type: 'key.revoked' }), 'k0')
    assert.equal(await list({ accountId: 'default', actorId: ACTOR.id }), 'k4 k3 k2 k1 k0')
    const [fromMs, toMs] = [NOON + DAY_MS, NOON + 3 * DAY_MS]
    assert.equal(await list({ fromMs, toMs }), 'k2 k1')
    const { rows } = await store.listEvents({ ...NO_FILTER, accountId: 'default', limit: 2 })
    assert.equal(await list({ accountId: 'default', after: rows[1]?.id ?? null }, 2), 'k3 k2 …')
  })

  test('pruning deletes expired events and deliveries, and nothing else', async ({ store, rows }) => {
    await addWebhook(store, 'a')
    await store.queueTest('default', 'wh_a', NOON, SYSTEM)
    const [delivery] = await store.claimDeliveries([], NOON)
    await store.recordAttempt(attempt(delivery ?? assert.fail(), { kind: 'succeeded' }), NOON)
    await store.queueTest('default', 'wh_a', NOON, SYSTEM)
    const counts = async () => [(await rows('event')).length, (await rows('webhook_delivery')).length]
    const pruned = async (atMs: number) => {
      while ((await prune(store, atMs)) > 0);
      return await counts()
    }
    assert.deepEqual(await pruned(NOON + limits.deliveryRetentionMs), [3, 2])
    assert.deepEqual(await pruned(NOON + limits.deliveryRetentionMs + 1), [3, 1], 'one is pending')
    await store.updateWebhook('default', 'wh_a', { enabled: false }, NOON, SYSTEM)
    assert.deepEqual(await pruned(BEFORE + limits.eventRetentionMs), [4, 0])
    assert.deepEqual(await pruned(NOON + limits.eventRetentionMs + 1), [0, 0])
  })
}
