import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import { MEMBER_LIMITS } from '../../../src/keys/person-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { emitted } from './event-fixtures.ts'
import {
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
  openSession,
  personOf,
  rotate,
  signIn,
  typesOf,
} from './person-fixtures.ts'
import { promisesOf } from './promise.ts'

export function peopleConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('the first sign-in creates a person with the limits of the account', async ({ store }) => {
    const limits = { monthlyBudgetNanos: 5_000n, dailyBudgetNanos: 900n, requestsPerMinute: 7 }
    await store.updateMemberLimits('default', limits, ADMIN, NOON)
    await emitted(store)
    const person = await addPerson(store, 'ada')
    assert.deepEqual(person, {
      ...{ id: 'per_ada', accountId: 'default', budgetId: person.budgetId, email: 'ada@example.com' },
      ...{ name: 'Name ada', role: 'member', status: 'active', ...limits, budgetMode: null, keys: 0 },
      ...{ createdAtMs: NOON, lastSeenAtMs: NOON },
      month: { spentNanos: 0n, heldNanos: 0n, lostNanos: 0n, daySpentNanos: 0n },
    })
    assert.match(person.budgetId, /^bud_[0-9A-Z]{26}$/)
    const [event] = await emitted(store)
    assert.equal(event?.type, 'person.created')
    assert.deepEqual(event.actor, { kind: 'person', id: 'per_ada', name: 'Name ada' })
  })

  test('a person is the issuer and subject; role, name and email follow each sign-in', async ({ store }) => {
    await addPerson(store, 'ada')
    await emitted(store)
    const later = NOON + 60_000
    const changed = { newId: 'per_other', email: 'new@example.com', role: 'admin', atMs: later } as const
    const person = await addPerson(store, 'ada', changed)
    assert.partialDeepStrictEqual(person, { id: 'per_ada', email: 'new@example.com', role: 'admin' })
    assert.equal(person.lastSeenAtMs, later)
    const [event] = await emitted(store)
    assert.deepEqual(event?.data['changes'], {
      email: { old: 'ada@example.com', new: 'new@example.com' },
      role: { old: 'member', new: 'admin' },
    })
    await addPerson(store, 'ada', changed)
    assert.deepEqual(await typesOf(store), [], 'a sign-in that changes nothing causes no event')
    const impostor = { newId: 'per_x', subject: 'another', email: 'new@example.com' }
    assert.equal((await addPerson(store, 'ada', impostor)).id, 'per_x')
    const elsewhere = { newId: 'per_y', issuer: 'https://other.example' }
    assert.equal((await addPerson(store, 'ada', elsewhere)).id, 'per_y')
  })

  test('two first sign-ins at once create one person', async ({ store, rows }) => {
    const answers = await Promise.all(
      ['one', 'two', 'three'].map((id) => store.signInPerson(signIn('ada', { newId: `per_${id}` }))),
    )
    const ids = new Set(answers.map((answer) => answer.kind === 'signed_in' && answer.person.id))
    assert.equal(ids.size, 1)
    assert.equal((await rows('budget')).length, 1)
  })

  test('blocking revokes all keys and ends all sessions, and nothing new can be created', async (subject) => {
    const { store, exec, rows } = subject
    await addPerson(store, 'ada', { refreshToken: Buffer.from('sealed') })
    await addPerson(store, 'bob')
    for (const name of ['a', 'b', 'device', 'gone']) await createKey(store, name, 'per_ada')
    await createKey(store, 'of_bob', 'per_bob')
    // A device that has expired could be refreshed.
    await exec(
      `UPDATE api_key SET device_until_ms = ${NOON + DAY_MS}, expires_at_ms = ${NOON - 1} WHERE id = 'key_device'`,
    )
    await exec(`UPDATE api_key SET expires_at_ms = ${NOON - 1} WHERE id = 'key_gone'`)
    assert.notEqual(await openSession(store, 's', 'per_ada'), null)
    await openSession(store, 'of bob', 'per_bob')
    await emitted(store)
    const blocked = await store.blockPerson('default', 'per_ada', ADMIN, NOON)
    assert.partialDeepStrictEqual(blocked, { status: 'blocked', keys: 0 })
    assert.deepEqual((await typesOf(store)).sort(), [
      ...['key.revoked', 'key.revoked', 'key.revoked', 'person.blocked'],
    ])
    for (const name of ['a', 'b', 'device'])
      assert.equal(await ask(store, `req_${name}`, name), 'revoked_key')
    assert.equal(await ask(store, 'req_gone', 'gone'), 'expired_key')
    assert.equal(await store.findSession(digestOf('s'), NOON), null)
    assert.equal(await openSession(store, 'late', 'per_ada'), null)
    assert.deepEqual(await createKey(store, 'late', 'per_ada'), { kind: 'not_active' })
    assert.deepEqual(await store.signInPerson(signIn('ada')), { kind: 'blocked' })
    assert.equal((await rotate(store, 'key_a', 'late', null)).kind, 'final')
    const tokens = (await rows('person')).map(({ refresh_token }) => refresh_token)
    assert.deepEqual(tokens, [null, null])
    assert.equal(await ask(store, 'req_bob', 'of_bob'), 'admitted')
    assert.notEqual(await store.findSession(digestOf('of bob'), NOON), null)
    await store.blockPerson('default', 'per_ada', ADMIN, NOON)
    assert.deepEqual(await typesOf(store), [], 'blocking again changes nothing')

    await store.unblockPerson('default', 'per_ada', ADMIN, NOON)
    assert.deepEqual(await typesOf(store), ['person.unblocked'])
    assert.equal((await addPerson(store, 'ada')).status, 'active')
    assert.equal(await ask(store, 'req_after', 'a'), 'revoked_key')
    assert.equal((await createKey(store, 'new', 'per_ada')).kind, 'done')
  })

  test('a session has the role that the person has now', async ({ store }) => {
    await addPerson(store, 'ada', { role: 'operator' })
    const session = await openSession(store, 's', 'per_ada')
    const caller = { kind: 'person', personId: 'per_ada', name: 'Name ada' } as const
    assert.deepEqual(session?.caller, { ...caller, role: 'operator', accountId: null })
    await addPerson(store, 'ada', { role: 'viewer', name: '' })
    assert.deepEqual((await store.findSession(digestOf('s'), NOON))?.caller, {
      ...{ ...caller, name: 'ada@example.com', role: 'viewer', accountId: 'default' },
    })
  })

  test('a move revokes the keys and gives a new budget in the other account', async (subject) => {
    const { store } = subject
    await subject.addAccount('acct_other')
    const before = await addPerson(store, 'ada')
    await createKey(store, 'a', 'per_ada')
    await store.admit(opening('req_1', 'a', holding(10n)))
    await openSession(store, 's', 'per_ada')
    const other = { accountId: 'acct_other' }
    assert.deepEqual(await store.signInPerson(signIn('ada', other)), { kind: 'other_account' })
    await store.updateMemberLimits('acct_other', { monthlyBudgetNanos: 77n }, ADMIN, NOON)
    await emitted(store)
    const moved = await store.movePerson('per_ada', 'acct_other', ADMIN, NOON)
    assert.partialDeepStrictEqual(moved, { ...other, keys: 0, monthlyBudgetNanos: 77n })
    assert.notEqual(moved?.budgetId, before.budgetId)
    const events = await emitted(store)
    assert.deepEqual(
      events.map(({ type, accountId, data }) => [
        ...[type, accountId, (data['person'] as { account_id?: string } | undefined)?.account_id],
      ]),
      [
        ['key.revoked', 'default', undefined],
        ['person.moved', 'default', 'default'],
        ['person.moved', 'acct_other', 'acct_other'],
      ],
    )
    assert.equal(await ask(store, 'req_2', 'a'), 'revoked_key')
    assert.equal(await store.findSession(digestOf('s'), NOON), null)
    assert.equal(await store.getPerson('default', 'per_ada', NOON), null)
    assert.equal(await store.isOfPerson('key_a', 'per_ada', 'acct_other'), false)
    assert.deepEqual(await createKey(store, 'b', 'per_ada'), { kind: 'not_active' })
    assert.equal((await addPerson(store, 'ada', other)).id, 'per_ada')
    await store.settle(closing('req_1', costing(9n)))
    assert.equal((await personOf(store, 'ada', 'acct_other')).month.spentNanos, 0n)
    assert.equal((await store.getKey('default', 'key_a', NOON))?.month.spentNanos, 9n)
  })

  test('a PATCH below the spend of a person is reported for the newest key', async ({ store }) => {
    await addPerson(store, 'ada')
    await store.updatePerson('default', 'per_ada', { monthlyBudgetNanos: 0n }, ADMIN, NOON)
    await createKey(store, 'a', 'per_ada')
    await emitted(store)
    await store.updatePerson('default', 'per_ada', { monthlyBudgetNanos: 5n }, ADMIN, NOON)
    await store.admit(opening('req_1', 'a', holding(5n)))
    await store.settle(closing('req_1', costing(4n)))
    await emitted(store)
    await store.updatePerson('default', 'per_ada', { monthlyBudgetNanos: 3n }, ADMIN, NOON)
    assert.deepEqual(await typesOf(store), ['person.updated', 'key.budget.exceeded'])
    assert.equal(await store.updatePerson('acct_x', 'per_ada', {}, ADMIN, NOON), null)
  })

  test('new limits are applied to everybody, in steps, with one event for each person', async (subject) => {
    const { store } = subject
    await subject.addAccount('acct_other')
    const names = Array.from({ length: 45 }, (_, n) => `p${String(n).padStart(2, '0')}`)
    for (const name of names) await addPerson(store, name)
    await addPerson(store, 'elsewhere', { accountId: 'acct_other' })
    await createKey(store, 'a', 'per_p00')
    await createKey(store, 'revoked', 'per_p00')
    await store.revokeKey('default', 'key_revoked', NOON, ADMIN)
    await addKey(store, 'service')
    await emitted(store)
    const changes = { monthlyBudgetNanos: 9n, logRequests: true, keyDaysMax: 1 }
    await store.updateMemberLimits('default', changes, ADMIN, NOON)
    let steps = 0
    let after: string | null = null
    do {
      after = await store.applyMemberLimits({
        accountId: 'default',
        changes,
        after,
        actor: ADMIN,
        atMs: NOON,
      })
      steps += 1
    } while (after !== null)
    assert.equal(steps, 3)
    const types = await typesOf(store)
    assert.deepEqual(types, ['account.updated', ...names.map(() => 'person.updated')])
    for (const name of names) assert.equal((await personOf(store, name)).monthlyBudgetNanos, 9n)
    assert.equal((await personOf(store, 'elsewhere', 'acct_other')).monthlyBudgetNanos, null)
    const [key, revoked] = await Promise.all(
      ['key_a', 'key_revoked'].map((id) => store.getKey('default', id, NOON)),
    )
    assert.equal(key?.logRequests, true)
    assert.equal(key.expiresAtMs, NOON + 90 * DAY_MS, 'the expiry stays')
    assert.equal(revoked?.logRequests, false)
    assert.equal((await store.getKey('default', 'key_service', NOON))?.logRequests, false)
  })

  test('limits are merged, and an account without any has the defaults', async ({ store }) => {
    assert.deepEqual(await store.readMemberLimits('default'), MEMBER_LIMITS)
    await store.updateMemberLimits('default', { keysMax: 3, allowedModels: ['m'] }, ADMIN, NOON)
    const [event] = await emitted(store)
    assert.deepEqual(event?.data['changes'], {
      'members.keys_max': { old: 5, new: 3 },
      'members.allowed_models': { old: null, new: ['m'] },
    })
    await store.updateMemberLimits('default', { allowedModels: null }, ADMIN, NOON)
    assert.deepEqual(await store.readMemberLimits('default'), { ...MEMBER_LIMITS, keysMax: 3 })
  })

  test('people are listed newest first, by account, status and search', async (subject) => {
    const { store } = subject
    await subject.addAccount('acct_other')
    for (const name of ['a', 'b', 'c']) await addPerson(store, name)
    await addPerson(store, 'd', { accountId: 'acct_other', name: 'Ünal' })
    await store.blockPerson('default', 'per_b', SYSTEM, NOON)
    const all = { accountId: 'default', status: null, search: null, after: null, limit: 10, atMs: NOON }
    const idsOf = async (more: Partial<Parameters<Store['listPeople']>[0]>) =>
      (await store.listPeople({ ...all, ...more })).rows.map(({ id }) => id.slice(4)).join('')
    assert.equal(await idsOf({}), 'cba')
    assert.equal(await idsOf({ accountId: null }), 'dcba')
    assert.equal(await idsOf({ status: 'blocked' }), 'b')
    assert.equal(await idsOf({ search: 'A@EXAMPLE' }), 'a')
    assert.equal(await idsOf({ accountId: null, search: 'ünal' }), 'd')
    assert.equal(await idsOf({ after: 'per_c', limit: 1 }), 'b')
    assert.equal((await store.listPeople({ ...all, limit: 2 })).more, true)
  })
}
