import assert from 'node:assert/strict'
import {
  ALL_CALLS,
  addKey,
  ask,
  closing,
  costing,
  digestOf,
  holding,
  NOON,
  type OpenStoreUnderTest,
  opening,
} from './fixtures.ts'
import {
  ADMIN,
  addPerson,
  createKey,
  DAY_MS,
  madeKey,
  newPersonKey,
  personOf,
  rotate,
} from './person-fixtures.ts'
import { promisesOf } from './promise.ts'

export function personKeyConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('all keys of a person draw on one budget', async ({ store }) => {
    await addPerson(store, 'ada')
    await store.updatePerson('default', 'per_ada', { monthlyBudgetNanos: 1_000n }, ADMIN, NOON)
    const first = await madeKey(store, 'a', 'per_ada')
    const second = await madeKey(store, 'b', 'per_ada')
    assert.equal(first.budgetId, second.budgetId)
    assert.equal(first.personId, 'per_ada')
    await store.admit(opening('req_1', 'a', holding(600n)))
    await store.settle(closing('req_1', costing(600n)))
    assert.equal(await ask(store, 'req_2', 'b', holding(400n)), 'admitted')
    assert.equal(await ask(store, 'req_3', 'a', holding(1n)), 'held by budget')
    await store.settle(closing('req_2', costing(400n)))
    for (const key of ['a', 'b']) assert.equal(await ask(store, `req_4${key}`, key), 'budget_exceeded')
    const person = await personOf(store, 'ada')
    assert.equal(person.keys, 2)
    assert.equal(person.month.spentNanos, 1_000n)
  })

  test('a call records whose key it was, and the log finds the calls of a person', async ({ store }) => {
    await addPerson(store, 'ada')
    await createKey(store, 'a', 'per_ada')
    await addKey(store, 'service')
    for (const name of ['a', 'service']) {
      await store.admit(opening(`req_open_${name}`, name))
      await store.admit(opening(`req_done_${name}`, name))
      await store.settle(closing(`req_done_${name}`))
    }
    const { calls } = await store.listCalls({ ...ALL_CALLS, personId: 'per_ada' }, null, 10)
    assert.deepEqual(calls.map(({ requestId, personId }) => [requestId, personId]).sort(), [
      ['req_done_a', 'per_ada'],
      ['req_open_a', 'per_ada'],
    ])
    assert.equal((await store.getCall('req_done_service'))?.personId, null)
    assert.equal(await store.isOfPerson('req_done_a', 'per_ada', 'default'), true)
    assert.equal(await store.isOfPerson('req_open_a', 'per_ada', 'default'), true)
    assert.equal(await store.isOfPerson('key_a', 'per_ada', 'default'), true)
    for (const id of ['req_done_service', 'key_service', 'key_none', 'per_ada', 'x'])
      assert.equal(await store.isOfPerson(id, 'per_ada', 'default'), false, id)
  })

  test('usage is summed by person, and services have none', async ({ store }) => {
    await addPerson(store, 'ada')
    await addPerson(store, 'bob')
    for (const [key, person] of [
      ['a', 'per_ada'],
      ['b', 'per_ada'],
      ['c', 'per_bob'],
    ] as const)
      await createKey(store, key, person)
    await addKey(store, 'service')
    for (const key of ['a', 'b', 'c', 'service']) {
      await store.admit(opening(`req_${key}`, key))
      await store.settle(closing(`req_${key}`, costing(100n)))
    }
    const day = new Date(NOON).toISOString().slice(0, 10)
    const query = {
      ...{ accountId: 'default', keyId: null, startDay: day, endDay: day },
      ...{ groupBy: ['person'] as const, after: null, limit: 2 },
    }
    const sumsOf = async (more: Partial<typeof query> & { personId?: string; after?: never }) =>
      (await store.readUsage({ ...query, ...more })).buckets.map((bucket) => [
        ...[bucket.personId, bucket.personEmail, bucket.costNanos],
      ])
    assert.deepEqual(await sumsOf({ limit: 10 }), [
      [null, null, 100n],
      ['per_ada', 'ada@example.com', 200n],
      ['per_bob', 'bob@example.com', 100n],
    ])
    const first = await store.readUsage({ ...query, limit: 1 })
    const next = await store.readUsage({ ...query, after: first.buckets[0] ?? null })
    assert.deepEqual(
      next.buckets.map(({ personId }) => personId),
      ['per_ada', 'per_bob'],
    )
    assert.equal(next.total.costNanos, 400n)
    assert.deepEqual(await sumsOf({ personId: 'per_ada' }), [['per_ada', 'ada@example.com', 200n]])
  })

  test('the account decides how many keys a person has, how long they live and what they may', async (subject) => {
    const { store } = subject
    const allowedModels = ['claude-haiku-5-5']
    const limits = { keysMax: 2, keyDaysMax: 10, allowedModels, logRequests: true }
    await store.updateMemberLimits('default', limits, ADMIN, NOON)
    await addPerson(store, 'ada')
    const latestMs = NOON + 10 * DAY_MS
    const key = await madeKey(store, 'a', 'per_ada')
    assert.partialDeepStrictEqual(key, { expiresAtMs: latestMs, allowedModels, logRequests: true })
    assert.deepEqual(await createKey(store, 'b', 'per_ada', { expiresAtMs: latestMs + 1 }), {
      ...{ kind: 'expires_too_late', latestMs },
    })
    const past = await createKey(store, 'b', 'per_ada', { expiresAtMs: NOON })
    assert.equal(past.kind, 'already_expired')
    const soon = { expiresAtMs: NOON + 1_000 }
    assert.equal((await createKey(store, 'b', 'per_ada', soon)).kind, 'done')
    const tooMany = { kind: 'too_many_keys', keysMax: 2 }
    assert.deepEqual(await createKey(store, 'c', 'per_ada'), tooMany)
    assert.deepEqual(await rotate(store, 'key_a', 'a2', NOON + 1), tooMany)
    const replaced = await rotate(store, 'key_a', 'a2', NOON)
    assert.partialDeepStrictEqual(replaced, {
      ...{ kind: 'done', value: { personId: 'per_ada', expiresAtMs: latestMs, budgetId: key.budgetId } },
    })
    const later = { createdAtMs: NOON + 1_000 }
    assert.equal((await createKey(store, 'c', 'per_ada', later)).kind, 'done', 'one has expired')
  })

  test('a person creates 20 keys a day', async ({ store }) => {
    await store.updateMemberLimits('default', { keysMax: 100 }, ADMIN, NOON)
    await addPerson(store, 'ada')
    for (let n = 0; n < 19; n += 1) assert.equal((await createKey(store, `k${n}`, 'per_ada')).kind, 'done')
    assert.equal((await rotate(store, 'key_k0', 'rotated', null)).kind, 'done')
    const refusal = { kind: 'too_many_today', retryAfterSeconds: 12 * 60 * 60 }
    assert.deepEqual(await createKey(store, 'late', 'per_ada'), refusal)
    assert.deepEqual(await rotate(store, 'key_k0', 'late', null), refusal)
    const tomorrow = { createdAtMs: NOON + DAY_MS / 2 }
    assert.equal((await createKey(store, 'late', 'per_ada', tomorrow)).kind, 'done')
  })

  test('a repeated creation with the same idempotency key is answered with the first key', async (subject) => {
    const { store } = subject
    await addPerson(store, 'ada')
    const once = { accountId: 'default', name: 'per_ada x', fingerprint: digestOf('x'), atMs: NOON }
    const first = await store.createPersonKey(newPersonKey('a', 'per_ada'), once, ADMIN)
    const again = await store.createPersonKey(newPersonKey('b', 'per_ada'), once, ADMIN)
    assert.equal(first.kind, 'done')
    assert.ok(again.kind === 'repeated' && again.value.id === 'key_a')
  })

  test('keys that are created while the person is blocked do not survive', async ({ store }) => {
    await store.updateMemberLimits('default', { keysMax: 100 }, ADMIN, NOON)
    await addPerson(store, 'ada')
    const names = Array.from({ length: 12 }, (_, n) => `k${n}`)
    const work = names.map((name) => () => createKey(store, name, 'per_ada'))
    const block = () => store.blockPerson('default', 'per_ada', ADMIN, NOON)
    await Promise.all([...work.slice(0, 6), block, ...work.slice(6)].map((each) => each()))
    for (const name of names) assert.notEqual(await ask(store, `req_${name}`, name), 'admitted')
    assert.equal((await personOf(store, 'ada')).keys, 0)
  })
}
